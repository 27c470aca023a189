// LockFreeSync: lock-free objects as a synchronisation of the workloads `queue` and `stack`; the reclaimer makes the
// difference. Whoever asks for an element executes, so `alloc` changes nothing.
#pragma once

#include "structures/lock_free_queue.hpp"
#include "structures/lock_free_stack.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/objects/shared/queue.hpp"

namespace loam::workloads::objects {

template <class Reclaimer>
struct LockFreeSync {
  static constexpr bool kBringsObjects = true;

  class Queue : public Uncounted {
   public:
    explicit Queue(const QueueSettings&) {}

    void put(std::int64_t value) { queue_.enqueue(value); }
    bool take(std::int64_t& value) { return queue_.dequeue(value); }
    Rest rest() const { return rest_of<Plain>(queue_); }

   private:
    structures::LockFreeQueue<Reclaimer> queue_;
  };

  class Stack : public Uncounted {
   public:
    explicit Stack(const ContainerSettings&) {}

    void put(std::int64_t value) { stack_.push(value); }
    bool take(std::int64_t& value) { return stack_.pop(value); }
    Rest rest() const { return rest_of<Mixed>(stack_); }

   private:
    structures::LockFreeStack<Reclaimer> stack_;
  };

  // The main thread, which fills the object, has a slot of the reclaimer too.
  static constexpr unsigned kThreads = kThreadsMax - 1;

  static void configure(const Options&) {}
  static void thread_exit() {
    Reclaimer::thread_exit();
    structures::PlainAccess::hand_over_counts();
  }
  static void quiesce() { Reclaimer::quiesce(); }
};

}  // namespace loam::workloads::objects
