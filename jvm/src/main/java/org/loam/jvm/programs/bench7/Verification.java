package org.loam.jvm.programs.bench7;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.loam.jvm.programs.bench7.AtomicPart.Connection;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.word.Unshared;

/** Whether the structure is whole: a transaction that walks all of it, while no other one runs. */
final class Verification implements Body {
  private final Structure all;
  private final Sizes sizes;
  private final Findings findings = new Findings();

  Verification(Structure all, Sizes sizes) {
    this.all = all;
    this.sizes = sizes;
  }

  /** What an attempt has found, outside of the transaction. */
  @Unshared
  private static final class Findings {
    private String problem = "";
    private final Map<Object, Map<Integer, Object>> entries = new HashMap<>();
    private final Map<Object, Integer> reached = new HashMap<>();
    private final Map<List<Object>, Integer> balance = new HashMap<>();

    void begin() {
      problem = "";
      entries.clear();
      reached.clear();
      balance.clear();
    }

    void expect(boolean holds, String what) {
      if (!holds && problem.isEmpty()) {
        problem = what;
      }
    }

    void entry(Object index, int key, Object value) {
      entries.computeIfAbsent(index, of -> new HashMap<>()).put(key, value);
    }

    /** Whether an index has an object under its number. */
    boolean has(Object index, int key, Object value) {
      Map<Integer, Object> found = entries.get(index);
      return found != null && found.get(key) == value;
    }

    boolean hasKey(Object index, int key) {
      Map<Integer, Object> found = entries.get(index);
      return found != null && found.containsKey(key);
    }

    int entries(Object index) {
      Map<Integer, Object> found = entries.get(index);
      return found == null ? 0 : found.size();
    }

    void reach(Object index) {
      reached.merge(index, 1, Integer::sum);
    }

    int reached(Object index) {
      return reached.getOrDefault(index, 0);
    }

    /** A pair is known at one of its ends (1) or at the other one (-1). */
    void pair(Object one, Object other, int end) {
      List<Object> pair = List.of(one, other);
      if (balance.merge(pair, end, Integer::sum) == 0) {
        balance.remove(pair);
      }
    }

    boolean isBalanced() {
      return balance.isEmpty();
    }
  }

  String problem() {
    return findings.problem;
  }

  @Override
  public double run(Tx tx) {
    findings.begin();
    enter(tx, all.atomicById);
    enter(tx, all.composites);
    enter(tx, all.bases);
    enter(tx, all.complexes);
    Index.Cursor<Document> documents = all.documents.all(tx);
    for (Document one = documents.next(tx); one != null; one = documents.next(tx)) {
      findings.entry(all.documents, one.id, one);
    }
    Index.Cursor<CompositePart> parts = all.composites.all(tx);
    for (CompositePart part = parts.next(tx); part != null; part = parts.next(tx)) {
      composite(tx, part);
    }
    findings.expect(all.root().above == null, "the root of the assemblies has a parent");
    assembly(tx, all.root(), sizes.levels());
    findings.expect(
        findings.isBalanced(), "two objects are connected, and only one of them knows it");
    dates(tx);
    manual(all.manual.text(tx).whole(tx));
    identifiers(tx, all.atomicIds, all.atomicById);
    identifiers(tx, all.compositeIds, all.composites);
    identifiers(tx, all.baseIds, all.bases);
    identifiers(tx, all.complexIds, all.complexes);
    findings.expect(
        findings.entries(all.documents) == findings.reached(all.composites),
        "the index of documents has entries of its own");
    return 0;
  }

  private void enter(Tx tx, Index<? extends Dated> index) {
    Index.Cursor<? extends Dated> cursor = index.all(tx);
    while (cursor.hasNext()) {
      int key = (int) cursor.key();
      Dated one = cursor.next(tx);
      findings.expect(one.id == key, "an object is in its index under another number");
      findings.entry(index, key, one);
    }
  }

  private static boolean isBetween(int value, int least, int most) {
    return value >= least - 1 && value <= most + 1;
  }

  private void composite(Tx tx, CompositePart part) {
    findings.reach(all.composites);
    int date = part.date(tx);
    findings.expect(
        isBetween(date, 0, Sizes.OLD_MOST) || isBetween(date, Sizes.YOUNG_LEAST, Sizes.YOUNG_MOST),
        "a composite part has an impossible date");
    Document document = part.document;
    findings.expect(
        document.id == part.id && findings.has(all.documents, part.id, document),
        "a document is not in its index");
    findings.expect(document.part == part, "a document belongs to another composite part");
    String expected = Text.document(part.id, sizes.documentChars());
    String found = document.text(tx).whole(tx);
    text(
        found,
        found.startsWith(Text.NEW_START)
            ? Text.NEW_START + expected.substring(Text.OLD_START.length())
            : expected);
    int count = 0;
    boolean hasRoot = false;
    Index.Cursor<AtomicPart> parts = part.parts.all(tx);
    for (AtomicPart one = parts.next(tx); one != null; one = parts.next(tx)) {
      ++count;
      hasRoot = hasRoot || one == part.root();
      atomic(tx, one, part);
    }
    findings.expect(
        hasRoot && count == sizes.atomicParts(), "a composite part has lost or won atomic parts");
    for (Object base : part.usedIn.all(tx)) {
      findings.pair(base, part, -1);
    }
  }

  private void atomic(Tx tx, AtomicPart one, CompositePart part) {
    findings.reach(all.atomicById);
    findings.expect(
        findings.has(all.atomicById, one.id, one), "an atomic part is not in its index");
    findings.expect(one.part == part, "an atomic part belongs to another composite part");
    findings.expect(
        Math.abs(one.x(tx) - one.y(tx)) == 1, "x and y of an atomic part are not neighbours");
    findings.expect(
        one.to.size(tx) == Sizes.CONNECTIONS, "an atomic part has another number of connections");
    for (Object to : one.to.all(tx)) {
      Connection connection = (Connection) to;
      findings.expect(connection.source() == one, "a connection begins at another atomic part");
      findings.expect(
          connection.destination().part == part, "a connection leads out of its composite part");
      findings.pair(one, connection.destination(), 1);
    }
    for (Object from : one.from.all(tx)) {
      findings.pair(((Connection) from).destination(), one, -1);
    }
  }

  private void assembly(Tx tx, Assembly assembly, int level) {
    Index<Assembly> index = level == 1 ? all.bases : all.complexes;
    findings.expect(assembly.level == level, "an assembly is on another level than its place says");
    findings.expect(
        isBetween(assembly.date(tx), Sizes.DATE_LEAST, Sizes.DATE_MOST),
        "an assembly has an impossible date");
    findings.expect(findings.has(index, assembly.id, assembly), "an assembly is not in its index");
    findings.reach(index);
    if (!findings.problem.isEmpty()) {
      return;
    }
    if (level == 1) {
      for (Object item : assembly.components.all(tx)) {
        CompositePart part = (CompositePart) item;
        findings.expect(findings.has(all.composites, part.id, part), "a component was deleted");
        findings.pair(assembly, part, 1);
      }
      return;
    }
    findings.expect(assembly.children.size(tx) != 0, "a complex assembly has no children");
    for (Object item : assembly.children.all(tx)) {
      Assembly child = (Assembly) item;
      findings.expect(child.above == assembly, "an assembly has another parent");
      assembly(tx, child, level - 1);
    }
  }

  private void dates(Tx tx) {
    int count = 0;
    Index.Cursor<Index<AtomicPart>> sets = all.atomicByDate.all(tx);
    while (sets.hasNext()) {
      int date = (int) sets.key();
      findings.expect(
          isBetween(date, Sizes.DATE_LEAST, Sizes.DATE_MOST),
          "an atomic part has an impossible date");
      Index.Cursor<AtomicPart> parts = sets.next(tx).all(tx);
      for (AtomicPart part = parts.next(tx); part != null; part = parts.next(tx)) {
        ++count;
        findings.expect(
            findings.has(all.atomicById, part.id, part) && part.date(tx) == date,
            "an atomic part is in the index under another date");
      }
    }
    findings.expect(
        count == findings.reached(all.atomicById),
        "the index of dates has lost or won atomic parts");
  }

  /** Its counted letters may all be exchanged, which its first one shows. */
  private void manual(String found) {
    boolean isExchanged = found.charAt(0) == Text.EXCHANGED;
    text(
        isExchanged ? found.replace(Text.EXCHANGED, Text.COUNTED) : found,
        Text.manual(sizes.manualChars()));
  }

  private void text(String found, String expected) {
    findings.expect(found.equals(expected), "a text is damaged");
  }

  /**
   * What is reached is in the index, so as many as there are: all numbers are free or used, and no
   * entry is left over.
   */
  private void identifiers(Tx tx, Identifiers ids, Index<? extends Dated> index) {
    Set<Integer> free = new HashSet<>();
    int available = ids.available(tx);
    for (int i = 0; i < available; ++i) {
      int id = ids.free(tx, i);
      findings.expect(
          id >= 1 && id <= ids.total() && free.add(id) && !findings.hasKey(index, id),
          "a number is free and used at once");
    }
    int used = findings.entries(index);
    findings.expect(used == findings.reached(index), "an index has entries of its own");
    findings.expect(used + available == ids.total(), "a number is lost");
  }
}
