package org.loam.jvm.harness;

/**
 * What the process that started this virtual machine knows and says in system properties: the heap
 * limit that it gave, and the live data from which it computed it, 0 where it did not measure it.
 */
record Machine(long heapBytes, long liveBytes, String preset) {
  static Machine told() {
    return new Machine(
        Long.getLong("loam.heap_bytes", Runtime.getRuntime().maxMemory()),
        Long.getLong("loam.live_bytes", 0),
        System.getProperty("loam.preset", "release"));
  }

  static String compiler() {
    return System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version");
  }
}
