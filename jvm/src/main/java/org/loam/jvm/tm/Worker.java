package org.loam.jvm.tm;

/** A thread's own: what its library counts, and what it keeps from one transaction to the next. */
public final class Worker {
  private final int thread;
  private long attempts;
  private long commits;

  public Worker(int thread) {
    this.thread = thread;
  }

  public int thread() {
    return thread;
  }

  public void attempt() {
    ++attempts;
  }

  public void commit() {
    ++commits;
  }

  public long aborts() {
    return attempts - commits;
  }

  public void reset() {
    attempts = 0;
    commits = 0;
  }
}
