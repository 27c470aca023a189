package org.loam.jvm.harness;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.loam.jvm.programs.bench7.Operation;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

class ProgramsTest {
  /** An attempt takes effect although it is run again. */
  private static final class Losing extends Library {
    @Override
    public String summary() {
      return "loses updates";
    }

    @Override
    public String guarantees() {
      return "none";
    }

    @Override
    public double atomically(Worker worker, Body body) {
      body.run(Tx.FIELDS);
      return body.run(Tx.FIELDS);
    }
  }

  private record Done(String said, Team.Sums sums) {}

  /** All but jvm-word, whose classes an agent must have changed before. */
  static Stream<Library> libraries() {
    return Registry.libraries().stream().filter(library -> !library.name().equals("jvm-word"));
  }

  private static Done run(Library library, int threads, String... arguments) throws Exception {
    List<String> words = new ArrayList<>(List.of(arguments));
    words.addAll(List.of("--threads", Integer.toString(threads)));
    Options options = Options.parse(words, library);
    library.configure(options);
    Program.Instance instance = options.program.build(library, options);
    Team.Sums sums = Team.run(instance, threads, 0);
    String problem = instance.check();
    Json line = new Json().object();
    instance.addTo(line);
    return new Done(problem + line.end(), sums);
  }

  private static String own(Library library, int threads, String... arguments) throws Exception {
    return run(library, threads, arguments).said;
  }

  /** Of STMBench7 without what depends on the clock. */
  private static String bench7(Library library, int threads, String... arguments) throws Exception {
    List<String> words = new ArrayList<>(List.of("stmbench7", "-p", "size=tiny"));
    words.addAll(List.of(arguments));
    return own(library, threads, words.toArray(new String[0])).replaceAll(",\"sample_error.*", "}");
  }

  // The numbers are those of loam-workload-gc-raw with the same arguments.
  @ParameterizedTest
  @MethodSource("libraries")
  void gcbenchComputesWhatTheOneInCppDoes(Library library) throws Exception {
    assertEquals(
        "{\"nodes\":3476,\"checksum\":1458131868380898}",
        own(library, 1, "gcbench", "--seed", "7", "-p", "size=60", "-p", "operations=20"));
  }

  @ParameterizedTest
  @MethodSource("libraries")
  void wormsMoveAsTheyDoInCpp(Library library) throws Exception {
    assertEquals(
        "{\"moves\":3910}", own(library, 1, "wormbench", "--seed", "5", "-p", "operations=5000"));
  }

  @ParameterizedTest
  @MethodSource("libraries")
  void stmbench7ComputesWhatTheOneInCppDoes(Library library) throws Exception {
    assertEquals(
        "{\"succeeded\":379,\"failed\":21,\"visited\":2912334,\"checksum\":88823026232585}",
        bench7(library, 1, "--seed", "3", "-p", "mix=write", "-p", "operations=400"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"read", "read-write", "write"})
  void stmbench7ComputesTheSameWithTextsAsArrays(String mix) throws Exception {
    Library plain = Registry.library("jvm-plain");
    String[] shared = {"-p", "mix=" + mix, "-p", "operations=300", "-p", "texts=string"};
    String[] arrays = {"-p", "mix=" + mix, "-p", "operations=300", "-p", "texts=array"};
    assertEquals(bench7(plain, 1, shared), bench7(plain, 1, arrays));
  }

  @ParameterizedTest
  @MethodSource("libraries")
  void stmbench7StaysWholeUnderTwoThreads(Library library) throws Exception {
    int threads = library.synchronises() ? 2 : 1;
    List<String> words = new ArrayList<>(List.of("-p", "mix=write", "-p", "operations=200"));
    if (library.name().equals("jvm-clojure")) {
      words.addAll(List.of("-p", "reads=ensure")); // its snapshots alone allow write skew
    }
    String said = bench7(library, threads, words.toArray(new String[0]));
    assertTrue(said.startsWith("{\"succeeded\":"), said);
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void everyOperationSucceedsAndLeavesTheStructureWhole(Operation operation) throws Exception {
    Library plain = Registry.library("jvm-plain");
    String[] arguments = {"-p", "only=" + operation.name(), "-p", "operations=30"};
    String said = bench7(plain, 1, arguments);
    assertTrue(said.matches("\\{\"succeeded\":[1-9].*"), said);
    assertEquals(said, bench7(Registry.library("jvm-multiverse"), 1, arguments));
  }

  @Test
  void theMixDrawsItsOperationsAsPublished() throws Exception {
    String said =
        own(
            Registry.library("jvm-plain"),
            1,
            "stmbench7",
            "-p",
            "size=tiny",
            "-p",
            "mix=read-write",
            "-p",
            "long=off",
            "-p",
            "operations=20000");
    double error = Double.parseDouble(said.replaceAll(".*sample_error\":([^,]+),.*", "$1"));
    assertTrue(error < 0.01, said);
  }

  @ParameterizedTest
  @MethodSource("libraries")
  void tracksOfTwoThreadsDoNotMeet(Library library) throws Exception {
    int threads = library.synchronises() ? 2 : 1;
    for (String variant : List.of("base", "opt", "rm", "optrm")) {
      String tracks = variant.startsWith("opt") ? "tracks=10" : "tracks=2";
      assertEquals(
          "{\"laid\":" + tracks.substring(7) + ",\"failed\":0}",
          own(
              library,
              threads,
              "leetm",
              "-p",
              "board=crossing",
              "-p",
              tracks,
              "-p",
              "variant=" + variant),
          variant);
    }
  }

  // The number of tracks is that of loam-workload-gc-raw.
  @ParameterizedTest
  @ValueSource(strings = {"base", "opt", "rm", "optrm"})
  void allVariantsLayTheTracksThatTheOneInCppLays(String variant) throws Exception {
    assertEquals(
        "{\"laid\":100,\"failed\":0}",
        own(
            Registry.library("jvm-plain"),
            1,
            "leetm",
            "-p",
            "board=crossing",
            "-p",
            "variant=" + variant));
  }

  @Test
  void onlyTheWaveInTheTransactionAllocates() throws Exception {
    Library plain = Registry.library("jvm-plain");
    String[] own = {"leetm", "-p", "board=crossing", "-p", "tracks=8", "-p", "variant=optrm"};
    String[] made = {"leetm", "-p", "board=crossing", "-p", "tracks=8", "-p", "variant=rm"};
    long grids = 8L * 200 * 200 * 2 * Integer.BYTES;
    long before = run(plain, 1, own).sums.allocatedBytes;
    long more = run(plain, 1, made).sums.allocatedBytes - before;
    assertTrue(before < grids && more > grids, before + " and " + more + " more");
  }

  @Test
  void aLostUpdateIsFound() throws Exception {
    assertEquals(
        "the sum of the numbers is not what the operations made it{\"moves\":",
        own(new Losing(), 1, "wormbench", "-p", "operations=2000").replaceAll("[0-9]+}$", ""));
  }
}
