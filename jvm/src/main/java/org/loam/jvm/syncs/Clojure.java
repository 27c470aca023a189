package org.loam.jvm.syncs;

import clojure.lang.LockingTransaction;
import clojure.lang.Ref;
import java.util.List;
import java.util.concurrent.Callable;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** The references of Clojure 1.12, as a Java program uses them. */
public final class Clojure extends Library {
  private Tx access = new Access(false);

  @Override
  public String summary() {
    return "Clojure's references on the JVM: many versions of each";
  }

  @Override
  public String guarantees() {
    return "snapshot isolation: two transactions may each read what the other one writes (write skew); with -p reads=ensure "
        + "serialisable; numbers are boxed, and every access looks its transaction up by thread";
  }

  @Override
  public List<Parameter> parameters() {
    return List.of(
        Parameter.choice(
            "reads",
            List.of("deref", "ensure"),
            "ensure: a read also keeps others from writing until commit"));
  }

  @Override
  public void configure(Options options) {
    access = new Access(options.choice("reads").equals("ensure"));
  }

  @Override
  public double atomically(Worker worker, Body body) {
    try {
      Callable<Double> attempt =
          () -> {
            worker.attempt();
            return body.run(access);
          };
      double result = (Double) LockingTransaction.runInTransaction(attempt);
      worker.commit();
      return result;
    } catch (RuntimeException failure) {
      throw failure;
    } catch (Exception failure) {
      throw new IllegalStateException(failure);
    }
  }

  private static final class Access extends Tx {
    private final boolean ensures;

    Access(boolean ensures) {
      this.ensures = ensures;
    }

    @Override
    public boolean hasCells() {
      return true;
    }

    @Override
    public Object cell(Object value) {
      return new Ref(value);
    }

    @Override
    public Object numberCell(long number) {
      return cell(number);
    }

    @Override
    @SuppressWarnings("unchecked") // cell() made it
    public <T> T get(Object held) {
      Ref ref = (Ref) held;
      if (ensures) {
        ref.touch();
      }
      return (T) ref.deref();
    }

    @Override
    public void set(Object cell, Object value) {
      ((Ref) cell).set(value);
    }

    @Override
    public long number(Object cell) {
      return this.<Long>get(cell);
    }

    @Override
    public void number(Object cell, long value) {
      set(cell, value);
    }
  }
}
