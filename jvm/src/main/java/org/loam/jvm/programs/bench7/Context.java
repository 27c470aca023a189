package org.loam.jvm.programs.bench7;

import org.loam.jvm.harness.Random;
import org.loam.jvm.tm.Tx;

/** What an attempt of an operation works with. */
final class Context {
  final Tx tx;
  final Structure all;
  final Random random; // of the attempt: it begins anew in each
  final Sizes sizes;
  final boolean arrays; // texts are read and written by the character

  Context(Tx tx, Structure all, Random random, Sizes sizes, boolean arrays) {
    this.tx = tx;
    this.all = all;
    this.random = random;
    this.sizes = sizes;
    this.arrays = arrays;
  }

  /**
   * An identifier of a kind of which there were so many objects at the beginning. About one in
   * twenty is free.
   */
  int anyId(int objects) {
    return 1 + random.below(Sizes.poolOf(objects));
  }

  int between(int least, int most) {
    return least + random.below(most - least + 1);
  }
}
