package org.loam.jvm.harness;

/** Random numbers as runtime/base/random.hpp draws them: xoroshiro128++ with streams. */
public final class Random {
  private static final long GOLDEN = 0x9e3779b97f4a7c15L;

  private long low;
  private long high;

  public Random(long seed, long stream) {
    low = mix(seed + GOLDEN * (2 * stream + 1));
    high = mix(low + GOLDEN * (2 * stream + 2));
    if ((low | high) == 0) {
      high = GOLDEN;
    }
  }

  /** One that goes on as another would; the other one stays where it is. */
  public Random(Random other) {
    low = other.low;
    high = other.high;
  }

  public long next() {
    long first = low;
    long second = high;
    long result = Long.rotateLeft(first + second, 17) + first;
    second ^= first;
    low = Long.rotateLeft(first, 49) ^ second ^ second << 21;
    high = Long.rotateLeft(second, 28);
    return result;
  }

  /** Uniform in [0, count). */
  public int below(int count) {
    return (int) ((next() >>> 32) * count >>> 32);
  }

  /** Scatters the bits of a word, as runtime/base/bits.hpp does. */
  public static long mix(long value) {
    long word = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L;
    word = (word ^ word >>> 27) * 0x94d049bb133111ebL;
    return word ^ word >>> 31;
  }
}
