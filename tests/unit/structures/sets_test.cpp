// Every structure under every way to run it, against std::set: results of each operation, contents, invariants, blocks.
#include "tests/unit/structures/runners.hpp"

#include "runtime/base/random.hpp"
#include "runtime/sync/barrier.hpp"

#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

namespace loam::structures {
namespace {

template <class Set>
std::set<std::int64_t> contents(const Set& set) {
  std::set<std::int64_t> keys;
  set.for_each_key([&](std::int64_t key) { EXPECT_TRUE(keys.insert(key).second) << "key twice: " << key; });
  return keys;
}

// Every file of structures/sets/.
template <class List>
struct Of;
template <class... Named>
struct Of<SetList<Named...>> {
  // Combinations that several threads may use.
  using Shared = testing::Types<Combination<Locked, typename Named::template Set<Multiplicative>>...,
                                Combination<Transaction, typename Named::template Set<Multiplicative>>...>;
  using Single = testing::Types<Combination<Alone, typename Named::template Set<Multiplicative>>...,
                                Combination<Alone, HashSet<Identity>>>;
};
using Shared = Of<Sets>::Shared;
using Single = Of<Sets>::Single;

template <class Which>
class AnySet : public testing::Test {
 protected:
  static void follow_a_reference();
};
template <class Which>
class SharedSets : public AnySet<Which> {};
TYPED_TEST_SUITE(AnySet, Single);
TYPED_TEST_SUITE(SharedSets, Shared);

// Small ranges make every shape of the structure come up often; the largest makes it deep.
template <class Which>
void AnySet<Which>::follow_a_reference() {
  using Runner = typename Which::Runner;
  struct Row {
    std::uint32_t range;
    int operations, verify_every;
  };
  constexpr Row kRows[] = {{1, 50, 1}, {4, 1000, 10}, {16, 1000, 10}, {300, 3000, 300}, {8192, 12000, 4000}};
  for (const auto& row : kRows) {
    typename Which::Set set;
    std::set<std::int64_t> reference;
    const auto blocks_before = Runner::live_blocks();
    base::Random random(row.range);
    for (int i = 1; i <= row.operations; ++i) {
      const std::int64_t key = random.below(row.range);
      const auto choice = random.below(3);
      if (choice == 0) {
        ASSERT_EQ(insert<Runner>(set, key), reference.insert(key).second) << "range " << row.range << " step " << i;
      } else if (choice == 1) {
        ASSERT_EQ(remove<Runner>(set, key), reference.erase(key) == 1) << "range " << row.range << " step " << i;
      } else {
        ASSERT_EQ(contains<Runner>(set, key), reference.contains(key)) << "range " << row.range << " step " << i;
      }
      if (i % row.verify_every == 0) {
        const Verdict verdict = set.verify();
        ASSERT_TRUE(verdict.holds()) << verdict.broken;
        ASSERT_EQ(verdict.elements, reference.size());
      }
    }
    EXPECT_EQ(contents(set), reference);
    EXPECT_EQ(Runner::live_blocks() - blocks_before, static_cast<std::int64_t>(reference.size()));
  }
}

TYPED_TEST(AnySet, FollowAReference) { this->follow_a_reference(); }
TYPED_TEST(SharedSets, FollowAReference) { this->follow_a_reference(); }

// Threads count for each key what they inserted and removed: the difference must be what the set holds at the end.
TYPED_TEST(SharedSets, KeepEveryUpdateOfSeveralThreads) {
  using Runner = typename TypeParam::Runner;
  constexpr unsigned kThreads = 4;
  constexpr std::uint32_t kRange = 64;
  constexpr int kOperations = 4000;
  typename TypeParam::Set set;
  const auto blocks_before = Runner::live_blocks();
  std::vector<std::vector<int>> net(kThreads, std::vector<int>(kRange, 0));
  sync::Barrier start(kThreads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      base::Random random(1, t);
      start.arrive_and_wait();
      for (int i = 0; i < kOperations; ++i) {
        const std::uint32_t key = random.below(kRange);
        const auto choice = random.below(3);
        if (choice == 0) {
          net[t][key] += insert<Runner>(set, key) ? 1 : 0;
        } else if (choice == 1) {
          net[t][key] -= remove<Runner>(set, key) ? 1 : 0;
        } else {
          contains<Runner>(set, key);
        }
      }
      Runner::thread_exit();
    });
  for (auto& thread : threads) thread.join();

  const Verdict verdict = set.verify();
  ASSERT_TRUE(verdict.holds()) << verdict.broken;
  const auto keys = contents(set);
  for (std::uint32_t key = 0; key < kRange; ++key) {
    int sum = 0;
    for (const auto& mine : net) sum += mine[key];
    EXPECT_EQ(sum, keys.contains(key) ? 1 : 0) << "key " << key;
  }
  EXPECT_EQ(Runner::live_blocks() - blocks_before, static_cast<std::int64_t>(keys.size()));
}

// Readers of several keys see one state: every writer moves its key between two places, so both or none is wrong.
TYPED_TEST(SharedSets, SeveralOperationsAreOneStep) {
  using Runner = typename TypeParam::Runner;
  typename TypeParam::Set set;
  constexpr std::int64_t kHere = 10, kThere = 20;
  insert<Runner>(set, kHere);
  std::thread mover([&] {
    for (int i = 0; i < 3000; ++i)
      Runner::update([&](auto& access) {
        const bool here = set.remove(access, kHere);
        if (!here) set.remove(access, kThere);
        return set.insert(access, here ? kThere : kHere);
      });
    Runner::thread_exit();
  });
  for (int i = 0; i < 3000; ++i) {
    const int seen = Runner::read_only(
        [&](auto& access) { return (set.contains(access, kHere) ? 1 : 0) + (set.contains(access, kThere) ? 1 : 0); });
    ASSERT_EQ(seen, 1) << "step " << i;
  }
  mover.join();
  EXPECT_TRUE(set.verify().holds());
}

}  // namespace
}  // namespace loam::structures
