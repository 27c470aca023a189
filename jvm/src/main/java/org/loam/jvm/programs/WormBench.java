package org.loam.jvm.programs;

import java.util.List;
import org.loam.jvm.harness.BadInput;
import org.loam.jvm.harness.Metric;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;
import org.loam.jvm.harness.Program;
import org.loam.jvm.programs.worms.World;
import org.loam.jvm.tm.Library;

/**
 * Worms on a torus of numbers; a step is one transaction. The same specification and the same seeds
 * as workloads/managed/wormbench.cpp, so that with one thread the moves are the same.
 */
public final class WormBench implements Program {
  @Override
  public String name() {
    return "wormbench";
  }

  @Override
  public String summary() {
    return "worms on a torus: short transactions that allocate nothing";
  }

  @Override
  public List<Parameter> parameters() {
    return List.of(
        Parameter.integer("size", 256, 128, 1024, "1", "of the world: size * size cells")
            .called("size\u00a0{}"),
        Parameter.integer(
            "head", 8, 1, 16, "1", "size of a worm's head, a triangle of head * head cells"),
        Parameter.integer("body", 8, 2, 16, "1", "cells of a worm's body"),
        Parameter.integer(
            "operations", 20000, 1, 1 << 30, "1", "steps of each thread; one is a transaction"),
        Parameter.integer(
            "read_percent",
            38,
            0,
            100,
            "%",
            "of the steps only read numbers; 38: all operations alike"));
  }

  @Override
  public List<Metric> metrics() {
    return List.of(Metric.count("moves", "neither"));
  }

  @Override
  public void check(Options options) {
    int across = options.integer("size") / (2 * options.integer("head"));
    int along = options.integer("size") / (options.integer("head") + options.integer("body") + 1);
    if (across * along < World.WORMS) {
      throw new BadInput(
          "-p size", "", "48 worms do not fit into the world", "raise size, or lower head or body");
    }
  }

  @Override
  public boolean shares() {
    return true;
  }

  @Override
  public Instance build(Library library, Options options) {
    return new World(library, options);
  }
}
