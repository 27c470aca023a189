package org.loam.jvm.programs.bench7;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.loam.jvm.harness.Random;
import org.loam.jvm.tm.Tx;

class VerificationTest {
  private static final Tx TX = Tx.FIELDS;

  private final Sizes sizes = Sizes.of("tiny");
  private Structure all;

  @BeforeEach
  void build() {
    all = new Structure(TX, sizes, false);
    Context context = new Context(TX, all, new Random(1, 0), sizes, false);
    for (int i = 0; i < sizes.compositeParts(); ++i) {
      Build.compositePart(context);
    }
    Build.tree(context);
  }

  private String problem() {
    Verification verification = new Verification(all, sizes);
    verification.run(TX);
    return verification.problem();
  }

  private Assembly base() {
    return all.bases.all(TX).next(TX);
  }

  private AtomicPart atomic() {
    return all.atomicById.find(TX, 7);
  }

  @Test
  void whatWasBuiltIsWhole() {
    assertEquals("", problem());
  }

  @Test
  void aDateThatItsIndexDoesNotKnowIsFound() {
    atomic().toggleDate(TX);
    assertEquals("an atomic part is in the index under another date", problem());
  }

  @Test
  void anObjectThatLeftItsIndexIsFound() {
    all.atomicById.remove(TX, 7);
    assertEquals("an atomic part is not in its index", problem());
  }

  @Test
  void aLinkThatOneEndKnowsIsFound() {
    base().components.add(TX, all.composites.find(TX, 3));
    assertEquals("two objects are connected, and only one of them knows it", problem());
  }

  @Test
  void aDeletedComponentIsFound() {
    CompositePart part = base().components.at(TX, 0);
    all.composites.remove(TX, part.id);
    assertEquals("a component was deleted", problem());
  }

  @Test
  void aDamagedTextIsFound() {
    all.manual.text(TX, Text.of(TX, "I am another manual", false));
    assertEquals("a text is damaged", problem());
  }

  @Test
  void aLostNumberIsFound() {
    all.baseIds.take(TX);
    assertEquals("a number is lost", problem());
  }

  @Test
  void aNumberThatIsFreeAndUsedIsFound() {
    all.baseIds.take(TX);
    all.baseIds.give(TX, base().id);
    assertEquals("a number is free and used at once", problem());
  }
}
