package org.loam.jvm.harness;

/** One value of an iteration's record; a ratio names the two values whose sums it divides. */
public record Metric(
    String name, String unit, String better, String kind, String numerator, String denominator) {

  public static Metric count(String name, String better) {
    return new Metric(name, "1", better, "count", "", "");
  }

  public static Metric time(String name, String unit, String better) {
    return new Metric(name, unit, better, "time", "", "");
  }

  public static Metric bytes(String name, String better) {
    return new Metric(name, "B", better, "bytes", "", "");
  }

  public static Metric ratio(
      String name, String unit, String better, String numerator, String denominator) {
    return new Metric(name, unit, better, "ratio", numerator, denominator);
  }

  void describe(Json json) {
    json.object()
        .field("name", name)
        .field("unit", unit)
        .field("better", better)
        .field("kind", kind);
    if (kind.equals("ratio")) {
      json.array("of").value(numerator).value(denominator).end();
    }
    json.end();
  }
}
