// fetch-add: a counter that the processor adds to by itself: what every scheme competes with where one word is the object.
//   Orders  relaxed: a number carries no data.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "structures/plain_access.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/objects/shared/turns.hpp"

#include <atomic>
#include <cstdint>

namespace loam::workloads {

struct Sync {
  static constexpr bool kBringsObjects = true;

  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{.name = "fetch-add",
                                                  .summary = "a counter in one instruction of the processor",
                                                  .paper = "",
                                                  .kind = SyncKind::structure,
                                                  .guarantees = "linearizable; wait-free"};
    return kDescription;
  }

  class Counter : public objects::Uncounted {
   public:
    std::int64_t add() noexcept { return count_.fetch_add(1, std::memory_order_relaxed); }
    std::int64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

   private:
    alignas(platform::kApartBytes) std::atomic<std::int64_t> count_{0};
  };

  static void configure(const Options&) {}
  static void thread_exit() {}
  static void quiesce() {}
};
using BlameSync = Sync;

}  // namespace loam::workloads
