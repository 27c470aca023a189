// The containers of the applications, alone and in transactions, against the standard library's.
#include "tests/unit/structures/runners.hpp"

#include "runtime/base/random.hpp"
#include "structures/chained_map.hpp"
#include "structures/list.hpp"
#include "structures/ring_queue.hpp"

#include <gtest/gtest.h>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace loam::structures {
namespace {

struct ByNumber {
  static int compare(std::int64_t a, std::int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }
};
// Half of the numbers are equal to their neighbour.
struct ByHalf {
  static int compare(std::int64_t a, std::int64_t b) { return ByNumber::compare(a / 2, b / 2); }
};
struct Keys {
  static std::uint64_t hash(std::int64_t key) { return static_cast<std::uint64_t>(key) * 7; }
  static int compare(std::int64_t a, std::int64_t b) { return ByNumber::compare(a, b); }
};

template <class Runner>
class Containers : public testing::Test {};
using Runners = testing::Types<Alone, Locked, Transaction>;
TYPED_TEST_SUITE(Containers, Runners);

TYPED_TEST(Containers, ListFollowsAReference) {
  List<std::int64_t, ByNumber> list;
  std::multiset<std::int64_t> reference;
  base::Random random(1);
  const auto before = TypeParam::live_blocks();
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t key = random.below(40);
    const auto choice = random.below(4);
    if (choice == 0) {
      TypeParam::update([&](auto& access) { return list.insert(access, key), true; });
      reference.insert(key);
    } else if (choice == 1) {
      const bool absent = !reference.contains(key);
      ASSERT_EQ(TypeParam::update([&](auto& access) { return list.insert_if_absent(access, key); }), absent);
      if (absent) reference.insert(key);
    } else if (choice == 2) {
      const auto found = reference.find(key);
      ASSERT_EQ(TypeParam::update([&](auto& access) { return list.remove(access, key); }), found != reference.end());
      if (found != reference.end()) reference.erase(found);
    } else {
      const bool found = TypeParam::update([&](auto& access) { return list.find(access, key) != nullptr; });
      ASSERT_EQ(found, reference.contains(key));
      const bool empty = TypeParam::update([&](auto& access) { return list.is_empty(access); });
      ASSERT_EQ(empty, reference.empty());
    }
    const auto size = TypeParam::update([&](auto& access) { return list.size(access); });
    ASSERT_EQ(size, static_cast<std::int64_t>(reference.size()));
  }
  const Verdict verdict = list.verify();
  EXPECT_TRUE(verdict.holds()) << verdict.broken;
  std::vector<std::int64_t> contents;
  TypeParam::update([&](auto& access) {
    contents.clear();
    list.visit(access, [&](std::int64_t key) { return contents.push_back(key), true; });
    return true;
  });
  EXPECT_EQ(contents, std::vector<std::int64_t>(reference.begin(), reference.end()));
  EXPECT_EQ(TypeParam::live_blocks() - before, static_cast<std::int64_t>(reference.size()));
  TypeParam::update([&](auto& access) { return list.destroy_nodes(access), true; });
  EXPECT_EQ(TypeParam::live_blocks() - before, 0);
}

// What is equal goes in front of its equals, and the first of them is found and removed.
TYPED_TEST(Containers, ListKeepsEqualsInOrder) {
  List<std::int64_t, ByHalf> list;
  for (const std::int64_t key : {4, 5, 2, 3})
    TypeParam::update([&](auto& access) { return list.insert(access, key), true; });
  TypeParam::update([&](auto& access) {
    EXPECT_EQ(*list.first(access), 3);
    EXPECT_EQ(*list.find(access, 4), 5);
    EXPECT_FALSE(list.insert_if_absent(access, 4));
    return list.remove(access, 4);
  });
  std::vector<std::int64_t> contents;
  list.for_each([&](std::int64_t key) { contents.push_back(key); });
  EXPECT_EQ(contents, (std::vector<std::int64_t>{3, 2, 4}));
  list.free_nodes();
}

TYPED_TEST(Containers, ChainedMapFollowsAReference) {
  ChainedMap<std::int64_t, std::int64_t, Keys> map(8);
  std::map<std::int64_t, std::int64_t> reference;
  base::Random random(2);
  const auto before = TypeParam::live_blocks();
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t key = random.below(60), value = random.below(1000);
    const auto choice = random.below(3);
    if (choice == 0) {
      const bool inserted = TypeParam::update([&](auto& access) { return map.insert(access, key, value); });
      ASSERT_EQ(inserted, reference.emplace(key, value).second);
    } else if (choice == 1) {
      ASSERT_EQ(TypeParam::update([&](auto& access) { return map.remove(access, key); }), reference.erase(key) == 1);
    } else {
      const auto found = TypeParam::update([&](auto& access) {
        const std::int64_t* const value = map.find(access, key);
        return value == nullptr ? -1 : *value;
      });
      ASSERT_EQ(found, reference.contains(key) ? reference[key] : -1);
    }
  }
  const Verdict verdict = map.verify();
  EXPECT_TRUE(verdict.holds()) << verdict.broken;
  EXPECT_EQ(verdict.elements, reference.size());
  EXPECT_EQ(TypeParam::live_blocks() - before, 2 * static_cast<std::int64_t>(reference.size()));
  std::size_t seen = 0;
  for (std::size_t bucket = 0; bucket < map.buckets(); ++bucket) {
    std::size_t here = 0;
    map.for_each_in(bucket, [&](std::int64_t key, std::int64_t value) {
      EXPECT_EQ(reference.at(key), value);
      ++here;
    });
    EXPECT_EQ(map.elements_in(bucket), here);
    seen += here;
  }
  EXPECT_EQ(seen, reference.size());
}

// Small capacities: it grows at every place that its two ends can have.
TYPED_TEST(Containers, RingQueueFollowsAReference) {
  for (std::int64_t capacity = 2; capacity <= 5; ++capacity) {
    PlainAccess setup;
    RingQueue<std::int64_t> queue(setup, capacity);
    std::deque<std::int64_t> reference;
    base::Random random(static_cast<std::uint64_t>(capacity));
    for (std::int64_t i = 0; i < 2000; ++i) {
      if (random.below(100) < (i / 500 % 2 == 0 ? 60u : 40u)) {
        TypeParam::update([&](auto& access) { return queue.push(access, i), true; });
        reference.push_back(i);
      } else {
        std::int64_t out = -1;
        const bool popped = TypeParam::update([&](auto& access) { return queue.pop(access, out); });
        ASSERT_EQ(popped, !reference.empty());
        if (!popped) continue;
        ASSERT_EQ(out, reference.front());
        reference.pop_front();
      }
      const bool empty = TypeParam::update([&](auto& access) { return queue.is_empty(access); });
      ASSERT_EQ(empty, reference.empty());
      ASSERT_EQ(queue.elements(), static_cast<std::int64_t>(reference.size()));
      ASSERT_TRUE(queue.verify().holds());
    }
    std::deque<std::int64_t> contents;
    queue.for_each([&](std::int64_t element) { contents.push_back(element); });
    EXPECT_EQ(contents, reference);
  }
}

TEST(RingQueue, AShuffleKeepsItsElements) {
  PlainAccess setup;
  RingQueue<std::int64_t> queue(setup, 200);
  std::multiset<std::int64_t> before, after;
  for (std::int64_t i = 0; i < 100; ++i) {
    queue.push(setup, i);
    before.insert(i);
  }
  base::Random random(3);
  queue.shuffle([&](std::uint64_t count) { return random.below(static_cast<std::uint32_t>(count)); });
  bool moved = false;
  std::int64_t place = 0;
  queue.for_each([&](std::int64_t element) {
    after.insert(element);
    moved = moved || element != place++;
  });
  EXPECT_EQ(before, after);
  EXPECT_TRUE(moved);
}

TEST(RedBlackMap, KeepsTheValuesOfItsKeys) {
  RedBlackMap<std::int64_t, std::int64_t> map;
  PlainAccess access;
  for (const std::int64_t key : {5, 3, 9, 1}) ASSERT_TRUE(map.insert(access, key, key * 10));
  EXPECT_EQ(map.get(access, 9, -1), 90);
  EXPECT_EQ(map.get(access, 4, -1), -1);
  std::vector<std::int64_t> values;
  map.for_each([&](std::int64_t, std::int64_t value) { values.push_back(value); });
  EXPECT_EQ(values, (std::vector<std::int64_t>{10, 30, 50, 90}));
}

struct BackToFront {
  static bool equal(std::int64_t a, std::int64_t b) { return a == b; }
  static bool less(std::int64_t a, std::int64_t b) { return a > b; }
};

TEST(RedBlackMap, HasAnOrderOfItsOwn) {
  RedBlackMap<std::int64_t, std::int64_t, BackToFront> map;
  PlainAccess access;
  for (std::int64_t key = 0; key < 100; ++key) ASSERT_TRUE(map.insert(access, key * 37 % 101, 0));
  EXPECT_TRUE(map.verify().holds());
  std::int64_t before = 1000;
  map.for_each_key([&](std::int64_t key) {
    EXPECT_LT(key, before);
    before = key;
  });
  EXPECT_TRUE(map.remove(access, 37));
  EXPECT_FALSE(map.contains(access, 37));
}

// The invariants, broken by hand.
TEST(Verify, ListAndChains) {
  PlainAccess access;
  List<std::int64_t*> list;
  std::int64_t numbers[3];
  for (auto& number : numbers) list.insert(access, &number);
  auto* const node = const_cast<std::int64_t**>(list.first(access));
  std::int64_t* const right = std::exchange(*node, &numbers[2] + 1);
  EXPECT_EQ(list.verify().broken.substr(0, 2), "S1");
  *node = right;
  EXPECT_TRUE(list.verify().holds());
  auto& size = *reinterpret_cast<std::int64_t*>(reinterpret_cast<std::byte*>(&list) + sizeof(void*));
  ++size;
  EXPECT_EQ(list.verify().broken.substr(0, 2), "S2");
  --size;
  list.free_nodes();

  ChainedMap<std::int64_t, std::int64_t, Keys> map(8);
  for (std::int64_t key = 0; key < 4; ++key) map.insert(access, key, key);
  auto& value = *const_cast<std::int64_t*>(map.find(access, 2));
  auto& key = (&value)[-1];
  key = 3;
  EXPECT_EQ(map.verify().broken.substr(0, 2), "C2");
  key = 2;
  EXPECT_TRUE(map.verify().holds());
}

}  // namespace
}  // namespace loam::structures
