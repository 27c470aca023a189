package org.loam.jvm.harness;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/**
 * What the collector has done so far: its pauses as the virtual machine counts them, its threads'
 * processor time.
 */
record Collections(double pauseSeconds, long pauses, double cpuSeconds) {
  static Collections now() {
    double milliseconds = 0;
    long count = 0;
    for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
      if (isOfPauses(bean.getName())) {
        milliseconds += Math.max(0, bean.getCollectionTime());
        count += Math.max(0, bean.getCollectionCount());
      }
    }
    return new Collections(milliseconds / 1e3, count, Tasks.collectorCpuNs() / 1e9);
  }

  /**
   * Concurrent collectors have a second bean that counts whole cycles, in which the program runs.
   */
  static boolean isOfPauses(String bean) {
    return !bean.endsWith("Cycles") && !bean.endsWith("Concurrent GC");
  }
}
