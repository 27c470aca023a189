package org.loam.jvm.programs;

import java.util.List;
import org.loam.jvm.harness.Metric;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;
import org.loam.jvm.harness.Program;
import org.loam.jvm.programs.lee.Routes;
import org.loam.jvm.tm.Library;

/**
 * Routes of a circuit board; laying a track is one transaction. The same boards, the same router
 * and the same variants as workloads/managed/leetm.cpp:
 *
 * <pre>
 *   base    the board is arrays of arrays; the wave's grid and list are made in the transaction
 *   opt     ... are the thread's own, which no library guards
 *   rm      the board and the wave's grid are one array each, in row-major order
 *   optrm   both
 * </pre>
 */
public final class LeeTm implements Program {
  @Override
  public String name() {
    return "leetm";
  }

  @Override
  public String summary() {
    return "routes of a circuit board, a transaction each";
  }

  @Override
  public List<Parameter> parameters() {
    return List.of(
        Parameter.choice(
            "board", List.of("sparseshort", "sparselong", "crossing"), "what is to be routed"),
        Parameter.choice(
            "variant",
            List.of("base", "opt", "rm", "optrm"),
            "where the wave's grid lies, and how arrays are laid out"),
        Parameter.integer("tracks", 0, 0, 1 << 20, "1", "lay the first of the joins only; 0: all"));
  }

  @Override
  public List<Metric> metrics() {
    return List.of(Metric.count("laid", "neither"), Metric.count("failed", "lower"));
  }

  @Override
  public boolean shares() {
    return true;
  }

  @Override
  public Instance build(Library library, Options options) {
    return new Routes(library, options);
  }
}
