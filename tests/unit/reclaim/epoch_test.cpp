#include "tests/unit/reclaim/members.hpp"

#include "runtime/platform/pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace loam::reclaim {
namespace {

using EpochTest = DomainTest;

TEST_F(EpochTest, ABlockIsFreedWhenNobodyIsInside) {
  const auto domain = make();
  Member writer(*domain), idle(*domain);
  writer.retire(1);
  EXPECT_EQ(freed, 0u);
  EXPECT_EQ(writer.reclaim(), 0u);
  EXPECT_EQ(freed, 1u);
}

TEST_F(EpochTest, TheListStaysSmallHoweverMuchGoesThroughIt) {
  const auto domain = make();
  Member writer(*domain);
  for (std::uintptr_t name = 1; name <= 1'000'000; ++name) {
    writer.retire(name);
    writer.settle();
  }
  EXPECT_LE(writer.limbo.capacity(), 1024u);
  EXPECT_EQ(writer.reclaim(), 0u);
  EXPECT_EQ(freed, 1'000'000u);
}

TEST_F(EpochTest, AGrowingListKeepsItsEntriesInOrder) {
  static std::vector<std::uintptr_t> names;
  names.clear();
  const auto domain = make();
  Member writer(*domain), reader(*domain);
  const auto retire = [&](std::uintptr_t name) {
    domain->retire(
        writer.limbo, reinterpret_cast<void*>(name),
        [](void* block) { names.push_back(reinterpret_cast<std::uintptr_t>(block)); }, 16);
  };
  // The ring is about to turn over when it first grows.
  for (std::uintptr_t name = 0; name < 200; ++name) retire(name);
  writer.reclaim();
  domain->enter(reader.self);
  for (std::uintptr_t name = 200; name < 5000; ++name) retire(name);
  EXPECT_EQ(names.size(), 200u);
  domain->leave(reader.self);
  EXPECT_EQ(writer.reclaim(), 0u);
  ASSERT_EQ(names.size(), 5000u);
  for (std::uintptr_t name = 0; name < 5000; ++name) ASSERT_EQ(names[name], name);
}

TEST_F(EpochTest, ABlockRetiredUnderAReaderWaitsUntilItLeaves) {
  const auto domain = make();
  Member writer(*domain), reader(*domain);
  domain->enter(reader.self);
  writer.retire(1);
  for (int scan = 0; scan < 5; ++scan) EXPECT_EQ(writer.reclaim(), 1u);
  EXPECT_EQ(freed, 0u);
  domain->leave(reader.self);
  EXPECT_EQ(writer.reclaim(), 0u);
  EXPECT_EQ(freed, 1u);
}

TEST_F(EpochTest, AReaderThatCameAfterTheAdvanceHoldsNothingBack) {
  const auto domain = make();
  Member writer(*domain), before(*domain), after(*domain);
  domain->enter(before.self);
  writer.retire(1);
  EXPECT_EQ(writer.reclaim(), 1u);
  domain->enter(after.self);
  domain->leave(before.self);
  EXPECT_EQ(writer.reclaim(), 0u) << "the reader inside began after the block was unlinked";
  writer.retire(2);
  EXPECT_EQ(writer.reclaim(), 1u) << "but not after this one";
  domain->leave(after.self);
  EXPECT_EQ(writer.reclaim(), 0u);
}

TEST_F(EpochTest, IdleThreadsHoldNothingBackHoweverOldTheirLastSection) {
  const auto domain = make();
  Member writer(*domain);
  std::vector<std::unique_ptr<Member>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<Member>(*domain));
    domain->enter(idle.back()->self);
    domain->leave(idle.back()->self);
  }
  for (int round = 0; round < 10; ++round) {
    writer.retire(1);
    EXPECT_EQ(writer.reclaim(), 0u);
  }
  EXPECT_EQ(freed, 10u);
}

TEST_F(EpochTest, SettleAloneFreesWhileOthersStayIdle) {
  const auto domain = make();
  Member writer(*domain), idle(*domain);
  domain->enter(idle.self);
  domain->leave(idle.self);
  std::size_t most = 0;
  for (int i = 0; i < 10000; ++i) {
    writer.retire(1);
    writer.settle();
    most = std::max(most, writer.limbo.blocks());
  }
  EXPECT_LE(most, 4 * Limits{}.batch_blocks) << "a few batches at most wait";
}

TEST_F(EpochTest, SettleNeverFreesUnderAReader) {
  const auto domain = make();
  Member writer(*domain), reader(*domain);
  domain->enter(reader.self);
  for (int i = 0; i < 1000; ++i) {
    writer.retire(1);
    writer.settle();
  }
  EXPECT_EQ(freed, 0u);
  EXPECT_EQ(writer.limbo.blocks(), 1000u);
  EXPECT_EQ(writer.limbo.bytes(), 1000 * (16 + sizeof(Retired)));
  domain->leave(reader.self);
  EXPECT_EQ(writer.reclaim(), 0u);
  EXPECT_EQ(freed, 1000u);
}

TEST_F(EpochTest, AThreadThatExitsHandsItsLimboOver) {
  const auto domain = make();
  Member stays(*domain), reader(*domain);
  domain->enter(reader.self);
  {
    Member leaves(*domain);
    for (int i = 0; i < 100; ++i) leaves.retire(1);
    leaves.exit();
  }
  EXPECT_EQ(freed, 0u) << "the reader is still inside";
  EXPECT_EQ(stays.reclaim(), 100u) << "adopted, and still held back";
  domain->leave(reader.self);
  EXPECT_EQ(stays.reclaim(), 0u);
  EXPECT_EQ(freed, 100u);
}

TEST_F(EpochTest, OrphansAreAdoptedInOrderTogetherWithOwnBlocks) {
  const auto domain = make();
  Member stays(*domain), reader(*domain);
  domain->enter(reader.self);
  for (int round = 0; round < 5; ++round) {
    Member leaves(*domain);
    for (int i = 0; i < 7; ++i) leaves.retire(1);
    leaves.exit();
    stays.retire(1);
    EXPECT_EQ(stays.reclaim(), 8u * (round + 1));
  }
  domain->leave(reader.self);
  EXPECT_EQ(stays.reclaim(), 0u);
  EXPECT_EQ(freed, 40u);
}

TEST_F(EpochTest, AStalledReaderIsReportedAfterTheWaitAndTheRestGoesOn) {
  const auto domain = make({.batch_blocks = 8, .held_bytes_max = 4096, .wait_ns_max = 3'000'000});
  Member writer(*domain), stalled(*domain);
  domain->enter(stalled.self);
  testing::internal::CaptureStderr();
  const auto start = platform::monotonic_ns();
  for (int i = 0; i < 4000; ++i) {
    writer.retire(1, 64);
    writer.settle();
  }
  const auto elapsed = platform::monotonic_ns() - start;
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_GE(domain->stalls_reported(), 2u);
  EXPECT_LE(domain->stalls_reported(), 12u) << "the bound doubles each time";
  EXPECT_GE(elapsed, domain->stalls_reported() * 3'000'000u) << "it waits before it goes on";
  EXPECT_NE(message.find("holds back"), std::string::npos) << message;
  EXPECT_EQ(freed, 0u) << "never early";
  EXPECT_EQ(writer.limbo.blocks(), 4000u);
  domain->leave(stalled.self);
  EXPECT_EQ(writer.reclaim(), 0u);
  EXPECT_EQ(freed, 4000u);
}

TEST_F(EpochTest, ARetirerWaitsForAReaderThatIsOnlySlow) {
  const auto domain = make({.batch_blocks = 8, .held_bytes_max = 4096, .wait_ns_max = 20'000'000'000});
  Member writer(*domain), slow(*domain);
  domain->enter(slow.self);
  std::thread leaver([&] {
    platform::sleep_ns(20'000'000);
    domain->leave(slow.self);
  });
  for (int i = 0; i < 200; ++i) {
    writer.retire(1, 64);
    writer.settle();
  }
  leaver.join();
  EXPECT_EQ(domain->stalls_reported(), 0u);
  EXPECT_LE(writer.limbo.bytes(), 4096u + 8 * (64 + sizeof(Retired)));
}

TEST_F(EpochTest, AMillionRetirementsInConstantMemory) {
  const auto domain = make();
  Member writer(*domain), busy(*domain), idle(*domain);
  std::size_t most = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    domain->enter(busy.self);
    writer.retire(1);
    domain->leave(busy.self);
    writer.settle();
    most = std::max(most, writer.limbo.blocks());
  }
  EXPECT_LE(most, 4 * Limits{}.batch_blocks);
  writer.reclaim();
  EXPECT_EQ(freed, 1'000'000u);
}

TEST_F(EpochTest, TheNextThreadInASlotStartsClean) {
  const auto domain = make();
  Member writer(*domain);
  for (int round = 0; round < 50; ++round) {
    Member guest(*domain);
    EXPECT_EQ(guest.slot, 1u);
    EXPECT_EQ(guest.limbo.blocks(), 0u);
    domain->enter(guest.self);
    guest.retire(1);
    domain->leave(guest.self);
  }
  writer.reclaim();
  EXPECT_EQ(freed, 50u);
}

// Readers follow a pointer that writers swing, with real memory: use after free is for the sanitizers to see, a value
// that was overwritten is seen everywhere.
TEST_F(EpochTest, ReadersNeverSeeAFreedBlock) {
  constexpr std::uint64_t kAlive = 0x1234567890abcdef;
  const auto domain = make();
  static std::atomic<std::uint64_t> shredded_seen;
  shredded_seen = 0;
  const auto shred = [](void* block) {
    static_cast<std::atomic<std::uint64_t>*>(block)->store(0, std::memory_order_relaxed);
    really_free(block);
  };
  const auto fresh = [] {
    auto* const block = static_cast<std::atomic<std::uint64_t>*>(std::malloc(16));
    block->store(kAlive, std::memory_order_relaxed);
    return block;
  };
  std::atomic<std::atomic<std::uint64_t>*> shared{fresh()};
  std::atomic<int> writers_left{2};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int life = 0; life < 20; ++life) {  // exits in the middle: a new member each time
        Member member(*domain);
        for (int i = 0; i < 200; ++i) {
          domain->retire(member.limbo, shared.exchange(fresh(), std::memory_order_acq_rel), shred, 16);
          member.settle();
        }
      }
      --writers_left;
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      Member member(*domain);
      while (writers_left > 0) {
        domain->enter(member.self);
        const auto* const block = shared.load(std::memory_order_acquire);
        for (int i = 0; i < 20; ++i) shredded_seen += block->load(std::memory_order_relaxed) != kAlive;
        domain->leave(member.self);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shredded_seen.load(), 0u);
  Member last(*domain);
  EXPECT_EQ(last.reclaim(), 0u);
  EXPECT_EQ(freed, 8000u);
  std::free(shared.load());
}

TEST_F(EpochTest, TooManyThreadsEndTheProgramWithTheLimit) {
  EXPECT_DEATH(
      {
        const auto domain = make();
        for (unsigned i = 0; i <= Domain::kSlots; ++i) domain->acquire_slot();
      },
      "reclaim: 16384 threads are registered already");
}

}  // namespace
}  // namespace loam::reclaim
