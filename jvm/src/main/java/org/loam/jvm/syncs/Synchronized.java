package org.loam.jvm.syncs;

import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** One monitor for all threads. */
public final class Synchronized extends Library {
  private final Object monitor = new Object();

  @Override
  public String summary() {
    return "one monitor for all threads, on the JVM: synchronized";
  }

  @Override
  public String guarantees() {
    return "one transaction at a time";
  }

  @Override
  public double atomically(Worker worker, Body body) {
    synchronized (monitor) {
      return body.run(Tx.FIELDS);
    }
  }
}
