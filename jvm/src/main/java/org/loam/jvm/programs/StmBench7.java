package org.loam.jvm.programs;

import java.util.List;
import java.util.stream.Stream;
import org.loam.jvm.harness.BadInput;
import org.loam.jvm.harness.Metric;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;
import org.loam.jvm.harness.Program;
import org.loam.jvm.programs.bench7.Assemblies;
import org.loam.jvm.programs.bench7.Operation;
import org.loam.jvm.programs.bench7.Sizes;
import org.loam.jvm.tm.Library;

/**
 * A tree of assemblies of parts, six indexes, and 45 operations from ten objects to all of them. An
 * operation is one transaction. The same specification and the same seeds as
 * workloads/managed/stmbench7.cpp, so that with one thread the results are the same.
 */
public final class StmBench7 implements Program {
  @Override
  public String name() {
    return "stmbench7";
  }

  @Override
  public String summary() {
    return "assemblies of parts with indexes: 45 operations, from ten objects to all of them";
  }

  @Override
  public List<Parameter> parameters() {
    List<String> onOff = List.of("on", "off");
    List<String> only =
        Stream.concat(Stream.of("all"), Stream.of(Operation.values()).map(Operation::name))
            .toList();
    return List.of(
        Parameter.choice(
                "size",
                Sizes.NAMES,
                "of the structure: big is the published one, with 100 000 atomic parts")
            .called("size\u00a0{}"),
        Parameter.choice("mix", Assemblies.MIXES, "90, 60 or 10 % of the operations only read"),
        Parameter.choice("long", onOff, "long traversals, which visit all of the structure"),
        Parameter.choice(
            "structural", onOff, "operations that add and remove parts and assemblies"),
        Parameter.choice("only", only, "this operation alone"),
        Parameter.integer(
            "operations", 500, 1, 1 << 30, "1", "of each thread; one is a transaction"),
        Parameter.choice(
            "texts",
            List.of("string", "array"),
            "string: a text is one value; array: each character is read and written by the transaction"));
  }

  @Override
  public List<Metric> metrics() {
    return List.of(
        Metric.count("succeeded", "neither"),
        Metric.count("failed", "neither"),
        Metric.count("visited", "neither"),
        Metric.count("checksum", "neither"),
        Metric.ratio("sample_error", "1", "neither", "sample_off", "sampled"),
        Metric.count("sample_off", "neither"),
        Metric.count("sampled", "neither"),
        Metric.time("longest_ms", "ms", "lower"),
        Metric.count("atomic_parts", "neither"));
  }

  @Override
  public void check(Options options) {
    String only = options.choice("only");
    if (!only.equals("all")
        && Operation.valueOf(only).isLong()
        && options.choice("long").equals("off")) {
      throw new BadInput("-p only", only, "a long traversal, with long=off", "leave long on");
    }
  }

  @Override
  public boolean shares() {
    return true;
  }

  @Override
  public boolean isUneven() {
    return true;
  }

  @Override
  public Instance build(Library library, Options options) {
    return new Assemblies(library, options);
  }
}
