package org.loam.jvm.syncs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

class RwLockTest {
  /** Waits for another one to be inside at the same time; returns whether it came. */
  private static final class Meeting implements Body {
    private final CountDownLatch inside = new CountDownLatch(2);
    private final boolean onlyReads;
    private final long waitMs;

    Meeting(boolean onlyReads, long waitMs) {
      this.onlyReads = onlyReads;
      this.waitMs = waitMs;
    }

    @Override
    public double run(Tx tx) {
      inside.countDown();
      try {
        return inside.await(waitMs, TimeUnit.MILLISECONDS) ? 1 : 0;
      } catch (InterruptedException interrupted) {
        throw new IllegalStateException(interrupted);
      }
    }

    @Override
    public boolean onlyReads() {
      return onlyReads;
    }
  }

  private static double met(Meeting meeting) throws InterruptedException {
    RwLock lock = new RwLock();
    List<Double> met = new ArrayList<>();
    Thread other =
        new Thread(
            () -> {
              double result = lock.atomically(new Worker(1), meeting);
              synchronized (met) {
                met.add(result);
              }
            });
    other.start();
    double own = lock.atomically(new Worker(0), meeting);
    other.join();
    synchronized (met) {
      return own + met.get(0);
    }
  }

  @Test
  void readersAreInsideTogether() throws InterruptedException {
    assertEquals(2, met(new Meeting(true, 60_000)));
  }

  @Test
  void aWriterIsAlone() throws InterruptedException {
    // The first waits in vain; the second finds that both have been inside.
    assertEquals(1, met(new Meeting(false, 50)));
  }
}
