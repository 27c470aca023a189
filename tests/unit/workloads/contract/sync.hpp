// A synchronisation that uses all that the contract offers: a kind of its own, a reserved processor, start and stop,
// all options in configure(). It ends the process where the harness calls out of turn.
#pragma once

#include "runtime/base/check.hpp"
#include "structures/plain_access.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"

#include <cstdio>
#include <mutex>

namespace loam::workloads {

struct Sync {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{.name = "contract",
                                                  .summary = "for the test of the harness",
                                                  .paper = "",
                                                  .kind = SyncKind::delegation,
                                                  .threads_max = 8,
                                                  .cpus_reserved = 1};
    return kDescription;
  }

  static void configure(const Options& options) {
    step(Step::none, Step::configured);
    std::fprintf(stderr, "threads=%u workers=%zu reserved=%u\n", options.threads, options.cpus().size(),
                 options.reserved_cpus()[0]);
  }
  static void start() { step(Step::configured, Step::started); }
  static void stop() {
    step(Step::started, Step::stopped);
    std::fprintf(stderr, "stopped\n");
  }

  template <class F>
  static auto read_only(F&& f) {
    return update(f);
  }
  template <class F>
  static auto update(F&& f) {
    LOAM_CHECK(at == Step::started, "an operation outside of start and stop");
    structures::PlainAccess access;
    const std::lock_guard guard(lock);
    return f(access);
  }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() { structures::PlainAccess::hand_over_counts(); }
  static void quiesce() {}
  static std::int64_t live_blocks() { return structures::PlainAccess::live_blocks(); }

 private:
  enum class Step { none, configured, started, stopped };

  static void step(Step before, Step after) {
    LOAM_CHECK(at == before, "step {} after {}", static_cast<int>(after), static_cast<int>(at));
    at = after;
  }

  inline static constinit std::mutex lock;
  inline static constinit Step at = Step::none;
};
using BlameSync = Sync;

}  // namespace loam::workloads
