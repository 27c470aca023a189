package org.loam.jvm.programs.bench7;

/**
 * The 45 operations, in the order of workloads/managed/bench7/catalogue.hpp: tests and the
 * histograms of a run count in it.
 */
public enum Operation {
  T1(Category.LONG_READ) {
    @Override
    long run(Context c) {
      return LongTraversals.each(c, Treatment.LOOK, 1);
    }
  },
  T2a(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.first(c, Treatment.EXCHANGE);
    }
  },
  T2b(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.each(c, Treatment.EXCHANGE, 1);
    }
  },
  T2c(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.each(c, Treatment.EXCHANGE, 4);
    }
  },
  T3a(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.first(c, Treatment.REDATE);
    }
  },
  T3b(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.each(c, Treatment.REDATE, 1);
    }
  },
  T3c(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.each(c, Treatment.REDATE, 4);
    }
  },
  T4(Category.LONG_READ) {
    @Override
    long run(Context c) {
      return LongTraversals.countLetters(c);
    }
  },
  T5(Category.LONG_UPDATE) {
    @Override
    long run(Context c) {
      return LongTraversals.exchangeStarts(c);
    }
  },
  T6(Category.LONG_READ) {
    @Override
    long run(Context c) {
      return LongTraversals.lookAtRoots(c);
    }
  },
  Q6(Category.LONG_READ) {
    @Override
    long run(Context c) {
      return LongTraversals.countNewer(c, c.all.root());
    }
  },
  Q7(Category.LONG_READ) {
    @Override
    long run(Context c) {
      return LongTraversals.lookAtAll(c);
    }
  },
  ST1(Category.SHORT_READ) {
    @Override
    long run(Context c) {
      return ShortTraversals.anyPart(c, false);
    }
  },
  ST2(Category.SHORT_READ) {
    @Override
    long run(Context c) {
      return ShortTraversals.anyDocument(c, false);
    }
  },
  ST3(Category.SHORT_READ) {
    @Override
    long run(Context c) {
      return ShortTraversals.walkUp(c, false);
    }
  },
  ST4(Category.SHORT_READ) {
    @Override
    long run(Context c) {
      return ShortTraversals.users(c);
    }
  },
  ST5(Category.SHORT_READ) {
    @Override
    long run(Context c) {
      return ShortTraversals.countOlder(c);
    }
  },
  ST6(Category.SHORT_UPDATE) {
    @Override
    long run(Context c) {
      return ShortTraversals.anyPart(c, true);
    }
  },
  ST7(Category.SHORT_UPDATE) {
    @Override
    long run(Context c) {
      return ShortTraversals.anyDocument(c, true);
    }
  },
  ST8(Category.SHORT_UPDATE) {
    @Override
    long run(Context c) {
      return ShortTraversals.walkUp(c, true);
    }
  },
  ST9(Category.SHORT_READ) {
    @Override
    long run(Context c) {
      return ShortTraversals.walkComponent(c, Treatment.LOOK);
    }
  },
  ST10(Category.SHORT_UPDATE) {
    @Override
    long run(Context c) {
      return ShortTraversals.walkComponent(c, Treatment.EXCHANGE);
    }
  },
  OP1(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.randomParts(c, Treatment.LOOK);
    }
  },
  OP2(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.newParts(c, Treatment.LOOK, 1);
    }
  },
  OP3(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.newParts(c, Treatment.LOOK, 10);
    }
  },
  OP4(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.manualLetters(c);
    }
  },
  OP5(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.manualEnds(c);
    }
  },
  OP6(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.complexSiblings(c, false);
    }
  },
  OP7(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.baseSiblings(c, false);
    }
  },
  OP8(Category.OPERATION_READ) {
    @Override
    long run(Context c) {
      return Queries.components(c, false);
    }
  },
  OP9(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Queries.randomParts(c, Treatment.EXCHANGE);
    }
  },
  OP10(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Queries.newParts(c, Treatment.EXCHANGE, 1);
    }
  },
  OP11(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Text.exchangeLetter(c.tx, c.all.manual);
    }
  },
  OP12(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Queries.complexSiblings(c, true);
    }
  },
  OP13(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Queries.baseSiblings(c, true);
    }
  },
  OP14(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Queries.components(c, true);
    }
  },
  OP15(Category.OPERATION_UPDATE) {
    @Override
    long run(Context c) {
      return Queries.randomParts(c, Treatment.REDATE);
    }
  },
  SM1(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.addPart(c);
    }
  },
  SM2(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.removePart(c);
    }
  },
  SM3(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.link(c);
    }
  },
  SM4(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.unlink(c);
    }
  },
  SM5(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.addBase(c);
    }
  },
  SM6(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.removeBase(c);
    }
  },
  SM7(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.addComplex(c);
    }
  },
  SM8(Category.STRUCTURAL) {
    @Override
    long run(Context c) {
      return Structural.removeComplex(c);
    }
  };

  /** In the order of the shares of a mix. */
  enum Category {
    LONG_UPDATE,
    LONG_READ,
    SHORT_UPDATE,
    SHORT_READ,
    OPERATION_UPDATE,
    OPERATION_READ,
    STRUCTURAL;

    boolean isLong() {
      return this == LONG_UPDATE || this == LONG_READ;
    }

    boolean onlyReads() {
      return this == LONG_READ || this == SHORT_READ || this == OPERATION_READ;
    }
  }

  /** What an operation returns that cannot be done; it has written nothing. */
  static final long FAILED = -1;

  final Category category;

  Operation(Category category) {
    this.category = category;
  }

  /** A long traversal, which visits all of the structure. */
  public boolean isLong() {
    return category.isLong();
  }

  /** Returns what it counted, or FAILED. */
  abstract long run(Context c);
}
