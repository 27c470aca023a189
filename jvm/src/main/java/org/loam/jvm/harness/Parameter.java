package org.loam.jvm.harness;

import java.util.List;

/**
 * One {@code -p name=value}: an integer within limits, or one of the choices (the first is the
 * default).
 *
 * @param label what reports say in place of "name = value": {} is the value, {/100} a hundredth of
 *     it; may be empty
 */
public record Parameter(
    String name,
    long min,
    long max,
    long fallback,
    List<String> choices,
    String unit,
    String help,
    String label) {

  public static Parameter integer(
      String name, long fallback, long min, long max, String unit, String help) {
    return new Parameter(name, min, max, fallback, List.of(), unit, help, "");
  }

  public static Parameter choice(String name, List<String> choices, String help) {
    return new Parameter(name, 0, 0, 0, choices, "", help, "");
  }

  public Parameter called(String label) {
    return new Parameter(name, min, max, fallback, choices, unit, help, label);
  }

  public boolean isChoice() {
    return !choices.isEmpty();
  }

  /** The value in a text, a Long or a String. */
  Object parse(String text) {
    if (isChoice()) {
      if (choices.contains(text)) {
        return text;
      }
      throw new BadInput("-p " + name, text, "must be one of " + String.join(", ", choices), "");
    }
    try {
      long value = Long.parseLong(text);
      if (value >= min && value <= max) {
        return value;
      }
    } catch (NumberFormatException notANumber) {
      // refused below, with the limits
    }
    throw new BadInput(
        "-p " + name, text, "must be an integer from " + min + " to " + max, "default " + fallback);
  }

  Object fallbackValue() {
    if (isChoice()) {
      return choices.get(0);
    }
    return fallback;
  }

  void describe(Json json) {
    json.object().field("name", name).field("type", isChoice() ? "choice" : "integer");
    if (isChoice()) {
      json.array("choices");
      choices.forEach(json::value);
      json.end();
    } else {
      json.field("min", min).field("max", max);
    }
    json.field("default", fallbackValue()).field("unit", unit).field("help", help);
    if (!label.isEmpty()) {
      json.field("label", label);
    }
    json.end();
  }
}
