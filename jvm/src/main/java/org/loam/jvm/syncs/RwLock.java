package org.loam.jvm.syncs;

import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** One fair read-write lock for all threads: the coarse lock of STMBench7. */
public final class RwLock extends Library {
  private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock(true);

  @Override
  public String summary() {
    return "one fair read-write lock for all threads, on the JVM";
  }

  @Override
  public String guarantees() {
    return "transactions that only read share it; one that writes runs alone";
  }

  @Override
  public double atomically(Worker worker, Body body) {
    java.util.concurrent.locks.Lock taken = body.onlyReads() ? lock.readLock() : lock.writeLock();
    taken.lock();
    try {
      return body.run(Tx.FIELDS);
    } finally {
      taken.unlock();
    }
  }
}
