package org.loam.jvm.word;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * A thread's transaction over words, in the manner of Deuce: versioned locks in a table, found by
 * an object's identity and an offset; writes wait in a redo log until commit. Log entries are
 * objects that a thread keeps and uses again.
 *
 * <p>Two engines. TL2: what is newer than the transaction's start ends the attempt. LSA: then the
 * snapshot is moved to now if everything read so far is unchanged.
 *
 * <p>Guarantees opacity: every read is checked before its value is used.
 *
 * <p>A lock: version * 2, or with the lowest bit set the owner's number * 2 + 1. Orders: locks are
 * volatile; commit (word.A) releases each lock after the words that it guards were written, and
 * read() loads the lock before and after the word with a fence between: without it a word of a
 * later commit could pass for an older version.
 */
public final class Context {
  private static final int LOCKS = 1 << 20;
  private static final AtomicLongArray TABLE = new AtomicLongArray(LOCKS);
  private static final AtomicLong CLOCK = new AtomicLong();
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static final ThreadLocal<Context> CURRENT = ThreadLocal.withInitial(Context::new);

  private static volatile boolean extendsSnapshot;

  /** A word that was read. */
  private static final class Read {
    private Object object;
    private int lock;
  }

  /** A word that is to be written. */
  private static final class Write {
    private Object object;
    private long offset;
    private int kind;
    private int lock;
    private boolean locks;
    private long version;
    private long bits;
    private Object reference;
    private Write next;
  }

  private final long mine = NUMBERS.incrementAndGet() * 2 + 1;
  private Read[] reads = new Read[1024];
  private Write[] writes = new Write[256];
  private Write[] buckets = new Write[512];
  private int readCount;
  private int writeCount;
  private long snapshot;
  private boolean active;
  private long attempts;
  private long commits;

  private Context() {}

  /** The calling thread's. */
  public static Context current() {
    return CURRENT.get();
  }

  /** Chooses LSA, or TL2, for all transactions from now on. */
  public static void extendSnapshots(boolean yes) {
    extendsSnapshot = yes;
  }

  public boolean isActive() {
    return active;
  }

  public long attempts() {
    return attempts;
  }

  public long commits() {
    return commits;
  }

  public void begin() {
    ++attempts;
    active = true;
    snapshot = CLOCK.get();
  }

  /** Ends the attempt without effect. */
  public void abort() {
    end();
    Thread.yield();
  }

  long read(Object object, long offset, int kind) {
    Write own = find(object, offset);
    if (own != null) {
      return own.bits;
    }
    int lock = lock(object, offset);
    long before = TABLE.get(lock);
    long bits = Memory.bits(object, offset, kind);
    seen(object, lock, before);
    return bits;
  }

  Object read(Object object, long offset) {
    Write own = find(object, offset);
    if (own != null) {
      return own.reference;
    }
    int lock = lock(object, offset);
    long before = TABLE.get(lock);
    Object reference = Memory.reference(object, offset);
    seen(object, lock, before);
    return reference;
  }

  void write(Object object, long offset, int kind, long bits, Object reference) {
    Write entry = find(object, offset);
    if (entry == null) {
      entry = added(object, offset, kind);
    }
    entry.bits = bits;
    entry.reference = reference;
  }

  /** Returns whether the transaction has taken effect; if not, the attempt has ended. */
  public boolean commit() {
    if (writeCount != 0 && !publish()) {
      abort();
      return false;
    }
    ++commits;
    end();
    return true;
  }

  private void seen(Object object, int lock, long before) {
    Memory.loadFence(); // pairs with the volatile stores of word.A
    if ((before & 1) != 0 || TABLE.get(lock) != before) {
      throw Abort.INSTANCE;
    }
    append(object, lock);
    if (before >>> 1 > snapshot && !extend(before)) {
      throw Abort.INSTANCE;
    }
  }

  /** Moves the snapshot to now; the read that asks for it is in the log already. */
  private boolean extend(long newest) {
    if (!extendsSnapshot) {
      return false;
    }
    long now = CLOCK.get();
    // The newest read may be newer than the old snapshot, but unchanged since; all others may not
    // be newer.
    for (int i = 0; i < readCount - 1; ++i) {
      long word = TABLE.get(reads[i].lock);
      if ((word & 1) != 0 || word >>> 1 > snapshot) {
        return false;
      }
    }
    if (newest >>> 1 > now || TABLE.get(reads[readCount - 1].lock) != newest) {
      return false;
    }
    snapshot = now;
    return true;
  }

  private boolean publish() {
    for (int i = 0; i < writeCount; ++i) {
      Write entry = writes[i];
      long word = TABLE.get(entry.lock);
      if (word == mine) {
        continue; // another of our words has the same lock
      }
      if ((word & 1) != 0 || !TABLE.compareAndSet(entry.lock, word, mine)) {
        release(i, 0);
        return false;
      }
      entry.locks = true;
      entry.version = word >>> 1;
    }
    long now = CLOCK.incrementAndGet();
    if (now != snapshot + 1 && !isValid()) {
      release(writeCount, 0);
      return false;
    }
    for (int i = 0; i < writeCount; ++i) {
      Write entry = writes[i];
      if (entry.kind == Memory.REFERENCE) {
        Memory.reference(entry.object, entry.offset, entry.reference);
      } else {
        Memory.bits(entry.object, entry.offset, entry.kind, entry.bits);
      }
    }
    release(writeCount, now);
    return true;
  }

  private boolean isValid() {
    for (int i = 0; i < readCount; ++i) {
      long word = TABLE.get(reads[i].lock);
      if (word == mine) {
        word = versionBefore(reads[i].lock) * 2;
      }
      if ((word & 1) != 0 || word >>> 1 > snapshot) {
        return false;
      }
    }
    return true;
  }

  /** Of a lock that this transaction owns: entries of one lock are in one bucket. */
  private long versionBefore(int lock) {
    Write entry = buckets[lock & buckets.length - 1];
    for (; entry != null; entry = entry.next) {
      if (entry.locks && entry.lock == lock) {
        return entry.version;
      }
    }
    throw new IllegalStateException("a lock of ours has no entry");
  }

  /**
   * word.A: gives the locks of the first entries back, with a new version, or with 0 the old one.
   */
  private void release(int count, long version) {
    for (int i = 0; i < count; ++i) {
      Write entry = writes[i];
      if (entry.locks) {
        TABLE.set(entry.lock, (version == 0 ? entry.version : version) * 2);
        entry.locks = false;
      }
    }
  }

  private static int lock(Object object, long offset) {
    int hash = System.identityHashCode(object) * 31 + (int) offset;
    return (hash ^ hash >>> 15) & LOCKS - 1;
  }

  private void append(Object object, int lock) {
    if (readCount == reads.length) {
      reads = java.util.Arrays.copyOf(reads, 2 * readCount);
    }
    Read entry = reads[readCount];
    if (entry == null) {
      entry = new Read();
      reads[readCount] = entry;
    }
    ++readCount;
    entry.object = object;
    entry.lock = lock;
  }

  private Write find(Object object, long offset) {
    if (writeCount == 0) {
      return null;
    }
    Write entry = buckets[lock(object, offset) & buckets.length - 1];
    while (entry != null && (entry.object != object || entry.offset != offset)) {
      entry = entry.next;
    }
    return entry;
  }

  private Write added(Object object, long offset, int kind) {
    if (writeCount == writes.length) {
      grow();
    }
    Write entry = writes[writeCount];
    if (entry == null) {
      entry = new Write();
      writes[writeCount] = entry;
    }
    ++writeCount;
    entry.object = object;
    entry.offset = offset;
    entry.kind = kind;
    entry.lock = lock(object, offset);
    link(entry);
    return entry;
  }

  private void link(Write entry) {
    int bucket = entry.lock & buckets.length - 1;
    entry.next = buckets[bucket];
    buckets[bucket] = entry;
  }

  private void grow() {
    writes = java.util.Arrays.copyOf(writes, 2 * writeCount);
    buckets = new Write[4 * writeCount];
    for (int i = 0; i < writeCount; ++i) {
      link(writes[i]);
    }
  }

  /** Entries stay, but hold no object: a thread's log must not keep garbage. */
  private void end() {
    active = false;
    for (int i = 0; i < readCount; ++i) {
      reads[i].object = null;
    }
    for (int i = 0; i < writeCount; ++i) {
      Write entry = writes[i];
      buckets[entry.lock & buckets.length - 1] = null;
      entry.object = null;
      entry.reference = null;
      entry.next = null;
    }
    readCount = 0;
    writeCount = 0;
  }
}
