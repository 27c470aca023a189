package org.loam.jvm.programs.bench7;

import org.loam.jvm.tm.Tx;

/**
 * The roots of STMBench7: a manual, a tree of assemblies, six indexes, and the free identifiers.
 * The leaves of the tree use composite parts; each of those has a document and a graph of atomic
 * parts. Titles and types are numbers: "Composite Part #7" is 7, "type #3" is 3.
 */
final class Structure {
  final Document manual;
  final Index<AtomicPart> atomicById;
  final Index<Index<AtomicPart>> atomicByDate; // to those of a date by id
  final Index<Document> documents;
  final Index<CompositePart> composites;
  final Index<Assembly> bases;
  final Index<Assembly> complexes;
  final Identifiers atomicIds;
  final Identifiers compositeIds;
  final Identifiers baseIds;
  final Identifiers complexIds;
  private Assembly root;

  /** The indexes are empty. */
  Structure(Tx tx, Sizes sizes, boolean arrays) {
    manual = new Document(tx, null, 1, Text.of(tx, Text.manual(sizes.manualChars()), arrays));
    atomicById = new Index<>(tx);
    atomicByDate = new Index<>(tx);
    documents = new Index<>(tx);
    composites = new Index<>(tx);
    bases = new Index<>(tx);
    complexes = new Index<>(tx);
    atomicIds = new Identifiers(tx, Sizes.poolOf(sizes.atomics()));
    compositeIds = new Identifiers(tx, Sizes.poolOf(sizes.compositeParts()));
    baseIds = new Identifiers(tx, Sizes.poolOf(sizes.bases()));
    complexIds = new Identifiers(tx, Sizes.poolOf(sizes.complexes()));
  }

  Assembly root() {
    return root;
  }

  /** Before threads share the structure: it needs no cell. */
  void root(Assembly top) {
    root = top;
  }
}
