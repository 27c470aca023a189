// What loads may return and what races, step by step: no scheduler, no program.
#include "simulator/orders/memory.hpp"

#include <gtest/gtest.h>

namespace loam::simulator {
namespace {

constexpr std::uintptr_t kData = 0x1000, kFlag = 0x2000;

struct Orders : testing::Test {
  Orders() {
    for (unsigned thread = 1; thread < 4; ++thread) memory.spawned(thread, 0);
    value[0] = value[1] = 0;
  }
  // The atomics are what the program's memory would hold.
  std::uint64_t& held(std::uintptr_t address) { return value[address == kData ? 0 : 1]; }
  void store(unsigned thread, std::uintptr_t address, Order order, std::uint64_t what) {
    memory.store(thread, address, order, held(address), what);
    held(address) = what;
  }
  void modify(unsigned thread, std::uintptr_t address, Order order, std::uint64_t what) {
    memory.modify(thread, address, order, held(address), what);
    held(address) = what;
  }
  std::size_t choices(unsigned thread, std::uintptr_t address, Order order) {
    return memory.choices(thread, address, order, held(address));
  }
  std::uint64_t load(unsigned thread, std::uintptr_t address, Order order, std::size_t choice = 0) {
    choices(thread, address, order);
    return memory.load(thread, address, order, choice);
  }

  Memory memory;
  std::uint64_t value[2];
};

TEST_F(Orders, ALoadMaySeeAnOlderStore) {
  store(1, kData, Order::relaxed, 1);
  EXPECT_EQ(choices(2, kData, Order::acquire), 2u);
  EXPECT_EQ(load(2, kData, Order::acquire, 1), 0u);
  EXPECT_EQ(load(2, kData, Order::acquire), 1u);
}

TEST_F(Orders, NobodyForgetsWhatItSawOrWrote) {
  store(1, kData, Order::relaxed, 1);
  store(1, kData, Order::relaxed, 2);
  EXPECT_EQ(choices(1, kData, Order::relaxed), 1u);
  EXPECT_EQ(load(2, kData, Order::relaxed, 1), 1u);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 2u);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 3u);
}

TEST_F(Orders, WhatAnAcquiredStorePublishedIsSeen) {
  store(1, kData, Order::relaxed, 1);
  store(1, kFlag, Order::release, 1);
  EXPECT_EQ(load(2, kFlag, Order::acquire), 1u);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 1u);
}

TEST_F(Orders, ARelaxedStoreOrLoadPublishesNothing) {
  store(1, kData, Order::relaxed, 1);
  store(1, kFlag, Order::relaxed, 1);
  load(2, kFlag, Order::acquire);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 2u);
  store(1, kFlag, Order::release, 2);
  load(3, kFlag, Order::relaxed);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 2u);
  memory.fence(3, Order::acquire);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 1u);
}

TEST_F(Orders, AReadModifyWriteCarriesOnWhatItReplaced) {
  store(1, kData, Order::relaxed, 1);
  store(1, kFlag, Order::release, 1);
  modify(3, kFlag, Order::relaxed, 2);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 2u) << "relaxed: the modifier itself acquired nothing";
  load(2, kFlag, Order::acquire);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 1u);
}

TEST_F(Orders, SeqCstLoadsSeeNothingOlderThanTheLastSeqCstStore) {
  store(1, kData, Order::seq_cst, 1);
  EXPECT_EQ(choices(2, kData, Order::acquire), 2u);
  EXPECT_EQ(choices(2, kData, Order::seq_cst), 1u);
}

TEST_F(Orders, AMembarrierShowsEverythingToEverybody) {
  store(1, kData, Order::relaxed, 1);
  memory.membarrier();
  EXPECT_EQ(choices(2, kData, Order::relaxed), 1u);
  store(1, kData, Order::relaxed, 2);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 2u);
}

// Store buffering: each thread stores, fences, and loads what the other one stores.
TEST_F(Orders, OfTwoThatFenceTheLaterOneSeesWhatTheEarlierOneStored) {
  store(1, kData, Order::relaxed, 1);
  memory.fence(1, Order::seq_cst);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 2u) << "it has not fenced";
  store(2, kFlag, Order::relaxed, 1);
  EXPECT_EQ(choices(1, kFlag, Order::relaxed), 2u) << "behind a fence that came before the store";
  memory.fence(2, Order::seq_cst);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 1u);
  EXPECT_EQ(choices(1, kFlag, Order::relaxed), 2u);
}

TEST_F(Orders, AStoreWithoutAFenceBehindItIsShownByNoFence) {
  store(1, kData, Order::relaxed, 1);
  memory.fence(2, Order::seq_cst);
  EXPECT_EQ(choices(2, kData, Order::relaxed), 2u);
  memory.fence(1, Order::acq_rel);
  memory.fence(3, Order::seq_cst);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 2u) << "acq_rel is less";
}

TEST_F(Orders, AFenceShowsWhatItsThreadHasSeen) {
  store(1, kData, Order::relaxed, 1);
  EXPECT_EQ(load(2, kData, Order::relaxed), 1u);
  memory.fence(2, Order::seq_cst);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 2u);
  memory.fence(3, Order::seq_cst);
  EXPECT_EQ(choices(3, kData, Order::relaxed), 1u);
}

TEST_F(Orders, FencesAndSeqCstAccessesMeet) {
  store(1, kData, Order::relaxed, 1);
  memory.fence(1, Order::seq_cst);
  EXPECT_EQ(choices(2, kData, Order::seq_cst), 1u) << "the load comes behind the fence";
  store(1, kFlag, Order::seq_cst, 1);
  memory.fence(3, Order::seq_cst);
  EXPECT_EQ(choices(3, kFlag, Order::relaxed), 1u) << "the store came before the fence";
}

TEST_F(Orders, UnorderedPlainAccessesRace) {
  EXPECT_FALSE(memory.plain(1, 0x3000, 4, true).found);
  EXPECT_FALSE(memory.plain(1, 0x3000, 4, true).found);
  EXPECT_FALSE(memory.plain(2, 0x3004, 4, true).found) << "other bytes";
  const Race race = memory.plain(2, 0x3003, 1, false);
  EXPECT_TRUE(race.found && race.other_wrote);
  EXPECT_EQ(race.other, 1u);
}

TEST_F(Orders, TwoReadsDoNotRaceAndAReadBeforeAWriteDoes) {
  EXPECT_FALSE(memory.plain(1, 0x3000, 4, false).found);
  EXPECT_FALSE(memory.plain(2, 0x3000, 4, false).found);
  const Race race = memory.plain(3, 0x3000, 4, true);
  EXPECT_TRUE(race.found && !race.other_wrote);
}

TEST_F(Orders, WhatAFlagOrdersDoesNotRace) {
  memory.plain(1, 0x3000, 4, true);
  store(1, kFlag, Order::release, 1);
  load(2, kFlag, Order::acquire);
  EXPECT_FALSE(memory.plain(2, 0x3000, 4, true).found);
  // What came behind the store was not published.
  memory.plain(1, 0x4000, 4, true);
  EXPECT_TRUE(memory.plain(2, 0x4000, 4, false).found);
}

TEST_F(Orders, AReleaseFencePublishesWhatCameBeforeItAlone) {
  memory.plain(1, 0x3000, 4, true);
  memory.fence(1, Order::release);
  memory.plain(1, 0x4000, 4, true);
  store(1, kFlag, Order::relaxed, 1);
  EXPECT_EQ(load(2, kFlag, Order::acquire), 1u);
  EXPECT_FALSE(memory.plain(2, 0x3000, 4, true).found);
  EXPECT_TRUE(memory.plain(2, 0x4000, 4, false).found);
  // A second fence publishes it.
  memory.fence(1, Order::release);
  store(1, kFlag, Order::relaxed, 2);
  EXPECT_EQ(load(3, kFlag, Order::acquire), 2u);
  EXPECT_FALSE(memory.plain(3, 0x4000, 4, false).found);
}

TEST_F(Orders, AThreadComesAfterItsMakerAndBeforeWhoJoinsIt) {
  memory.plain(0, 0x3000, 4, true);
  memory.spawned(5, 0);
  EXPECT_FALSE(memory.plain(5, 0x3000, 4, true).found);
  memory.joined(0, 5);
  EXPECT_FALSE(memory.plain(0, 0x3000, 4, true).found);
}

TEST_F(Orders, TheFirstStoreOfAProgramComesBeforeTheThreadsThatFollow) {
  Memory fresh;
  fresh.store(0, kData, Order::relaxed, 0, 1);
  fresh.spawned(1, 0);
  EXPECT_EQ(fresh.choices(1, kData, Order::relaxed, 1), 1u);
}

TEST_F(Orders, ALockOrders) {
  memory.plain(1, 0x3000, 4, true);
  memory.released(1, 0x9000);
  memory.acquired(2, 0x9000);
  EXPECT_FALSE(memory.plain(2, 0x3000, 4, true).found);
}

TEST_F(Orders, MemoryThatIsGivenOutAnewHasNoPast) {
  memory.plain(1, 0x3000, 64, true);
  memory.forget(0x3000, 64);
  EXPECT_FALSE(memory.plain(2, 0x3000, 64, true).found);
  memory.plain(1, 0x10000, 64, true);
  memory.forget(0x10000, 1 << 20);
  EXPECT_FALSE(memory.plain(2, 0x10000, 64, true).found);
}

}  // namespace
}  // namespace loam::simulator
