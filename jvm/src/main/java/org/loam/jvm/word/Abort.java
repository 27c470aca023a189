package org.loam.jvm.word;

/** An attempt meets a conflict and must be run again. There is one, without a trace. */
public final class Abort extends Error {
  private static final long serialVersionUID = 1;
  static final Abort INSTANCE = new Abort();

  private Abort() {
    super("a transaction met another one", null, false, false);
  }
}
