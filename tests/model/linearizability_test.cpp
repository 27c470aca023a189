// The checker of histories itself: it accepts what may happen and finds what may not.
#include "tests/model/linearizability.hpp"

#include <gtest/gtest.h>

namespace loam::model {
namespace {

using Q = QueueModel;

template <class Model>
bool holds(std::vector<CallRecord> calls) {
  return Linearizability<Model>(calls).holds();
}

TEST(Linearizability, OverlappingCallsMayTakeEffectInEitherOrder) {
  EXPECT_TRUE(holds<Q>({}));
  EXPECT_TRUE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 4}, {Q::kEnqueue, 2, 0, 2, 3}, {Q::kDequeue, 0, 2, 5, 6}}));
  EXPECT_TRUE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 4}, {Q::kEnqueue, 2, 0, 2, 3}, {Q::kDequeue, 0, 1, 5, 6}}));
  EXPECT_TRUE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 3}, {Q::kDequeue, 0, kNothing, 2, 4}}));
  EXPECT_TRUE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 3}, {Q::kDequeue, 0, 1, 2, 4}}));
}

TEST(Linearizability, WhatEndedBeforeComesBefore) {
  EXPECT_FALSE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 2}, {Q::kEnqueue, 2, 0, 3, 4}, {Q::kDequeue, 0, 2, 5, 6}}));
  EXPECT_FALSE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 2}, {Q::kDequeue, 0, kNothing, 3, 4}})) << "found empty";
  EXPECT_FALSE(holds<Q>({{Q::kDequeue, 0, 1, 1, 2}, {Q::kEnqueue, 1, 0, 3, 4}})) << "from the future";
}

TEST(Linearizability, LostDoubledAndInventedValuesAreFound) {
  EXPECT_FALSE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 2}, {Q::kDequeue, 0, 1, 3, 6}, {Q::kDequeue, 0, 1, 4, 5}}));
  EXPECT_FALSE(holds<Q>({{Q::kEnqueue, 1, 0, 1, 2}, {Q::kDequeue, 0, 7, 3, 4}}));
  EXPECT_FALSE(holds<CounterModel>({{0, 1, 0, 1, 4}, {0, 1, 0, 2, 3}})) << "lost update";
  EXPECT_TRUE(holds<CounterModel>({{0, 1, 1, 1, 4}, {0, 1, 0, 2, 3}}));
  EXPECT_FALSE(holds<CounterModel>({{0, 1, 1, 1, 2}, {0, 1, 0, 3, 4}})) << "the later one first";
  using S = SetModel;
  EXPECT_FALSE(holds<S>({{S::kInsert, 1, 1, 1, 4}, {S::kInsert, 1, 1, 2, 3}})) << "twice";
  EXPECT_TRUE(holds<S>({{S::kInsert, 1, 1, 1, 4}, {S::kInsert, 1, 0, 2, 3}, {S::kContains, 1, 1, 5, 6}}));
  EXPECT_FALSE(holds<S>({{S::kInsert, 1, 1, 1, 2}, {S::kRemove, 1, 1, 3, 4}, {S::kContains, 1, 1, 5, 6}}));
}

TEST(Linearizability, AStackGivesTheNewestAndAMapWhatItsKeyHolds) {
  using T = StackModel;
  EXPECT_TRUE(holds<T>({{T::kPush, 1, 0, 1, 2}, {T::kPush, 2, 0, 3, 4}, {T::kPop, 0, 2, 5, 6}}));
  EXPECT_FALSE(holds<T>({{T::kPush, 1, 0, 1, 2}, {T::kPush, 2, 0, 3, 4}, {T::kPop, 0, 1, 5, 6}})) << "the older one";
  EXPECT_TRUE(holds<T>({{T::kPush, 1, 0, 1, 4}, {T::kPush, 2, 0, 2, 3}, {T::kPop, 0, 1, 5, 6}}));
  EXPECT_FALSE(holds<T>({{T::kPush, 1, 0, 1, 2}, {T::kPop, 0, 1, 3, 6}, {T::kPop, 0, 1, 4, 5}})) << "twice";
  EXPECT_FALSE(holds<T>({{T::kPush, 1, 0, 1, 2}, {T::kPop, 0, kNothing, 3, 4}})) << "found empty";
  using M = MapModel;  // 101 and 104 have the same key
  EXPECT_TRUE(holds<M>({{M::kInsert, 101, 1, 1, 2}, {M::kInsert, 104, 0, 3, 4}, {M::kFind, 104, 101, 5, 6}}));
  EXPECT_FALSE(holds<M>({{M::kInsert, 101, 1, 1, 2}, {M::kInsert, 104, 1, 3, 4}})) << "over another value";
  EXPECT_FALSE(holds<M>({{M::kInsert, 101, 1, 1, 2}, {M::kFind, 104, 104, 3, 4}})) << "a value that is not there";
  EXPECT_FALSE(holds<M>({{M::kInsert, 101, 1, 1, 2}, {M::kRemove, 1, 101, 3, 4}, {M::kRemove, 1, 101, 5, 6}}));
  EXPECT_FALSE(holds<M>({{M::kInsert, 102, 1, 1, 2}, {M::kRemove, 1, 102, 3, 4}})) << "another key";
}

TEST(Linearizability, CountsWhatOverlaps) {
  const std::vector<CallRecord> calls{{0, 1, 0, 1, 4}, {0, 1, 1, 2, 3}, {0, 1, 2, 5, 6}};
  EXPECT_EQ(overlapping(calls), 2U);
}

}  // namespace
}  // namespace loam::model
