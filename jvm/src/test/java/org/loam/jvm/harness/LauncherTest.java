package org.loam.jvm.harness;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LauncherTest {
  private static String refusal(String... arguments) {
    return assertThrows(
            BadInput.class, () -> Options.parse(List.of(arguments), Registry.library("jvm-plain")))
        .getMessage();
  }

  @Test
  void badInputNamesSubjectValueAndLimit() {
    assertEquals(
        "WORKLOAD=gcbunch: no such workload; known: gcbench leetm stmbench7 wormbench",
        refusal("gcbunch"));
    assertEquals(
        "-p size=0: must be an integer from 1 to 4000 (default 400)",
        refusal("gcbench", "-p", "size=0"));
    assertEquals(
        "-p size=many: must be an integer from 1 to 4000 (default 400)",
        refusal("gcbench", "-p", "size=many"));
    assertEquals(
        "--threads=0: must be an integer from 1 to 1024", refusal("gcbench", "--threads", "0"));
    assertEquals("--seed: needs a value after it", refusal("gcbench", "--seed"));
    assertEquals(
        "--blame: jvm-plain has no blame mode (leave it out)", refusal("gcbench", "--blame"));
    assertTrue(refusal("gcbench", "-p", "collector=cms").contains("serial, parallel, g1"));
    assertEquals(
        "-p only=T1: a long traversal, with long=off (leave long on)",
        refusal("stmbench7", "-p", "only=T1", "-p", "long=off"));
    assertTrue(refusal("wormbench", "-p", "size=128", "-p", "head=16").contains("do not fit"));
  }

  @Test
  void anUnknownLibraryIsNamedWithTheOthers() {
    String said = assertThrows(BadInput.class, () -> Registry.library("jvm-none")).getMessage();
    assertTrue(said.contains("jvm-multiverse") && said.contains("jvm-word"), said);
  }

  @Test
  void everyLibraryDescribesItself() {
    for (org.loam.jvm.tm.Library library : Registry.libraries()) {
      String text = Description.of(library).toString();
      assertTrue(text.startsWith("{\"schema\":2,\"sync\":{\"name\":\"" + library.name()), text);
      assertFalse(library.guarantees().isEmpty(), library.name());
    }
  }

  private static boolean isSteady(double compiling, double... costs) {
    return WarmUp.isSteady(
        DoubleStream.of(costs).mapToObj(cost -> new WarmUp.Round(cost, compiling)).toList(), false);
  }

  @Test
  void warmUpEndsWhereTheCostStaysAndTheCompilerIsIdle() {
    assertFalse(isSteady(0, 1, 1, 1, 1));
    assertFalse(isSteady(0, 9, 4, 2, 1.5, 1.2));
    assertTrue(isSteady(0, 9, 4, 1.1, 1, 1, 1.05, 1));
    assertFalse(isSteady(0.5, 9, 4, 1.1, 1, 1, 1.05, 1));
  }

  @Test
  void warmUpEndsOnANoisyMachineWhereTheMediansStay() {
    double[] noisy = new double[20];
    double[] falling = new double[20];
    for (int i = 0; i < 20; ++i) {
      noisy[i] = i % 4 == 0 ? 1.4 : 1 + i % 3 * 0.02;
      falling[i] = 3 - i * 0.1;
    }
    assertTrue(isSteady(0, noisy));
    assertFalse(isSteady(0, java.util.Arrays.copyOf(noisy, 19)));
    assertFalse(isSteady(0.5, noisy));
    assertFalse(isSteady(0, falling));
  }

  @Test
  void ofUnevenWorkOnlyTheCompilerSaysWhenItIsWarm() {
    List<WarmUp.Round> rounds = java.util.Collections.nCopies(4, new WarmUp.Round(1, 0));
    List<WarmUp.Round> jump = new ArrayList<>(rounds);
    jump.add(new WarmUp.Round(7, 0));
    assertFalse(WarmUp.isSteady(jump, false));
    assertTrue(WarmUp.isSteady(jump, true));
    jump.set(4, new WarmUp.Round(7, 0.9));
    assertFalse(WarmUp.isSteady(jump, true));
  }

  @ParameterizedTest
  @CsvSource({
    "Copy,true",
    "PS Scavenge,true",
    "G1 Young Generation,true",
    "ZGC Pauses,true",
    "ZGC Cycles,false",
    "Shenandoah Cycles,false",
    "G1 Concurrent GC,false"
  })
  void onlyPausesAreSummed(String bean, boolean counts) {
    assertEquals(counts, Collections.isOfPauses(bean));
  }

  @ParameterizedTest
  @CsvSource({
    "VM Thread,true", "GC Thread#0,true", "G1 Conc#0,true", "ZWorker#1,true",
    "Shenandoah GC T,true", "C2 CompilerThre,false", "loam-0,false", "java,false"
  })
  void collectingThreadsAreKnownByName(String thread, boolean collects) {
    assertEquals(collects, Tasks.collects(thread));
  }

  @Test
  void jsonIsQuoted() {
    Json json = new Json().object().field("a", "x\"\\\n").field("b", Double.NaN).array("c");
    assertEquals(
        "{\"a\":\"x\\\"\\\\\\u000a\",\"c\":[1,true]}",
        json.value(1).value(true).end().end().toString());
  }
}
