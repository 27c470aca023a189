package org.loam.jvm.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;

/** What Linux says of this process's threads. */
final class Tasks {
  /**
   * Beginnings of the names of threads that collect, by collector; "VM Thread" collects for serial,
   * and starts and ends the pauses of the others.
   */
  private static final List<String> COLLECTING =
      List.of("VM Thread", "GC Thread", "G1 ", "ZWorker", "ZD", "ZStat", "ZUn", "Shenandoah");

  /** Beginnings of the names of the threads that compile. */
  private static final List<String> COMPILING = List.of("C1 Compiler", "C2 Compiler");

  private static final Path ALL = Path.of("/proc/self/task");

  private Tasks() {}

  /** Processor time of the collector's threads so far, in nanoseconds. */
  static long collectorCpuNs() {
    return cpuNs(COLLECTING);
  }

  /** Processor time of the compiler's threads so far; those that have ended no longer count. */
  static long compilerCpuNs() {
    return cpuNs(COMPILING);
  }

  private static long cpuNs(List<String> names) {
    long sum = 0;
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(ALL)) {
      for (Path task : tasks) {
        if (is(text(task.resolve("comm")), names)) {
          sum += number(text(task.resolve("schedstat")), 0);
        }
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return sum;
  }

  /** How long the calling thread was ready and waited for a processor, in nanoseconds. */
  static long runDelayNs() {
    return number(text(Path.of("/proc/thread-self/schedstat")), 1);
  }

  static boolean collects(String name) {
    return is(name, COLLECTING);
  }

  private static boolean is(String name, List<String> beginnings) {
    return beginnings.stream().anyMatch(name::startsWith);
  }

  private static long number(String schedstat, int field) {
    String[] fields = schedstat.strip().split(" ");
    return fields.length > field ? Long.parseLong(fields[field]) : 0;
  }

  private static String text(Path file) {
    try {
      return Files.readString(file);
    } catch (NoSuchFileException ended) {
      return ""; // the thread, while we looked
    } catch (IOException problem) {
      return "";
    }
  }
}
