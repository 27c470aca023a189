// Recorded histories of every scheme on queue, stack, set, map and counter are linearizable. Threads are stalled at the
// schemes' test points, so that many interleavings occur that a quiet machine would hardly show.
#include "runtime/base/points.hpp"
#include "runtime/delegation/schemes.hpp"
#include "structures/hash_map.hpp"
#include "structures/plain_access.hpp"
#include "structures/queue.hpp"
#include "structures/sorted_list.hpp"
#include "structures/stack.hpp"
#include "tests/model/recorded.hpp"

#include <gtest/gtest.h>
#include <string>

namespace loam::model {
namespace {

using delegation::Schemes;
using delegation::Settings;
using delegation::SpinThenSleep;

struct QueueObject {
  using Model = QueueModel;
  std::int64_t call(int operation, std::int64_t argument) {
    structures::PlainAccess access;
    if (operation == QueueModel::kEnqueue) {
      queue.enqueue(access, argument);
      return 0;
    }
    std::int64_t value = kNothing;
    return queue.dequeue(access, value) ? value : kNothing;
  }
  structures::Queue queue;
};

struct SetObject {
  using Model = SetModel;
  std::int64_t call(int operation, std::int64_t argument) {
    structures::PlainAccess access;
    argument = SetModel::key_of(argument);
    if (operation == SetModel::kInsert) return set.insert(access, argument);
    if (operation == SetModel::kRemove) return set.remove(access, argument);
    return set.contains(access, argument);
  }
  structures::SortedList set;
};

struct StackObject {
  using Model = StackModel;
  std::int64_t call(int operation, std::int64_t argument) {
    structures::PlainAccess access;
    if (operation == StackModel::kPush) {
      stack.push(access, argument);
      return 0;
    }
    std::int64_t value = kNothing;
    return stack.pop(access, value) ? value : kNothing;
  }
  structures::Stack stack;
};

struct MapObject {
  using Model = MapModel;
  std::int64_t call(int operation, std::int64_t argument) {
    structures::PlainAccess access;
    const std::int64_t key = MapModel::key_of(argument);
    std::int64_t value = kNothing;
    if (operation == MapModel::kInsert) return map.insert(access, key, argument);
    if (operation == MapModel::kRemove) return map.remove(access, key, value) ? value : kNothing;
    return map.find(access, key, value) ? value : kNothing;
  }
  structures::HashMap map{2};
};

struct CounterObject {
  using Model = CounterModel;
  std::int64_t call(int, std::int64_t argument) {
    const std::int64_t before = sum;
    stall("between read and write");
    sum = before + argument;
    return before;
  }
  std::int64_t sum = 0;
};

template <class Scheme, class Object>
void check_histories() {
  std::size_t overlapped = 0;
  for (int round = 0; goes_on(round, overlapped); ++round) {
    Settings settings;
    settings.turn_max = 1 + static_cast<unsigned>(round) % 4;
    settings.waiting.spin_ns = round % 2 == 0 ? 0 : 20'000;
    Object object;
    Scheme scheme{settings};
    overlapped += expect_linearizable<typename Object::Model>(
        round, draw_call<typename Object::Model>,
        [&](int operation, std::int64_t argument) {
          return scheme.apply([&object, operation, argument] {
            stall("in the operation");
            return object.call(operation, argument);
          });
        },
        [] {});
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(overlapped, kHistoryOverlaps) << "too little overlapped for this to test anything";
}

template <class Object>
void check_all_schemes() {
#ifdef LOAM_CHECKED
  base::point_hook.store(&stall, std::memory_order_release);  // point.A
#endif
  Schemes::for_each([]<template <class> class SchemeOf>() {
    using Scheme = SchemeOf<SpinThenSleep>;
    SCOPED_TRACE(std::string(Scheme::kDescription.name));
    check_histories<Scheme, Object>();
  });
#ifdef LOAM_CHECKED
  base::point_hook.store(nullptr, std::memory_order_release);  // point.A
#endif
}

TEST(DelegationHistories, Queue) { check_all_schemes<QueueObject>(); }
TEST(DelegationHistories, Stack) { check_all_schemes<StackObject>(); }
TEST(DelegationHistories, Map) { check_all_schemes<MapObject>(); }
TEST(DelegationHistories, Set) { check_all_schemes<SetObject>(); }
TEST(DelegationHistories, Counter) { check_all_schemes<CounterObject>(); }

}  // namespace
}  // namespace loam::model
