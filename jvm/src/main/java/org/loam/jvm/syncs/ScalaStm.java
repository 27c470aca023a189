package org.loam.jvm.syncs;

import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;
import scala.Function1;
import scala.concurrent.stm.InTxn;
import scala.concurrent.stm.Ref;
import scala.concurrent.stm.TxnExecutor$;
import scala.concurrent.stm.TxnUnknown$;
import scala.concurrent.stm.japi.STM;

/**
 * ScalaSTM 0.11.1 with its reference implementation CCSTM, with the forms that take the transaction
 * as an argument.
 */
public final class ScalaStm extends Library {
  @Override
  public String summary() {
    return "ScalaSTM (CCSTM) on the JVM: references of its own, versions per reference";
  }

  @Override
  public String guarantees() {
    return "opacity; numbers are boxed";
  }

  @Override
  public String paper() {
    return "Bronson, Chafi, Olukotun, CCSTM, Scala Days 2010";
  }

  @Override
  public double atomically(Worker worker, Body body) {
    Function1<InTxn, Double> attempt =
        txn -> {
          worker.attempt();
          return body.run(new Access(txn));
        };
    double result = TxnExecutor$.MODULE$.defaultAtomic().apply(attempt, TxnUnknown$.MODULE$);
    worker.commit();
    return result;
  }

  private static final class Access extends Tx {
    private final InTxn txn;

    Access(InTxn txn) {
      this.txn = txn;
    }

    @Override
    public boolean hasCells() {
      return true;
    }

    @Override
    public Object cell(Object value) {
      return STM.newRef(value).ref();
    }

    // A reference to a boxed number: one of the library's own for numbers boxes in each read.
    @Override
    public Object numberCell(long number) {
      return cell(number);
    }

    @Override
    @SuppressWarnings("unchecked") // cell() made it
    public <T> T get(Object held) {
      return ((Ref<T>) held).get(txn);
    }

    @Override
    @SuppressWarnings("unchecked")
    public void set(Object cell, Object value) {
      ((Ref<Object>) cell).set(value, txn);
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
