package org.loam.jvm.programs.bench7;

import java.util.ArrayDeque;
import org.loam.jvm.harness.Random;
import org.loam.jvm.tm.Tx;

/**
 * A map ordered by a number, as a treap. A node's priority is a hash of its key, so the shape
 * follows from the keys alone, and an operation writes only the nodes whose children change. As
 * workloads/managed/bench7/map.hpp.
 */
final class Index<T> {
  private static final class Node<T> {
    final long key;
    final T value;
    private Object left;
    private Object right;

    Node(Tx tx, long key, T value, Node<T> left, Node<T> right) {
      this.key = key;
      this.value = value;
      this.left = tx.cell(left);
      this.right = tx.cell(right);
    }

    Node<T> child(Tx tx, boolean isLeft) {
      return tx.get(isLeft ? left : right);
    }

    void child(Tx tx, boolean isLeft, Node<T> value) {
      if (tx.hasCells()) {
        tx.set(isLeft ? left : right, value);
      } else if (isLeft) {
        left = value;
      } else {
        right = value;
      }
    }

    boolean isAbove(Node<T> other) {
      return isAbove(key, other.key);
    }

    static boolean isAbove(long key, long other) {
      return Long.compareUnsigned(Random.mix(key), Random.mix(other)) > 0;
    }
  }

  private record Halves<T>(Node<T> less, Node<T> more) {}

  private Object root;

  Index(Tx tx) {
    root = tx.cell(null);
  }

  private Node<T> root(Tx tx) {
    return tx.get(root);
  }

  private void root(Tx tx, Node<T> value) {
    if (tx.hasCells()) {
      tx.set(root, value);
    } else {
      root = value;
    }
  }

  /** Null if the key is not there. */
  T find(Tx tx, long key) {
    Node<T> node = root(tx);
    while (node != null && node.key != key) {
      node = node.child(tx, key < node.key);
    }
    return node == null ? null : node.value;
  }

  /** The key must not be there. */
  void insert(Tx tx, long key, T value) {
    Node<T> now = root(tx);
    Node<T> then = inserted(tx, now, key, value);
    if (then != now) {
      root(tx, then);
    }
  }

  private static <T> Node<T> inserted(Tx tx, Node<T> node, long key, T value) {
    if (node == null || Node.isAbove(key, node.key)) {
      Halves<T> halves = split(tx, node, key);
      return new Node<>(tx, key, value, halves.less, halves.more);
    }
    boolean isLeft = key < node.key;
    Node<T> child = node.child(tx, isLeft);
    Node<T> now = inserted(tx, child, key, value);
    if (now != child) {
      node.child(tx, isLeft, now);
    }
    return node;
  }

  /** What is less than the key, and what is more. */
  private static <T> Halves<T> split(Tx tx, Node<T> node, long key) {
    if (node == null) {
      return new Halves<>(null, null);
    }
    boolean isLess = node.key < key;
    Node<T> child = node.child(tx, !isLess);
    Halves<T> halves = split(tx, child, key);
    Node<T> stays = isLess ? halves.less : halves.more;
    if (stays != child) {
      node.child(tx, !isLess, stays);
    }
    return isLess ? new Halves<>(node, halves.more) : new Halves<>(halves.less, node);
  }

  /** Returns whether it was there. */
  boolean remove(Tx tx, long key) {
    Node<T> above = null;
    boolean isLeft = false;
    Node<T> node = root(tx);
    while (node != null && node.key != key) {
      above = node;
      isLeft = key < node.key;
      node = node.child(tx, isLeft);
    }
    if (node == null) {
      return false;
    }
    Node<T> joined = joined(tx, node.child(tx, true), node.child(tx, false));
    if (above == null) {
      root(tx, joined);
    } else {
      above.child(tx, isLeft, joined);
    }
    return true;
  }

  /** All on the left is less than all on the right. */
  private static <T> Node<T> joined(Tx tx, Node<T> left, Node<T> right) {
    if (left == null || right == null) {
      return left == null ? right : left;
    }
    boolean isLeft = left.isAbove(right);
    Node<T> top = isLeft ? left : right;
    Node<T> child = top.child(tx, !isLeft);
    Node<T> now = isLeft ? joined(tx, child, right) : joined(tx, left, child);
    if (now != child) {
      top.child(tx, !isLeft, now);
    }
    return top;
  }

  /** All values in order. The index must not change meanwhile. */
  Cursor<T> all(Tx tx) {
    return from(tx, 0, Long.MAX_VALUE);
  }

  /** Those of keys from one until another. */
  Cursor<T> from(Tx tx, long key, long until) {
    Cursor<T> cursor = new Cursor<>(until);
    Node<T> node = root(tx);
    while (node != null) {
      if (node.key >= key) {
        cursor.path.push(node);
      }
      node = node.child(tx, node.key >= key);
    }
    return cursor;
  }

  /** Where a walk is. */
  static final class Cursor<T> {
    private final long until;
    private final ArrayDeque<Node<T>> path = new ArrayDeque<>(); // whose value is still to come

    private Cursor(long until) {
      this.until = until;
    }

    boolean hasNext() {
      return !path.isEmpty() && path.peek().key < until;
    }

    /** The key that comes next. */
    long key() {
      return path.peek().key;
    }

    /** Null if there is none. */
    T next(Tx tx) {
      Node<T> node = path.poll();
      if (node == null || node.key >= until) {
        path.clear();
        return null;
      }
      for (Node<T> below = node.child(tx, false); below != null; below = below.child(tx, true)) {
        path.push(below);
      }
      return node.value;
    }
  }
}
