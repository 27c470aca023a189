package org.loam.jvm.syncs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import clojure.lang.LockingTransaction;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.DoubleSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;
import org.multiverse.api.StmUtils;
import org.multiverse.api.callables.TxnDoubleCallable;
import org.multiverse.api.references.TxnLong;
import scala.concurrent.stm.Ref;
import scala.concurrent.stm.japi.STM;

/** What our side of a library allocates: something for a transaction, nothing for an access. */
class AdaptersTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int CELLS = 2000;
  private static final int ROUNDS = 60;
  private static final long OF_A_TRANSACTION = 1024;

  /** Makes cells with numbers that boxes are made for. */
  private static final class Making implements Body {
    private final List<Object> cells = new ArrayList<>();

    @Override
    public double run(Tx tx) {
      cells.clear();
      for (int i = 0; i < CELLS; ++i) {
        cells.add(tx.numberCell(1000 + i));
      }
      return 0;
    }
  }

  private record Adding(List<Object> cells) implements Body {
    @Override
    public double run(Tx tx) {
      double sum = 0;
      for (Object cell : cells) {
        sum += tx.number(cell);
      }
      return sum;
    }
  }

  static Stream<Arguments> libraries() {
    return Stream.of(
        Arguments.of(new Multiverse(), (Direct) AdaptersTest::multiverse),
        Arguments.of(new ScalaStm(), (Direct) AdaptersTest::scala),
        Arguments.of(new Clojure(), (Direct) AdaptersTest::clojure));
  }

  /** The sum of cells, as a program without our interface takes it. */
  private interface Direct {
    double sum(List<Object> cells);
  }

  private static double multiverse(List<Object> cells) {
    return StmUtils.atomic(
        (TxnDoubleCallable)
            txn -> {
              double sum = 0;
              for (Object cell : cells) {
                sum += ((TxnLong) cell).get(txn);
              }
              return sum;
            });
  }

  private static double scala(List<Object> cells) {
    return STM.atomic(
        (Callable<Double>)
            () -> {
              double sum = 0;
              for (Object cell : cells) {
                sum += (Long) ((Ref<?>) cell).single().get();
              }
              return sum;
            });
  }

  private static double clojure(List<Object> cells) {
    Callable<Double> attempt =
        () -> {
          double sum = 0;
          for (Object cell : cells) {
            sum += (Long) ((clojure.lang.Ref) cell).deref();
          }
          return sum;
        };
    try {
      return (Double) LockingTransaction.runInTransaction(attempt);
    } catch (Exception failure) {
      throw new IllegalStateException(failure);
    }
  }

  /** The least of many rounds: classes load and code is compiled in the first ones. */
  private static long allocated(DoubleSupplier transaction) {
    long least = Long.MAX_VALUE;
    double expected = (1000.0 + 1000 + CELLS - 1) * CELLS / 2;
    for (int i = 0; i < ROUNDS; ++i) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      double sum = transaction.getAsDouble();
      least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
      assertEquals(expected, sum);
    }
    return least;
  }

  @ParameterizedTest
  @MethodSource("libraries")
  void anAccessAllocatesNoMoreThanTheLibraryDoes(Library library, Direct direct) {
    Worker worker = new Worker(0);
    Making making = new Making();
    library.atomically(worker, making);
    Adding adding = new Adding(making.cells);
    long theirs = allocated(() -> direct.sum(making.cells));
    long ours = allocated(() -> library.atomically(worker, adding));
    assertTrue(ours <= theirs + OF_A_TRANSACTION, ours + " against " + theirs);
  }
}
