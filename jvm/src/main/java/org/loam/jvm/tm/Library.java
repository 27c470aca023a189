package org.loam.jvm.tm;

import java.util.List;
import java.util.Locale;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Parameter;

/**
 * A way to synchronise: a transactional library, a lock, or nothing. Every concrete class of the
 * package org.loam.jvm.syncs that extends this is one; its name is jvm- and the class's name in
 * small letters.
 *
 * <p>Libraries of cells guard what lies in cells of theirs. The others let programs keep their data
 * in plain fields. Which it is says the Tx that they hand to a transaction's body.
 */
public abstract class Library {
  public static final int THREADS_MAX = 1024;

  public final String name() {
    return nameOf(getClass().getSimpleName());
  }

  /** The name of the library that a class is, by the class's simple name. */
  public static String nameOf(String type) {
    return "jvm-" + type.toLowerCase(Locale.ROOT);
  }

  public abstract String summary();

  /** What a program may rely on, and the library's traps. */
  public abstract String guarantees();

  /** Where the library is described; may be empty. */
  public String paper() {
    return "";
  }

  public List<Parameter> parameters() {
    return List.of();
  }

  public int threadsMax() {
    return THREADS_MAX;
  }

  /** False: threads that share objects lose updates. */
  public boolean synchronises() {
    return true;
  }

  /** Before any data is made. */
  public void configure(Options options) {}

  /** Runs the body as one transaction; returns its result. */
  public abstract double atomically(Worker worker, Body body);
}
