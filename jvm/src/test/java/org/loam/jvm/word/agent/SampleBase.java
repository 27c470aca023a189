package org.loam.jvm.word.agent;

/** What Sample inherits; the tests call it through this type. */
public abstract class SampleBase implements SampleCalls {
  protected int sum;

  protected void added(int by) {
    sum += by;
  }

  @Override
  public int sum() {
    return sum;
  }
}
