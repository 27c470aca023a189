package org.loam.jvm.programs.bench7;

import java.util.List;

/** How large STMBench7 is, and the bounds of its numbers. */
public record Sizes(
    int compositeParts, int atomicParts, int levels, int documentChars, int manualChars) {
  /** Children of an assembly: assemblies, or composite parts. */
  static final int FAN_OUT = 3;

  static final int CONNECTIONS = 6;
  static final int TYPES = 10;

  /** Dates of assemblies and of atomic parts. */
  static final int DATE_LEAST = 1000;

  static final int DATE_MOST = 1999;

  /** Dates of composite parts: a tenth is young. */
  static final int YOUNG_LEAST = 2000;

  static final int YOUNG_MOST = 2999;
  static final int OLD_MOST = 999;
  static final int YOUNG_PERCENT = 10;

  /** x is below; y = x + 1. */
  static final int PLACES = 100_000;

  /** Of connections: 1 to this. */
  static final int LENGTHS = 100_000;

  /** Big is OO7's "medium" and the size of the published measurements; tiny is for tests. */
  public static final List<String> NAMES = List.of("medium", "big", "small", "tiny");

  private static final List<Sizes> ALL =
      List.of(
          new Sizes(500, 20, 7, 20_000, 1_000_000),
          new Sizes(500, 200, 7, 20_000, 1_000_000),
          new Sizes(50, 20, 7, 20_000, 1_000_000),
          new Sizes(20, 20, 4, 500, 5_000));

  static Sizes of(String name) {
    return ALL.get(NAMES.indexOf(name));
  }

  int bases() {
    return power(levels - 1);
  }

  int complexes() {
    return (power(levels - 1) - 1) / (FAN_OUT - 1);
  }

  int atomics() {
    return compositeParts * atomicParts;
  }

  /** Of a kind of identifiers: a twentieth more than there are objects at the beginning. */
  static int poolOf(int objects) {
    return objects + objects / 20;
  }

  static int power(int exponent) {
    return exponent == 0 ? 1 : FAN_OUT * power(exponent - 1);
  }
}
