// Paper 003's memory manager: the first fit of a list in the order of addresses, and pools that are provided.
#include "runtime/heap/pool/manager.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace loam::heap::pool {
namespace {

class List : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kBytes = 1 << 18;

  void SetUp() override {
    room.resize(kBytes / sizeof(Line));
    if (GetParam()) {
      index.resize(kBytes / FirstFit::kPieceBytes + 1);
      list.use_index(room[0].bytes, index.data());
    }
    auto* const all = reinterpret_cast<Chunk*>(room[0].bytes + 8);
    all->bytes = kBytes - 16;
    list.give(all);
  }
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  std::vector<Line> room;
  std::vector<Chunk*> index;
  FirstFit list;
};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutIndex, List, ::testing::Bool());

TEST_P(List, TakesTheFirstThatFitsAndLeavesTheRemainder) {
  Chunk* const a = list.take(64);
  Chunk* const b = list.take(32);
  Chunk* const c = list.take(128);
  EXPECT_EQ(b->start(), a->end());
  EXPECT_EQ(c->start(), b->end());
  Chunk* const d = list.take(16);
  list.give(a);
  list.give(c);
  EXPECT_EQ(list.first(), a);
  Chunk* const e = list.take(96);  // past the first, which is too short
  EXPECT_EQ(e, c);
  EXPECT_EQ(list.take(48), a);
  EXPECT_EQ(list.first()->bytes, 16U);  // the remainder of a
  EXPECT_EQ(reinterpret_cast<const std::byte*>(list.first()), a->start() + 48);
  EXPECT_EQ(list.take(16)->start(), a->start() + 48) << "one of just that length fits";
  list.verify();
  (void)d;
}

TEST_P(List, NeighboursAreJoinedInAnyOrderOfFrees) {
  std::mt19937 random(7);
  const std::size_t whole = list.bytes();
  for (int round = 0; round < 20; ++round) {
    std::vector<Chunk*> taken;
    for (int i = 0; i < 500; ++i) taken.push_back(list.take(16 * (1 + random() % 20)));
    std::shuffle(taken.begin(), taken.end(), random);
    for (Chunk* const chunk : taken) {
      list.give(chunk);
      if (round == 0) list.verify();
    }
    list.verify();
    ASSERT_EQ(list.bytes(), whole);
    ASSERT_EQ(list.longest(), whole) << "the pool is whole again";
  }
}

TEST_P(List, GivesAllOfAnotherListInOneGo) {
  FirstFit other;
  std::vector<Chunk*> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(list.take(32));
  for (int i = 0; i < 100; i += 2) other.give(taken[static_cast<std::size_t>(i)]);
  for (int i = 1; i < 100; i += 4) list.give(taken[static_cast<std::size_t>(i)]);
  list.give_all(other);
  EXPECT_EQ(other.bytes(), 0U);
  EXPECT_EQ(other.first(), nullptr);
  list.verify();
  for (int i = 3; i < 100; i += 4) list.give(taken[static_cast<std::size_t>(i)]);
  EXPECT_EQ(list.longest(), list.bytes());
}

TEST(PoolSizes, SmallestAndAbsurd) {
  EXPECT_EQ(chunk_bytes(8), 16U);
  EXPECT_EQ(chunk_bytes(24), 32U);
  EXPECT_EQ(chunk_bytes(SIZE_MAX), 0U);
  EXPECT_EQ(chunk_bytes(SIZE_MAX / 2), 0U);
}

Settings small_settings() {
  Settings settings;
  settings.pool_bytes = 1024;
  settings.limit_bytes = 1 << 20;
  return settings;
}

TEST(Pools, AnEmptyPoolIsReplacedByOneTwiceAsLongAndTheRestIsGivenBack) {
  Manager manager;
  ASSERT_TRUE(manager.start(small_settings()));
  const std::size_t before = manager.free_bytes();
  Pool& pool = *manager.begin_thread();
  EXPECT_EQ(pool.bytes, 1024U);
  Chunk* const used = pool.free.take(chunk_bytes(500));
  EXPECT_EQ(pool.free.take(chunk_bytes(600)), nullptr);
  manager.provide(pool, 600);
  EXPECT_EQ(pool.bytes, 2048U);
  EXPECT_EQ(pool.free.bytes(), 2048U) << "the rest of the first pool went back";
  EXPECT_EQ(manager.free_bytes(), before - 2048 - used->bytes);
  EXPECT_EQ(pool.provisions, 1U);
  manager.provide(pool, 100'000);
  EXPECT_GE(pool.free.longest(), chunk_bytes(100'000));
  pool.free.give(used);
  manager.end_thread(pool);
  EXPECT_EQ(manager.free_bytes(), before);
  manager.verify();
}

TEST(Pools, ABlockAloneWhereThatIsAskedFor) {
  Settings settings = small_settings();
  settings.provision = Provision::block;
  Manager manager;
  ASSERT_TRUE(manager.start(settings));
  Pool& pool = *manager.begin_thread();
  manager.provide(pool, 2000);
  EXPECT_EQ(pool.bytes, 1024U);
  EXPECT_EQ(pool.free.bytes(), 1024 + chunk_bytes(2000));
}

TEST(Pools, TheHardLimitHolds) {
  Manager manager;
  ASSERT_TRUE(manager.start(small_settings()));
  Pool& pool = *manager.begin_thread();
  manager.provide(pool, 2 << 20);
  EXPECT_TRUE(pool.exhausted);
  // What was given back is not lost, and what still fits is provided.
  manager.provide(pool, 700 << 10);
  EXPECT_FALSE(pool.exhausted);
  EXPECT_GE(pool.free.longest(), chunk_bytes(700 << 10));
}

TEST(Pools, SomeThreadsBeginWithLess) {
  Settings settings = small_settings();
  settings.small_bytes = 256;
  settings.small_count = 2;
  Manager manager;
  ASSERT_TRUE(manager.start(settings));
  std::size_t bytes[4];
  for (std::size_t& each : bytes) each = manager.begin_thread()->free.bytes();
  EXPECT_EQ(std::vector<std::size_t>(bytes, bytes + 4), (std::vector<std::size_t>{1024, 1024, 256, 256}));
}

TEST(Pools, ThreadsProvideAtOnceAndNothingIsLost) {
  for (const bool elide : {false, true}) {
    Settings settings = small_settings();
    settings.limit_bytes = 64 << 20;
    settings.elide = elide && platform::has_transactions();
    Manager manager;
    ASSERT_TRUE(manager.start(settings));
    const std::size_t before = manager.free_bytes();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int round = 0; round < 100; ++round) {
          Pool& pool = *manager.begin_thread();
          std::vector<Chunk*> taken;
          for (int n = 0; n < 100; ++n) {
            Chunk* chunk = pool.free.take(64);
            if (chunk == nullptr) {
              manager.provide(pool, 56);
              chunk = pool.free.take(64);
            }
            taken.push_back(chunk);
          }
          for (Chunk* const chunk : taken) pool.free.give(chunk);
          manager.end_thread(pool);
        }
      });
    for (auto& thread : threads) thread.join();
    manager.verify();
    EXPECT_EQ(manager.free_bytes(), before);
  }
}

Settings stealing_settings() {
  Settings settings = small_settings();
  settings.pool_bytes = 400 << 10;  // of 1 MiB: two pools and a rest
  settings.steal = true;
  return settings;
}

TEST(Stealing, WhereTheRegionHasNothingLeftAnotherPoolHas) {
  for (const bool steal : {false, true}) {
    Settings settings = stealing_settings();
    settings.steal = steal;
    Manager manager;
    ASSERT_TRUE(manager.start(settings));
    Pool& first = *manager.begin_thread();
    Pool& second = *manager.begin_thread();
    Pool& third = *manager.begin_thread();
    EXPECT_EQ(third.free.bytes(), 0U) << "the rest is shorter than a pool";
    manager.provide(third, 300 << 10);
    EXPECT_EQ(third.exhausted, !steal);
    EXPECT_EQ(third.steals, steal ? 1U : 0U);
    const std::size_t chunk = chunk_bytes(300 << 10);
    EXPECT_EQ(third.free.longest(), steal ? chunk : 0U);
    EXPECT_EQ(first.free.bytes() + second.free.bytes(), 2 * (400U << 10) - (steal ? chunk : 0));
    for (Pool* const pool : {&first, &second, &third}) pool->free.verify();
    // What was stolen goes back with the thief's pool.
    for (Pool* const pool : {&first, &second, &third}) manager.end_thread(*pool);
    EXPECT_EQ(manager.free_bytes(), ((1U << 20) - kAlignment));
    manager.verify();
  }
}

TEST(Stealing, TheFirstPoolThatHasTheBlockIsTakenFromAndNoneWhereNoneHas) {
  Manager manager;
  ASSERT_TRUE(manager.start(stealing_settings()));
  Pool& first = *manager.begin_thread();
  Pool& second = *manager.begin_thread();
  Pool& third = *manager.begin_thread();
  Chunk* const held = manager.take(second, chunk_bytes(350 << 10), false);
  manager.provide(third, 300 << 10);
  EXPECT_EQ(third.steals, 1U);
  EXPECT_EQ(first.free.bytes(), (400U << 10) - chunk_bytes(300 << 10)) << "the second one has 50 KiB";
  manager.provide(third, 390 << 10);
  EXPECT_TRUE(third.exhausted);
  manager.give(second, held, false);
  manager.provide(third, 390 << 10);
  EXPECT_FALSE(third.exhausted);
  EXPECT_EQ(second.free.bytes(), (400U << 10) - chunk_bytes(390 << 10));
}

TEST(Stealing, AThiefWaitsForWhoUsesThePool) {
  Manager manager;
  ASSERT_TRUE(manager.start(stealing_settings()));
  Pool& owner = *manager.begin_thread();
  Pool& other = *manager.begin_thread();
  Chunk* const held = manager.take(other, chunk_bytes(350 << 10), false);
  Pool& thief = *manager.begin_thread();
  owner.guard.lock();
  std::atomic<bool> stolen{false};
  std::thread thread([&] {
    manager.provide(thief, 300 << 10);
    stolen.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(stolen.load());
  owner.guard.unlock();
  thread.join();
  EXPECT_EQ(thief.steals, 1U);
  manager.give(other, held, false);
}

TEST(Stealing, OwnersThatNeverYieldKeepTheirBlocks) {
  Manager manager;
  ASSERT_TRUE(manager.start(stealing_settings()));
  std::atomic<bool> done{false};
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> owners;
  for (unsigned number = 1; number <= 2; ++number)
    owners.emplace_back([&, number] {
      Pool& pool = *manager.begin_thread();
      ready.fetch_add(1);
      std::mt19937 random(number);
      while (!done.load(std::memory_order_relaxed)) {
        Chunk* held[8];
        for (Chunk*& chunk : held) {
          chunk = manager.take(pool, chunk_bytes(16 + random() % 4096), false);
          if (chunk != nullptr) *static_cast<std::uint64_t*>(chunk->block()) = number;
        }
        for (Chunk* const chunk : held) {
          if (chunk == nullptr) continue;
          EXPECT_EQ(*static_cast<std::uint64_t*>(chunk->block()), number) << "a thief got a block in use";
          manager.give(pool, chunk, false);
        }
      }
      manager.end_thread(pool);
    });
  while (ready.load() != 2) std::this_thread::yield();
  Pool& thief = *manager.begin_thread();
  std::vector<Chunk*> stolen;
  for (int round = 0; round < 300; ++round) {
    manager.provide(thief, 8 << 10);
    Chunk* const chunk = thief.exhausted ? nullptr : manager.take(thief, chunk_bytes(8 << 10), false);
    if (chunk != nullptr) {
      *static_cast<std::uint64_t*>(chunk->block()) = 3;
      stolen.push_back(chunk);
    }
    if (stolen.size() > 40 || chunk == nullptr) {
      for (Chunk* const each : stolen) {
        EXPECT_EQ(*static_cast<std::uint64_t*>(each->block()), 3U);
        manager.give(thief, each, false);
      }
      stolen.clear();
    }
  }
  for (Chunk* const each : stolen) manager.give(thief, each, false);
  done.store(true);
  for (auto& owner : owners) owner.join();
  EXPECT_GT(thief.steals, 0U);
  manager.end_thread(thief);
  EXPECT_EQ(manager.free_bytes(), (1U << 20) - kAlignment) << "nothing is lost";
  manager.verify();
}

TEST(Stealing, AForkFindsNoPoolInUse) {
  Manager manager;
  ASSERT_TRUE(manager.start(stealing_settings()));
  std::atomic<bool> done{false};
  std::thread owner([&] {
    while (!done.load(std::memory_order_relaxed)) {
      Pool& pool = *manager.begin_thread();
      for (int i = 0; i < 10; ++i)
        if (Chunk* const chunk = manager.take(pool, 64, false)) manager.give(pool, chunk, false);
      manager.end_thread(pool);
      std::this_thread::yield();
    }
  });
  Pool& pool = *manager.begin_thread();
  for (int round = 0; round < 30; ++round) {
    manager.before_fork();
    EXPECT_TRUE(pool.guard.held());
    manager.after_fork();
    EXPECT_FALSE(pool.guard.held());
    std::this_thread::yield();
  }
  done.store(true);
  owner.join();
  manager.end_thread(pool);
  EXPECT_EQ(manager.free_bytes(), (1U << 20) - kAlignment);
}

}  // namespace
}  // namespace loam::heap::pool
