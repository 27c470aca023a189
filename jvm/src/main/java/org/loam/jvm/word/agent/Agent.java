package org.loam.jvm.word.agent;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Stream;

/**
 * Instruments the classes of the packages that its argument names, as {@code org/one/,org/two/}.
 * One that finds no class there ends the machine: code that runs as it was would lose updates
 * without a word.
 */
public final class Agent implements ClassFileTransformer {
  private static final int BAD_INPUT = 2;

  private final Instrumented instrumented;

  Agent(Instrumented instrumented) {
    this.instrumented = instrumented;
  }

  public static void premain(String argument, Instrumentation instrumentation) {
    List<String> prefixes = Stream.of((argument == null ? "" : argument).split(",")).toList();
    for (String prefix : prefixes) {
      if (prefix.isEmpty() || !isThere(prefix)) {
        refuse(
            "-javaagent="
                + prefix
                + ": no class to instrument begins with this on the class path (name packages, as in org/example/)");
      }
    }
    instrumentation.addTransformer(new Agent(new Instrumented(prefixes)));
  }

  @Override
  public byte[] transform(
      ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] code) {
    if (!instrumented.covers(name)) {
      return null;
    }
    try {
      return instrumented.instrument(code);
    } catch (RuntimeException | Error problem) {
      // The virtual machine would go on with the class as it was.
      problem.printStackTrace();
      refuse(name + ": cannot be instrumented: " + problem);
      return null;
    }
  }

  static boolean isThere(String prefix) {
    return Stream.of(System.getProperty("java.class.path").split(java.io.File.pathSeparator))
        .map(Path::of)
        .anyMatch(place -> holds(place, prefix));
  }

  private static boolean holds(Path place, String prefix) {
    if (Files.isDirectory(place)) {
      return Files.isDirectory(place.resolve(prefix));
    }
    try (JarFile jar = new JarFile(place.toFile())) {
      return jar.stream()
          .anyMatch(
              entry -> entry.getName().startsWith(prefix) && entry.getName().endsWith(".class"));
    } catch (IOException noJar) {
      return false;
    }
  }

  private static void refuse(String problem) {
    System.err.println("error: " + problem);
    Runtime.getRuntime().halt(BAD_INPUT);
  }

  /** Whether an agent has instrumented a class; its accesses count as transactional only then. */
  public static boolean hasInstrumented(Class<?> type) {
    return Stream.of(type.getMethods())
        .anyMatch(method -> method.getName().endsWith(Names.IN_TRANSACTION));
  }
}
