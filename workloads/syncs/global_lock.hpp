// global-lock: one mutex around every operation.
//   Source: libc's mutex, which spins not at all and sleeps in the kernel when contended.
//   Cost: one uncontended atomic exchange and one store; no parallelism.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "structures/plain_access.hpp"
#include "workloads/harness/sync.hpp"

#include <mutex>

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{.name = "global-lock",
                                                  .summary = "one mutex around every operation",
                                                  .paper = "",
                                                  .kind = SyncKind::lock,
                                                  .guarantees = "mutual exclusion; nothing is taken back"};
    return kDescription;
  }

  static void configure(const Options&) {}

  template <class F>
  static auto read_only(F&& f) {
    return update(f);
  }
  template <class F>
  static auto update(F&& f) {
    structures::PlainAccess access;
    const std::lock_guard guard(lock);
    return f(access);
  }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() { structures::PlainAccess::hand_over_counts(); }
  static void quiesce() {}
  static std::int64_t live_blocks() { return structures::PlainAccess::live_blocks(); }

 private:
  alignas(platform::kApartBytes) inline static constinit std::mutex lock;
};
using BlameSync = Sync;

}  // namespace loam::workloads
