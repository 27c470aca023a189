package org.loam.jvm.tm;

/**
 * What runs as one transaction, perhaps more than once. Programs implement it by classes with a
 * name: the agent of jvm-word does not see lambdas.
 */
public interface Body {
  double run(Tx tx);

  /** Whether it writes nothing that threads share, so that those that do not may run beside it. */
  default boolean onlyReads() {
    return false;
  }
}
