package org.loam.jvm.programs.bench7;

import org.loam.jvm.word.Unshared;

/**
 * Which objects a walk has visited, by their identifiers: a hash set, new for each walk, and the
 * only garbage of most operations.
 */
@Unshared
final class VisitedSet {
  private static final int HEADS = 256;

  @Unshared
  private record Visited(Visited next, int id) {}

  private final Visited[] heads = new Visited[HEADS];

  /** Returns whether it is new. */
  boolean add(int id) {
    int at = id % HEADS;
    for (Visited one = heads[at]; one != null; one = one.next) {
      if (one.id == id) {
        return false;
      }
    }
    heads[at] = new Visited(heads[at], id);
    return true;
  }
}
