// two-lock: Michael and Scott's queue of two locks: one thread at the head and one at the tail at the same time.
//   Source  PODC 1996, with test-and-test-and-set locks that back off, as there.  The link between both ends is ordered
//           by ordered.A (structures/ordered_access.hpp).   alloc=executor: within the lock, as an executor would.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "structures/ordered_access.hpp"
#include "structures/queue.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/objects/shared/queue.hpp"

#include <mutex>

namespace loam::workloads {

struct Sync {
  static constexpr bool kBringsObjects = true;

  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{
        .name = "two-lock",
        .summary = "Michael and Scott's queue with a lock at each end",
        .paper = "PODC 1996",
        .kind = SyncKind::structure,
        .guarantees = "linearizable; an enqueue and a dequeue at the same time"};
    return kDescription;
  }

  class Queue : public objects::Uncounted {
   public:
    explicit Queue(const objects::QueueSettings& settings)
        : outside_(settings.allocates == objects::Allocates::client) {}

    void put(std::int64_t value) {
      structures::OrderedAccess access;
      Node* node = outside_ ? make(value) : nullptr;
      const std::lock_guard guard(tail_.lock);
      if (!outside_) node = make(value);
      queue_.link(access, node);
    }
    bool take(std::int64_t& value) {
      structures::OrderedAccess access;
      Node* node;
      {
        const std::lock_guard guard(head_.lock);
        node = queue_.unlink(access, value);
        if (node == nullptr) return false;
        if (!outside_) access.destroy(node);
      }
      if (outside_) access.destroy(node);
      return true;
    }

    objects::Rest rest() const { return objects::rest_of<objects::Plain>(queue_); }

   private:
    using Node = structures::Queue::Node;
    struct alignas(platform::kApartBytes) End {
      sync::SpinLock lock;
    };

    static Node* make(std::int64_t value) {
      return structures::PlainAccess().create<Node>(value, static_cast<Node*>(nullptr));
    }

    const bool outside_;
    End head_, tail_;
    structures::Queue queue_;
  };

  static void configure(const Options&) {}
  static void thread_exit() { structures::PlainAccess::hand_over_counts(); }
  static void quiesce() {}
};
using BlameSync = Sync;

}  // namespace loam::workloads
