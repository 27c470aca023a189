// sequential: transactions of one thread, without any synchronisation, with an undo log.
//   It shows what the semantics alone cost when nothing is shared: cancel, exceptions that undo, parts, handlers,
//   memory that follows the outcome. What another algorithm costs beyond it is the price of its synchronisation.
//   Guarantees  those of one thread. A second thread that starts a transaction before the first has ended stops the
//               program with a message.
//   Conflicts   none. retry() could never be woken and stops the program with a message.
//   Cost        no atomic read-modify-write; a read is a load, a write one log entry.
//   When not    more than one thread.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/tm/algorithms/parts/in_place.hpp"

namespace loam::tm {

class OneThread {
 public:
  // Slots are given out from the lowest on, and back at thread exit: a thread that gets another one is the second,
  // unless it holds the lower ones itself, for transactions of its own that stand still meanwhile.
  static void attach(Descriptor& d) noexcept {
    LOAM_CHECK(d.slot == 0 || was_here,
               "tm: a transaction of a second thread under the algorithm sequential, which runs 1 thread; use another "
               "algorithm, or end the first thread before");
  }
  static void lock() noexcept { was_here = true; }
  static void unlock() noexcept {}
  static bool unchanged(Descriptor&) noexcept {
    LOAM_FATAL(
        "tm: retry() under the algorithm sequential waits for ever: there is no other thread that could change "
        "anything; use another algorithm");
  }

 private:
  inline static thread_local constinit bool was_here = false;
};

template <bool kBlame>
struct Sequential : InPlace<kBlame, OneThread> {
  static constexpr AlgorithmDescription kDescription{.name = "sequential",
                                                     .summary = "one thread, no synchronisation, undo log",
                                                     .paper = "",
                                                     .guarantees = "one thread: none needed",
                                                     .threads_max = 1,
                                                     .overlaps = false};
};

}  // namespace loam::tm
