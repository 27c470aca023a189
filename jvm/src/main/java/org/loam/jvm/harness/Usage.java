package org.loam.jvm.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this virtual machine used, without the process that it was before it became one. */
record Usage(double wallSeconds, double userSeconds, double systemSeconds, long peakBytes) {
  // Linux counts processor time in these ticks towards programs, on every architecture that Debian
  // has.
  private static final double TICKS_PER_SECOND = 100;

  static Usage sinceStart() {
    try {
      String stat = Files.readString(Path.of("/proc/self/stat"));
      // The name may hold spaces; the fields after it begin with the third.
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      double user = Long.parseLong(fields[11]) / TICKS_PER_SECOND - told("loam.front_user_s");
      double system = Long.parseLong(fields[12]) / TICKS_PER_SECOND - told("loam.front_system_s");
      double wall = ManagementFactory.getRuntimeMXBean().getUptime() / 1e3;
      return new Usage(wall, Math.max(0, user), Math.max(0, system), peak());
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  Json record() {
    return new Json()
        .object()
        .field("kind", "process")
        .field("wall_s", wallSeconds)
        .field("user_s", userSeconds)
        .field("system_s", systemSeconds)
        .field("rss_peak_bytes", peakBytes)
        .end();
  }

  private static double told(String property) {
    return Double.parseDouble(System.getProperty(property, "0"));
  }

  private static long peak() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmHWM:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
      }
    }
    return 0;
  }
}
