package org.loam.jvm.harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.loam.jvm.tm.Library;

/** The command line that every workload executable understands. */
public final class Options {
  /** Read by the process that chose the virtual machine's flags; here they are only recorded. */
  static final List<Parameter> MACHINE =
      List.of(
          Parameter.choice(
              "collector",
              List.of("serial", "parallel", "g1", "zgc", "shenandoah", "epsilon"),
              "the garbage collector; epsilon collects nothing"),
          Parameter.integer(
                  "heap_percent",
                  1000,
                  50,
                  1_000_000,
                  "%",
                  "heap limit, in percent of the data that program and library have live")
              .called("heap of {/100}\u00a0\u00d7 live data"),
          Parameter.integer("heap_mib", 0, 0, 1 << 20, "MiB", "heap limit; 0: by heap_percent")
              .called("heap of {}\u00a0MiB"),
          Parameter.choice(
              "warm_up", List.of("detect", "none"), "detect: until the rate no longer changes"));

  final Program program;
  private final Map<String, Object> values = new LinkedHashMap<>();
  private int threads = 1;
  private long seed = 1;
  private long warmupMs = 50;
  private String records = "1";

  private Options(Program program) {
    this.program = program;
  }

  public int threads() {
    return threads;
  }

  public long seed() {
    return seed;
  }

  public long warmupMs() {
    return warmupMs;
  }

  String records() {
    return records;
  }

  public int integer(String name) {
    return Math.toIntExact((Long) values.get(name));
  }

  public String choice(String name) {
    return (String) values.get(name);
  }

  Map<String, Object> values() {
    return values;
  }

  static List<Parameter> parameters(Program program, Library library) {
    List<Parameter> all = new ArrayList<>(program.parameters());
    all.addAll(MACHINE);
    all.addAll(library.parameters());
    return all;
  }

  static Options parse(List<String> arguments, Library library) {
    String name = arguments.get(0);
    Program program =
        Registry.programs().stream()
            .filter(one -> one.name().equals(name))
            .findFirst()
            .orElseThrow(() -> unknownProgram(name));
    Options options = new Options(program);
    List<Parameter> known = parameters(program, library);
    known.forEach(one -> options.values.put(one.name(), one.fallbackValue()));
    for (int i = 1; i < arguments.size(); i += 2) {
      String flag = arguments.get(i);
      if (flag.equals("--blame") || flag.equals("--explain")) {
        throw new BadInput(flag, "", library.name() + " has no blame mode", "leave it out");
      }
      if (!List.of("--threads", "--seed", "--warmup-ms", "--records", "-p").contains(flag)) {
        throw new BadInput(flag, "", "no such option here", "see docs/jvm.md");
      }
      if (i + 1 == arguments.size()) {
        throw new BadInput(flag, "", "needs a value after it", "");
      }
      options.set(flag, arguments.get(i + 1), known, library);
    }
    program.check(options);
    return options;
  }

  private void set(String flag, String text, List<Parameter> known, Library library) {
    switch (flag) {
      case "--threads" -> threads = (int) number(flag, text, 1, library.threadsMax());
      case "--seed" -> seed = unsigned(text);
      case "--warmup-ms" -> warmupMs = number(flag, text, 0, 3_600_000);
      case "--records" -> records = text;
      default -> parameter(text, known);
    }
  }

  private void parameter(String text, List<Parameter> known) {
    int equals = text.indexOf('=');
    if (equals < 0) {
      throw new BadInput("-p", text, "must have the form key=value", "");
    }
    String key = text.substring(0, equals);
    Parameter parameter =
        known.stream()
            .filter(one -> one.name().equals(key))
            .findFirst()
            .orElseThrow(
                () ->
                    new BadInput(
                        "-p " + key,
                        text.substring(equals + 1),
                        "no such parameter; known: "
                            + String.join(", ", known.stream().map(Parameter::name).toList()),
                        ""));
    values.put(key, parameter.parse(text.substring(equals + 1)));
  }

  private static long number(String flag, String text, long min, long max) {
    try {
      long value = Long.parseLong(text);
      if (value >= min && value <= max) {
        return value;
      }
    } catch (NumberFormatException notANumber) {
      // refused below, with the limits
    }
    throw new BadInput(flag, text, "must be an integer from " + min + " to " + max, "");
  }

  private static long unsigned(String text) {
    try {
      return Long.parseUnsignedLong(text);
    } catch (NumberFormatException notANumber) {
      throw new BadInput("--seed", text, "must be an integer from 0 to 2^64 - 1", "");
    }
  }

  private static BadInput unknownProgram(String name) {
    List<String> known = Registry.programs().stream().map(Program::name).toList();
    return new BadInput(
        "WORKLOAD", name, "no such workload; known: " + String.join(" ", known), "");
  }
}
