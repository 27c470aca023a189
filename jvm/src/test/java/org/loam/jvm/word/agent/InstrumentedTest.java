package org.loam.jvm.word.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.loam.jvm.word.Context;
import org.loam.jvm.word.Unshared;

class InstrumentedTest {
  private static final int THREADS = 3;
  private static final int INCREMENTS = 20_000;

  @Unshared
  static final class OfOneThread {}

  /** Defines Sample and its base with what the agent makes of them; all else is the tests' own. */
  private static final class Loader extends ClassLoader {
    private final Instrumented instrumented =
        new Instrumented(List.of("org/loam/jvm/word/agent/Sample")) {
          @Override
          boolean covers(String name) {
            return name.matches("org/loam/jvm/word/agent/Sample(Base)?");
          }
        };

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      String path = name.replace('.', '/');
      Class<?> defined = findLoadedClass(name);
      if (defined != null || !instrumented.covers(path)) {
        return defined != null ? defined : super.loadClass(name, resolve);
      }
      try (InputStream code = ClassLoader.getSystemResourceAsStream(path + ".class")) {
        byte[] made = instrumented.instrument(code.readAllBytes());
        return defineClass(name, made, 0, made.length);
      } catch (IOException problem) {
        throw new ClassNotFoundException(name, problem);
      }
    }
  }

  private static SampleCalls sample() throws ReflectiveOperationException {
    Class<?> type = new Loader().loadClass("org.loam.jvm.word.agent.Sample");
    assertTrue(Agent.hasInstrumented(type));
    return (SampleCalls) type.getDeclaredConstructor().newInstance();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void noUpdateIsLost(boolean extendsSnapshots) throws Exception {
    Context.extendSnapshots(extendsSnapshots);
    SampleCalls shared = sample();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; ++i) {
      Thread thread =
          new Thread(
              () -> {
                for (int k = 0; k < INCREMENTS; ++k) {
                  shared.increment(2, 0.5);
                }
              });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertEquals(2 * THREADS * INCREMENTS, shared.number());
    assertEquals(2 * THREADS * INCREMENTS, shared.sum());
    assertEquals(THREADS * INCREMENTS, shared.total());
  }

  @Test
  void everyKindOfWordIsReadAsItWasWritten() throws Exception {
    SampleCalls instrumented = sample();
    SampleCalls plain = new Sample();
    for (int i = 0; i < 3; ++i) {
      assertEquals(plain.roundTrip(), instrumented.roundTrip());
    }
  }

  @Test
  void anExceptionCommitsAndIsThrown() throws Exception {
    SampleCalls shared = sample();
    assertThrows(IllegalArgumentException.class, shared::fail);
    assertEquals(77, shared.number());
  }

  @Test
  void aClassAsItWasIsSeen() {
    assertFalse(Agent.hasInstrumented(Sample.class));
  }

  @Test
  void aPrefixWithoutClassesIsSeen() {
    assertFalse(Agent.isThere("org/none/"));
    assertTrue(Agent.isThere("org/loam/jvm/"));
  }

  @Test
  void whatBelongsToOneThreadIsLeftAsItIs() {
    Instrumented all = new Instrumented(List.of("org/loam/"));
    assertTrue(all.hierarchy().of(OfOneThread.class.getName().replace('.', '/')).isUnshared);
    assertFalse(all.hierarchy().of("org/loam/jvm/word/agent/Sample").isUnshared);
  }
}
