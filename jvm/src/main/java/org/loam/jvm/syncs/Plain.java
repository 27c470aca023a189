package org.loam.jvm.syncs;

import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** No synchronisation, the base of every comparison. */
public final class Plain extends Library {
  @Override
  public String summary() {
    return "no synchronisation, on the JVM: one thread, or data that each thread has to itself";
  }

  @Override
  public String guarantees() {
    return "none";
  }

  @Override
  public boolean synchronises() {
    return false;
  }

  @Override
  public double atomically(Worker worker, Body body) {
    worker.attempt();
    double result = body.run(Tx.FIELDS);
    worker.commit();
    return result;
  }
}
