package org.loam.jvm.syncs;

import java.util.logging.Level;
import java.util.logging.Logger;
import org.loam.jvm.harness.Options;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;
import org.multiverse.api.StmUtils;
import org.multiverse.api.Txn;
import org.multiverse.api.callables.TxnDoubleCallable;
import org.multiverse.api.references.TxnLong;
import org.multiverse.api.references.TxnRef;

/** Multiverse 0.7.0, with the forms that take the transaction as an argument. */
public final class Multiverse extends Library {
  // Held, so that the level stays set.
  private static final Logger LOGGER = Logger.getLogger("org.multiverse");

  @Override
  public String summary() {
    return "Multiverse on the JVM: references of its own, read set in a hash table";
  }

  @Override
  public String guarantees() {
    return "opacity; unmaintained since 2013";
  }

  @Override
  public String paper() {
    return "Meawad, Macnak, Vitek, Collecting transactional garbage, TRANSACT 2011";
  }

  @Override
  public void configure(Options options) {
    LOGGER.setLevel(Level.WARNING);
  }

  @Override
  public double atomically(Worker worker, Body body) {
    double result =
        StmUtils.atomic(
            (TxnDoubleCallable)
                txn -> {
                  worker.attempt();
                  return body.run(new Access(txn));
                });
    worker.commit();
    return result;
  }

  private static final class Access extends Tx {
    private final Txn txn;

    Access(Txn txn) {
      this.txn = txn;
    }

    @Override
    public boolean hasCells() {
      return true;
    }

    @Override
    public Object cell(Object value) {
      return StmUtils.newTxnRef(value);
    }

    @Override
    public Object numberCell(long number) {
      return StmUtils.newTxnLong(number);
    }

    @Override
    @SuppressWarnings("unchecked") // cell() made it
    public <T> T get(Object held) {
      return ((TxnRef<T>) held).get(txn);
    }

    @Override
    @SuppressWarnings("unchecked")
    public void set(Object cell, Object value) {
      ((TxnRef<Object>) cell).set(txn, value);
    }

    @Override
    public long number(Object cell) {
      return ((TxnLong) cell).get(txn);
    }

    @Override
    public void number(Object cell, long value) {
      ((TxnLong) cell).set(txn, value);
    }
  }
}
