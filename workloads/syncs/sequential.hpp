// sequential: no synchronisation at all, one thread. The yardstick of what synchronisation costs.
//   Cost: that of plain code; workloads/peers/plain holds the hand-written twin it is compared with.
#pragma once

#include "structures/plain_access.hpp"
#include "workloads/harness/sync.hpp"

namespace loam::workloads {

struct Sync {
  static constexpr bool kAlone = true;

  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{.name = "sequential",
                                                  .summary = "one thread, plain accesses",
                                                  .paper = "",
                                                  .kind = SyncKind::none,
                                                  .guarantees = "none",
                                                  .threads_max = 1};
    return kDescription;
  }

  static void configure(const Options&) {}

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    structures::PlainAccess access;
    return f(access);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    structures::PlainAccess access;
    return f(access);
  }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() { structures::PlainAccess::hand_over_counts(); }
  static void quiesce() {}
  static std::int64_t live_blocks() { return structures::PlainAccess::live_blocks(); }
};
using BlameSync = Sync;

}  // namespace loam::workloads
