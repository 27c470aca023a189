package org.loam.jvm.word.agent;

import org.loam.jvm.word.Atomic;

/** What the tests instrument: every kind of word, and methods that call one another. */
public class Sample extends SampleBase {
  private boolean flag;
  private byte small;
  private short brief;
  private char letter;
  private int number;
  private long large;
  private float real;
  private double exact;
  private String text = "";
  private static int total;
  private final boolean[] flags = new boolean[2];
  private final byte[] smalls = new byte[2];
  private final char[] letters = new char[2];
  private final long[] larges = new long[2];
  private final double[] exacts = new double[2];
  private final String[][] texts = {new String[2], new String[2]};

  @Override
  @Atomic
  public long increment(int by, double ignored) {
    number += by;
    total += 1;
    added(by);
    return number + (long) ignored;
  }

  @Override
  @Atomic
  public String roundTrip() {
    flag = !flag;
    small = -3;
    brief = -300;
    letter = 'ø';
    large = 1L << 40;
    real = 0.5f;
    exact += 0.25;
    text = text + "x";
    flags[1] = flag;
    smalls[1] = -7;
    letters[1] = letter;
    larges[1] = -large;
    exacts[1] = exact;
    texts[1][0] = text.concat("y");
    return flag
        + " "
        + small
        + " "
        + brief
        + " "
        + letter
        + " "
        + large
        + " "
        + real
        + " "
        + exact
        + " "
        + flags[1]
        + smalls[1]
        + letters[1]
        + larges[1]
        + exacts[1]
        + texts[1][0].length();
  }

  @Override
  @Atomic
  public void fail() {
    number = 77;
    throw new IllegalArgumentException("after a write");
  }

  @Override
  public int number() {
    return number;
  }

  @Override
  public int total() {
    return total;
  }
}
