package org.loam.jvm.harness;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.loam.jvm.tm.Library;

/**
 * A workload executable: {@code Main LIBRARY --describe}, {@code Main LIBRARY WORKLOAD --threads
 * ...}, {@code Main LIBRARY --live WORKLOAD ...}, which says how many bytes are live, or {@code
 * Main --describe-all FOLDER}, which writes a file NAME.json for each library.
 */
public final class Main {
  private static final int BAD_INPUT = 2;
  private static final int OUT_OF_MEMORY = 4;

  private Main() {}

  public static void main(String[] arguments) throws IOException, InterruptedException {
    int status;
    try {
      status = run(List.of(arguments));
    } catch (BadInput problem) {
      System.err.println("error: " + problem.getMessage());
      status = BAD_INPUT;
    } catch (OutOfMemoryError full) {
      outOfMemory();
      return;
    }
    System.out.flush();
    // A library's threads must not keep the process.
    System.exit(status);
  }

  /** Ends the process: what the heap limit did not allow is a result. */
  static void outOfMemory() {
    // Nothing is allocated here that is not small: there may be no room.
    System.err.println(
        "error: -p heap_percent: out of memory: the heap limit is below what the program and its transactions hold (raise heap_percent or heap_mib)");
    Runtime.getRuntime().halt(OUT_OF_MEMORY);
  }

  private static int run(List<String> arguments) throws IOException, InterruptedException {
    if (arguments.size() < 2) {
      throw new BadInput("WORKLOAD", "", "missing", "give LIBRARY WORKLOAD, or LIBRARY --describe");
    }
    if (arguments.get(0).equals("--describe-all")) {
      for (Library library : Registry.libraries()) {
        Files.writeString(
            Path.of(arguments.get(1), library.name() + ".json"), Description.of(library) + "\n");
      }
      return 0;
    }
    Library library = Registry.library(arguments.get(0));
    List<String> rest = arguments.subList(1, arguments.size());
    if (rest.get(0).equals("--describe")) {
      System.out.println(Description.of(library));
      return 0;
    }
    boolean live = rest.get(0).equals("--live");
    Options options = Options.parse(live ? rest.subList(1, rest.size()) : rest, library);
    Run run = new Run(library, options, Machine.told());
    if (live) {
      System.out.println(run.live());
      return 0;
    }
    return run.run();
  }
}
