package org.loam.jvm.programs.bench7;

import org.loam.jvm.harness.Random;
import org.loam.jvm.programs.bench7.Operation.Category;

/**
 * Which operation comes next. Weights: long traversals 5, short ones 40, operations 45, structural
 * modifications 10. A share of each reads only; structural modifications belong to the rest. Inside
 * of a category all operations are equally likely.
 */
final class Mix {
  private static final Operation[] ALL = Operation.values();

  private final double[] shares = new double[Category.values().length]; // expected
  private final double[] bounds = new double[ALL.length];

  Mix(double reads, boolean longTraversals, boolean structural) {
    double updates = 1 - reads;
    double longs = longTraversals ? 5 : 0;
    double shorts = 40;
    double operations = 45;
    double changes = structural ? 10 * updates : 0;
    double sum = longs + shorts + operations + changes;
    shares[Category.LONG_UPDATE.ordinal()] = longs * updates / sum;
    shares[Category.LONG_READ.ordinal()] = longs * reads / sum;
    shares[Category.SHORT_UPDATE.ordinal()] = shorts * updates / sum;
    shares[Category.SHORT_READ.ordinal()] = shorts * reads / sum;
    shares[Category.OPERATION_UPDATE.ordinal()] = operations * updates / sum;
    shares[Category.OPERATION_READ.ordinal()] = operations * reads / sum;
    shares[Category.STRUCTURAL.ordinal()] = changes / sum;
    int[] counts = new int[shares.length];
    for (Operation operation : ALL) {
      ++counts[operation.category.ordinal()];
    }
    double until = 0;
    for (int i = 0; i < bounds.length; ++i) {
      int category = ALL[i].category.ordinal();
      until += shares[category] / counts[category];
      bounds[i] = until;
    }
  }

  /** One operation alone. */
  Mix(Operation only) {
    shares[only.category.ordinal()] = 1;
    for (int i = only.ordinal(); i < bounds.length; ++i) {
      bounds[i] = 1;
    }
  }

  Operation draw(Random random) {
    double at = (random.next() >>> 11) * 0x1p-53;
    int i = 0;
    while (i + 1 < bounds.length && at >= bounds[i]) {
      ++i;
    }
    // The sum of all shares may be a little less than one.
    while (i != 0 && bounds[i] == bounds[i - 1]) {
      --i;
    }
    return ALL[i];
  }

  double share(int category) {
    return shares[category];
  }
}
