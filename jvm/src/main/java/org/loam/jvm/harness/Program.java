package org.loam.jvm.harness;

import java.util.List;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Worker;

/**
 * A workload. Every concrete class of the package org.loam.jvm.programs that implements this is
 * one.
 */
public interface Program {
  String name();

  String summary();

  List<Parameter> parameters();

  /** What it records beside the metrics that all programs share. */
  List<Metric> metrics();

  /** Refuses parameters that do not fit together; throws BadInput. */
  default void check(Options options) {}

  /** Whether threads share objects, so that an unsynchronised library can run one thread only. */
  boolean shares();

  /** Whether its transactions differ so much that their mean cost says nothing after a moment. */
  default boolean isUneven() {
    return false;
  }

  /** Makes the program's data, before the timed part. */
  Instance build(Library library, Options options);

  /** One copy of the program's data with what was done to it. */
  interface Instance {
    /** How many units of work a thread has; a unit is one transaction or two. */
    long units(int thread);

    /**
     * One unit of a thread's work; returns the transactions that it took, 0 if there is no more
     * work.
     */
    int work(Worker worker, int thread);

    /** What is wrong with the result, or an empty text. */
    String check();

    /** Adds the program's own metrics to an iteration's record. */
    void addTo(Json line);

    /** Records of its own, written after the iteration's. */
    default List<Json> more() {
      return List.of();
    }
  }
}
