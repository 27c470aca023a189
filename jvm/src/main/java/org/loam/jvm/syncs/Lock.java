package org.loam.jvm.syncs;

import java.util.concurrent.locks.ReentrantLock;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** One lock of java.util.concurrent for all threads. */
public final class Lock extends Library {
  private final ReentrantLock lock = new ReentrantLock();

  @Override
  public String summary() {
    return "one ReentrantLock for all threads, on the JVM";
  }

  @Override
  public String guarantees() {
    return "one transaction at a time";
  }

  @Override
  public double atomically(Worker worker, Body body) {
    lock.lock();
    try {
      return body.run(Tx.FIELDS);
    } finally {
      lock.unlock();
    }
  }
}
