package org.loam.jvm.harness;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.loam.jvm.tm.Worker;

/** Threads that work on an instance of a program at the same time. */
final class Team {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** What the threads did together; times in seconds. */
  static final class Sums {
    long transactions;
    long aborts;
    double cpuSeconds;
    double runDelaySeconds;
    long allocatedBytes;
    double elapsedSeconds;
    boolean exhausted;

    double cpuSecondsPerTransaction() {
      return transactions == 0 ? 0 : cpuSeconds / transactions;
    }
  }

  private static final class Member {
    long started;
    long ended;
    long cpu;
    long delay;
    long allocated;
    long transactions;
    boolean exhausted;
    Throwable failure;
  }

  private Team() {}

  /**
   * Lets each thread do its units, or as many as begin within nanoseconds.
   *
   * @param nanoseconds 0: all units
   */
  static Sums run(Program.Instance instance, int threads, long nanoseconds)
      throws InterruptedException {
    List<Member> members = new ArrayList<>();
    List<Worker> workers = new ArrayList<>();
    List<Thread> running = new ArrayList<>();
    CountDownLatch ready = new CountDownLatch(threads);
    CountDownLatch go = new CountDownLatch(1);
    for (int i = 0; i < threads; ++i) {
      Member member = new Member();
      Worker worker = new Worker(i);
      Thread thread =
          new Thread(() -> work(instance, worker, member, nanoseconds, ready, go), "loam-" + i);
      members.add(member);
      workers.add(worker);
      running.add(thread);
      thread.start();
    }
    ready.await();
    go.countDown();
    for (Thread thread : running) {
      thread.join();
    }
    return sums(members, workers);
  }

  private static void work(
      Program.Instance instance,
      Worker worker,
      Member member,
      long nanoseconds,
      CountDownLatch ready,
      CountDownLatch go) {
    try {
      ready.countDown();
      go.await();
      member.delay = Tasks.runDelayNs();
      member.allocated = THREADS.getCurrentThreadAllocatedBytes();
      member.cpu = THREADS.getCurrentThreadCpuTime();
      member.started = System.nanoTime();
      long units = nanoseconds == 0 ? instance.units(worker.thread()) : Long.MAX_VALUE;
      for (long done = 0; done < units; ++done) {
        int transactions = instance.work(worker, worker.thread());
        member.transactions += transactions;
        if (transactions == 0) {
          member.exhausted = true;
          break;
        }
        if (nanoseconds != 0 && System.nanoTime() - member.started > nanoseconds) {
          break;
        }
      }
      member.ended = System.nanoTime();
      member.cpu = THREADS.getCurrentThreadCpuTime() - member.cpu;
      member.allocated = THREADS.getCurrentThreadAllocatedBytes() - member.allocated;
      member.delay = Tasks.runDelayNs() - member.delay;
    } catch (OutOfMemoryError full) {
      Main.outOfMemory();
    } catch (Throwable failure) {
      member.failure = failure;
    }
  }

  private static Sums sums(List<Member> members, List<Worker> workers) {
    Sums sums = new Sums();
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (Member member : members) {
      if (member.failure != null) {
        throw new IllegalStateException("a thread failed: " + member.failure, member.failure);
      }
      sums.transactions += member.transactions;
      sums.cpuSeconds += member.cpu / 1e9;
      sums.runDelaySeconds += member.delay / 1e9;
      sums.allocatedBytes += member.allocated;
      sums.exhausted |= member.exhausted;
      first = Math.min(first, member.started);
      last = Math.max(last, member.ended);
    }
    sums.elapsedSeconds = (last - first) / 1e9;
    workers.forEach(worker -> sums.aborts += worker.aborts());
    return sums;
  }
}
