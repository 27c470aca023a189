package org.loam.jvm.word.agent;

/** How a test calls a class that its own loader has defined; it is not instrumented itself. */
public interface SampleCalls {
  long increment(int by, double ignored);

  String roundTrip();

  void fail();

  int number();

  int total();

  int sum();
}
