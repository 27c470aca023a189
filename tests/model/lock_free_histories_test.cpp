// Recorded histories of the lock-free structures are linearizable. Threads are stalled at the structures' test points:
// between reads, between link and tail, before the head moves, between mark and unlinking, before a scan.
#include "runtime/base/points.hpp"
#include "structures/by_epochs.hpp"
#include "structures/by_hazards.hpp"
#include "structures/lock_free_map.hpp"
#include "structures/lock_free_queue.hpp"
#include "structures/lock_free_stack.hpp"
#include "tests/model/recorded.hpp"

namespace loam::model {
namespace {

template <class Reclaimer>
struct FreeQueue {
  using Model = QueueModel;
  std::int64_t call(int operation, std::int64_t argument) {
    if (operation == QueueModel::kEnqueue) {
      queue.enqueue(argument);
      return 0;
    }
    std::int64_t value = kNothing;
    return queue.dequeue(value) ? value : kNothing;
  }
  structures::LockFreeQueue<Reclaimer> queue;
};

template <class Reclaimer>
struct FreeStack {
  using Model = StackModel;
  std::int64_t call(int operation, std::int64_t argument) {
    if (operation == StackModel::kPush) {
      stack.push(argument);
      return 0;
    }
    std::int64_t value = kNothing;
    return stack.pop(value) ? value : kNothing;
  }
  structures::LockFreeStack<Reclaimer> stack;
};

template <class Reclaimer>
struct FreeMap {
  using Model = MapModel;
  std::int64_t call(int operation, std::int64_t argument) {
    const std::int64_t key = MapModel::key_of(argument);
    std::int64_t value = kNothing;
    if (operation == MapModel::kInsert) return map.insert(key, argument);
    if (operation == MapModel::kRemove) return map.remove(key, value) ? value : kNothing;
    return map.find(key, value) ? value : kNothing;
  }
  structures::LockFreeMap<Reclaimer> map{1};
};

template <class Object, class Reclaimer>
void check_histories() {
#ifdef LOAM_CHECKED
  base::point_hook.store(&stall, std::memory_order_release);  // point.A
#endif
  std::size_t overlapped = 0;
  for (int round = 0; goes_on(round, overlapped) && !testing::Test::HasFailure(); ++round) {
    Object object;
    overlapped += expect_linearizable<typename Object::Model>(
        round, draw_call<typename Object::Model>,
        [&object](int operation, std::int64_t argument) {
          stall("before the call");
          return object.call(operation, argument);
        },
        [] { Reclaimer::thread_exit(); });
  }
#ifdef LOAM_CHECKED
  base::point_hook.store(nullptr, std::memory_order_release);  // point.A
#endif
  EXPECT_EQ(Reclaimer::quiesce(), 0U);
  EXPECT_GT(overlapped, kHistoryOverlaps) << "too little overlapped for this to test anything";
}

template <class Reclaimer>
struct LockFreeHistories : testing::Test {};
using Reclaimers = testing::Types<structures::ByHazards, structures::ByEpochs>;
TYPED_TEST_SUITE(LockFreeHistories, Reclaimers);

TYPED_TEST(LockFreeHistories, Queue) { check_histories<FreeQueue<TypeParam>, TypeParam>(); }
TYPED_TEST(LockFreeHistories, Stack) { check_histories<FreeStack<TypeParam>, TypeParam>(); }
TEST(LockFreeMapHistories, Map) { check_histories<FreeMap<structures::ByEpochs>, structures::ByEpochs>(); }

}  // namespace
}  // namespace loam::model
