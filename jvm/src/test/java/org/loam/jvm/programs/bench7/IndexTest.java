package org.loam.jvm.programs.bench7;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.loam.jvm.harness.Random;
import org.loam.jvm.tm.Tx;

class IndexTest {
  private static final Tx TX = Tx.FIELDS;

  private static List<String> walked(Index.Cursor<String> cursor) {
    List<String> all = new ArrayList<>();
    for (String one = cursor.next(TX); one != null; one = cursor.next(TX)) {
      all.add(one);
    }
    return all;
  }

  @Test
  void anIndexIsAMapInOrder() {
    Index<String> index = new Index<>(TX);
    TreeMap<Long, String> expected = new TreeMap<>();
    Random random = new Random(1, 0);
    for (int i = 0; i < 20_000; ++i) {
      long key = random.below(300);
      if (expected.containsKey(key)) {
        assertEquals(expected.remove(key), index.find(TX, key));
        assertEquals(true, index.remove(TX, key));
      } else {
        assertNull(index.find(TX, key));
        assertEquals(false, index.remove(TX, key));
        index.insert(TX, key, "value " + i);
        expected.put(key, "value " + i);
      }
      if (i % 500 == 0) {
        assertEquals(List.copyOf(expected.values()), walked(index.all(TX)));
        assertEquals(
            List.copyOf(expected.subMap(50L, 120L).values()), walked(index.from(TX, 50, 120)));
      }
    }
  }

  @Test
  void aListKeepsItsOrderAndRemovesTheFirst() {
    Items<String> items = new Items<>(TX);
    String twice = "b";
    for (String one : List.of("a", twice, "c", twice)) {
      items.add(TX, one);
    }
    assertEquals(true, items.remove(TX, twice));
    assertEquals(false, items.remove(TX, "d"));
    assertEquals(List.of("a", "c", "b"), List.of(items.all(TX)));
    assertEquals("c", items.at(TX, 1));
  }
}
