// Hash maps, sequential and lock-free: against a std::map, from several threads, while one stands still.
#include "structures/hash_map.hpp"

#include "runtime/base/random.hpp"
#include "structures/by_epochs.hpp"
#include "structures/lock_free_map.hpp"
#include "tests/unit/structures/standing_still.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace loam::structures {
namespace {

#ifdef LOAM_INSTRUMENTED
constexpr int kCalls = 4'000;
#else
constexpr int kCalls = 40'000;
#endif

// Both maps with one interface. outside: nodes are made and freed by the caller
class Sequential {
 public:
  explicit Sequential(std::size_t buckets, bool outside) : map_(buckets), outside_(outside) {}

  bool find(std::int64_t key, std::int64_t& value) { return map_.find(access_, key, value); }
  bool insert(std::int64_t key, std::int64_t value) {
    if (!outside_) return map_.insert(access_, key, value);
    auto* const node = access_.create<HashMap::Node>(key, value, static_cast<HashMap::Node*>(nullptr));
    if (map_.link(access_, node)) return true;
    access_.destroy(node);
    return false;
  }
  bool remove(std::int64_t key, std::int64_t& value) {
    if (!outside_) return map_.remove(access_, key, value);
    auto* const node = map_.unlink(access_, key, value);
    if (node != nullptr) access_.destroy(node);
    return node != nullptr;
  }
  HashMap map_;

 private:
  PlainAccess access_;
  const bool outside_;
};

class LockFree {
 public:
  explicit LockFree(std::size_t buckets, bool) : map_(buckets) {}

  bool find(std::int64_t key, std::int64_t& value) { return map_.find(key, value); }
  bool insert(std::int64_t key, std::int64_t value) { return map_.insert(key, value); }
  bool remove(std::int64_t key, std::int64_t& value) { return map_.remove(key, value); }
  LockFreeMap<ByEpochs> map_;
};

std::int64_t live() {
  EXPECT_EQ(ByEpochs::quiesce(), 0U);
  return PlainAccess::live_blocks();
}

template <class Map>
struct HashMaps : testing::Test {};
using Maps = testing::Types<Sequential, LockFree>;
TYPED_TEST_SUITE(HashMaps, Maps);

TYPED_TEST(HashMaps, DoesWhatAMapDoes) {
  for (const bool outside : {false, true}) {
    const std::int64_t before = live();
    TypeParam map(8, outside);
    std::map<std::int64_t, std::int64_t> model;
    base::Random random(7);
    for (int i = 0; i < kCalls; ++i) {
      const std::int64_t key = random.below(40);
      std::int64_t value = -5;
      switch (random.below(3)) {
        case 0:
          EXPECT_EQ(map.insert(key, i), model.emplace(key, i).second);
          break;
        case 1: {
          const auto known = model.find(key);
          ASSERT_EQ(map.remove(key, value), known != model.end());
          EXPECT_EQ(value, known == model.end() ? -5 : known->second);
          if (known != model.end()) model.erase(known);
          break;
        }
        default: {
          const auto known = model.find(key);
          ASSERT_EQ(map.find(key, value), known != model.end());
          EXPECT_EQ(value, known == model.end() ? -5 : known->second);
        }
      }
    }
    const Verdict verdict = map.map_.verify();
    EXPECT_TRUE(verdict.holds()) << verdict.broken;
    EXPECT_EQ(verdict.elements, model.size());
    std::map<std::int64_t, std::int64_t> contents;
    map.map_.for_each([&](std::int64_t key, std::int64_t value) { contents.emplace(key, value); });
    EXPECT_EQ(contents, model);
    EXPECT_EQ(live() - before, static_cast<std::int64_t>(model.size()));
    std::int64_t value;
    for (const auto& [key, unused] : model) EXPECT_TRUE(map.remove(key, value));
    EXPECT_EQ(live(), before);
  }
}

TEST(HashMap, VerifyFindsAKeyThatIsThereTwice) {
  PlainAccess access;
  HashMap map(4);
  ASSERT_TRUE(map.insert(access, 1, 10));
  auto* const node =
      access.create<HashMap::Node>(HashMap::Key{2}, HashMap::Value{20}, static_cast<HashMap::Node*>(nullptr));
  ASSERT_TRUE(map.link(access, node));
  node->key = 1;
  EXPECT_FALSE(map.verify().holds());
}

// Each thread inserts and removes keys of its own and looks up everybody's, all in few chains.
TEST(LockFreeMap, NothingIsLostOrDoubled) {
  constexpr unsigned kThreads = 4;
  constexpr std::int64_t kKeys = 16;
  const std::int64_t before = live();
  LockFreeMap<ByEpochs> map(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      base::Random random(1, t);
      std::vector<std::int64_t> mine(kKeys, -1);  // the value, or -1
      for (int i = 0; i < kCalls / 4; ++i) {
        const auto n = static_cast<std::size_t>(random.below(kKeys));
        const std::int64_t key = static_cast<std::int64_t>(n) * kThreads + t;
        std::int64_t value = -1;
        if (mine[n] < 0) {
          if (!map.insert(key, key * 1'000'000 + i)) ++wrong;
          mine[n] = key * 1'000'000 + i;
        } else {
          if (!map.find(key, value) || value != mine[n]) ++wrong;
          if (!map.remove(key, value) || value != mine[n]) ++wrong;
          mine[n] = -1;
        }
        const std::int64_t any = random.below(kKeys * kThreads);
        if (map.find(any, value) && value / 1'000'000 != any) ++wrong;
      }
      for (std::size_t n = 0; n < mine.size(); ++n) {
        std::int64_t value;
        if (map.remove(static_cast<std::int64_t>(n) * kThreads + t, value) != (mine[n] >= 0)) ++wrong;
      }
      ByEpochs::thread_exit();
      PlainAccess::hand_over_counts();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const Verdict verdict = map.verify();
  EXPECT_TRUE(verdict.holds()) << verdict.broken;
  EXPECT_EQ(verdict.elements, 0U);
  EXPECT_EQ(live(), before);
}

// Threads fight for the same key: of those that insert it at a time one is told so, and of those that remove it one.
TEST(LockFreeMap, OneWins) {
  constexpr unsigned kThreads = 4;
  LockFreeMap<ByEpochs> map(1);
  std::atomic<std::int64_t> inserted{0}, removed{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::int64_t in = 0, out = 0, value = 0;
      for (int i = 0; i < kCalls / 4; ++i) {
        in += map.insert(i % 3, t);
        out += map.remove((i + 1) % 3, value);
      }
      inserted += in;
      removed += out;
      ByEpochs::thread_exit();
      PlainAccess::hand_over_counts();
    });
  for (auto& thread : threads) thread.join();
  const Verdict verdict = map.verify();
  EXPECT_TRUE(verdict.holds()) << verdict.broken;
  EXPECT_EQ(inserted - removed, static_cast<std::int64_t>(verdict.elements));
  live();
}

#ifdef LOAM_CHECKED
// A remover stands still after its mark: the key is gone, others unlink the node, and nobody links behind it.
TEST(LockFreeMap, ARemovedKeyIsGoneBeforeItsNodeIs) {
  const std::int64_t before = live();
  LockFreeMap<ByEpochs> map(1);
  for (std::int64_t key = 0; key < 5; ++key) map.insert(key, 10 + key);
  std::int64_t got = 0;
  while_standing_still(
      "lock-free map: between mark and unlinking",
      [&] {
        EXPECT_TRUE(map.remove(2, got));
        ByEpochs::thread_exit();
        PlainAccess::hand_over_counts();
      },
      [&] {
        std::int64_t value = 0;
        EXPECT_FALSE(map.find(2, value));
        EXPECT_FALSE(map.remove(2, value));
        EXPECT_TRUE(map.insert(2, 99));
        EXPECT_TRUE(map.find(2, value));
        EXPECT_EQ(value, 99);
        EXPECT_TRUE(map.remove(3, value));
      });
  EXPECT_EQ(got, 12);
  const Verdict verdict = map.verify();
  EXPECT_TRUE(verdict.holds()) << verdict.broken;
  EXPECT_EQ(verdict.elements, 4U);
  std::int64_t value;
  for (std::int64_t key = 0; key < 5; ++key) map.remove(key, value);
  EXPECT_EQ(live(), before);
}

// An inserter stands still before its link; the node before it is removed meanwhile: it must not link behind that one.
TEST(LockFreeMap, NobodyLinksBehindARemovedNode) {
  LockFreeMap<ByEpochs> map(1);
  map.insert(1, 10);
  map.insert(5, 50);
  while_standing_still(
      "lock-free map: before the link",
      [&] {
        EXPECT_TRUE(map.insert(3, 30));
        ByEpochs::thread_exit();
        PlainAccess::hand_over_counts();
      },
      [&] {
        std::int64_t value;
        EXPECT_TRUE(map.remove(1, value));
      });
  std::int64_t value = 0;
  EXPECT_TRUE(map.find(3, value));
  EXPECT_EQ(value, 30);
  EXPECT_EQ(map.verify().elements, 2U);
  live();
}
#endif

}  // namespace
}  // namespace loam::structures
