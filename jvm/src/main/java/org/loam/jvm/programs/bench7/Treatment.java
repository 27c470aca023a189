package org.loam.jvm.programs.bench7;

/** What an operation does with the atomic parts that it meets. */
enum Treatment {
  LOOK {
    @Override
    void change(Context c, AtomicPart part) {
      part.touch(c.tx);
    }
  },
  EXCHANGE {
    @Override
    void change(Context c, AtomicPart part) {
      part.exchangePlaces(c.tx);
    }
  },
  /** The index by date keeps up with it. */
  REDATE {
    @Override
    void change(Context c, AtomicPart part) {
      Build.removeFromDate(c, part);
      part.toggleDate(c.tx);
      Build.addToDate(c, part);
    }
  };

  abstract void change(Context c, AtomicPart part);
}
