// What a list holds back and hands over, to the last block: batches, growth, exits, limits.
#include "tests/harness/child.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/unit/reclaim/members.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace loam::reclaim {
namespace {

using LimboTest = DomainTest;

std::size_t address_space_bytes() {
  std::size_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * static_cast<std::size_t>(getpagesize());
}

TEST_F(LimboTest, ReadersOfDifferentAgeHoldBackWhatEachMaySee) {
  // More batches than a list tells apart, with the young reader's entry before each of them in turn. What was retired
  // after it must outlive the old reader.
  constexpr std::size_t kBatch = Limits{}.batch_blocks, kBatches = 14;
  for (std::size_t before = 0; before <= kBatches; ++before) {
    freed_names.clear();
    const auto domain = make();
    Member writer(*domain), old(*domain), young(*domain), third(*domain);
    domain->enter(old.self);
    for (std::size_t batch = 0; batch < kBatches; ++batch) {
      if (batch == before) domain->enter(young.self);
      for (std::size_t i = 0; i < kBatch; ++i)
        domain->retire(writer.limbo, reinterpret_cast<void*>(batch * kBatch + i), note_name, 16);
      writer.settle();
    }
    EXPECT_EQ(freed_names.size(), 0u) << "the old reader is inside";
    domain->leave(old.self);
    if (before == kBatches) domain->enter(young.self);
    writer.reclaim();
    EXPECT_LE(freed_names.size(), before * kBatch) << "freed under the young reader that came before batch " << before;
    // What is stamped apart from what the young reader may see is not held back by it.
    EXPECT_GE(freed_names.size(), std::min(before, std::size_t{7}) * kBatch) << before;
    // The batches that are left keep their stamps: nothing more goes, and a third reader holds back what comes then.
    const std::size_t so_far = freed_names.size();
    for (int scan = 0; scan < 2; ++scan) EXPECT_EQ(writer.reclaim(), kBatches * kBatch - so_far);
    EXPECT_EQ(freed_names.size(), so_far);
    domain->enter(third.self);
    for (std::size_t i = 0; i < kBatch; ++i)
      domain->retire(writer.limbo, reinterpret_cast<void*>(kBatches * kBatch + i), note_name, 16);
    domain->leave(young.self);
    writer.reclaim();
    EXPECT_LE(freed_names.size(), kBatches * kBatch) << "freed under the third reader";
    domain->leave(third.self);
    EXPECT_EQ(writer.reclaim(), 0u);
    ASSERT_EQ(freed_names.size(), (kBatches + 1) * kBatch);
    EXPECT_TRUE(std::is_sorted(freed_names.begin(), freed_names.end()));
  }
}

TEST_F(LimboTest, AListThatGrowsWhileBlocksAreProposedKeepsThem) {
  // Proposed blocks lie behind the list: they move with it. Withdrawn ones leave nothing behind.
  for (const bool withdraws : {false, true}) {
    freed_names.clear();
    const auto domain = make();
    Member writer(*domain);
    const auto propose = [&](std::uintptr_t name) {
      domain->propose(writer.limbo, reinterpret_cast<void*>(name), note_name, 16);
    };
    for (std::uintptr_t name = 0; name < 200; ++name)
      domain->retire(writer.limbo, reinterpret_cast<void*>(name), note_name, 16);
    EXPECT_EQ(writer.reclaim(), 0u);
    for (std::uintptr_t name = 200; name < 1000; ++name) propose(name);
    EXPECT_GE(writer.limbo.capacity(), 800u) << "it has grown";
    EXPECT_EQ(writer.limbo.proposals(), 800u);
    EXPECT_EQ(writer.limbo.blocks(), 0u);
    EXPECT_EQ(writer.limbo.bytes(), 0u) << "what is only proposed is not held back";
    std::size_t kept = 800;
    if (withdraws) {
      kept = 300;
      domain->withdraw_to(writer.limbo, kept);
      EXPECT_EQ(writer.limbo.proposals(), kept);
    }
    domain->accept(writer.limbo);
    EXPECT_FALSE(writer.limbo.has_proposals());
    EXPECT_EQ(writer.limbo.blocks(), kept);
    EXPECT_EQ(writer.limbo.bytes(), kept * (16 + sizeof(Retired)));
    propose(5000);
    domain->withdraw(writer.limbo);
    EXPECT_FALSE(writer.limbo.has_proposals());
    EXPECT_EQ(writer.reclaim(), 0u);
    EXPECT_EQ(writer.limbo.bytes(), 0u);
    ASSERT_EQ(freed_names.size(), 200 + kept);
    for (std::uintptr_t name = 0; name < 200 + kept; ++name) ASSERT_EQ(freed_names[name], name);
  }
}

TEST_F(LimboTest, RoomThatWasMadeTakesSoManyProposalsWithoutGrowing) {
  freed_names.clear();
  const auto domain = make();
  Member writer(*domain);
  std::uintptr_t name = 0;
  for (const std::size_t wanted : {1, 64, 300, 5000}) {
    domain->make_room(writer.limbo, wanted);
    const std::size_t capacity = writer.limbo.capacity();
    EXPECT_GE(capacity - writer.limbo.blocks(), wanted);
    for (std::size_t i = 0; i < wanted; ++i)
      domain->propose(writer.limbo, reinterpret_cast<void*>(name++), note_name, 16);
    EXPECT_EQ(writer.limbo.capacity(), capacity) << wanted;
    domain->accept(writer.limbo);
  }
  EXPECT_EQ(writer.reclaim(), 0u);
  ASSERT_EQ(freed_names.size(), name);
  for (std::uintptr_t i = 0; i < name; ++i) ASSERT_EQ(freed_names[i], i);
}

TEST_F(LimboTest, WhatAThreadLeavesIsCountedAndAdoptedToTheLastBlock) {
  for (const std::size_t blocks : {1u, 2u, 100u}) {
    freed = 0;
    const auto domain = make();
    EXPECT_EQ(domain->orphan_blocks(), 0u);
    EXPECT_EQ(domain->orphan_bytes(), 0u);
    Member stays(*domain), reader(*domain);
    domain->enter(reader.self);
    {
      Member leaves(*domain);
      for (std::size_t i = 0; i < blocks; ++i) leaves.retire(1, 40);
      leaves.exit();
    }
    EXPECT_EQ(domain->orphan_blocks(), blocks);
    EXPECT_EQ(domain->orphan_bytes(), blocks * (40 + sizeof(Retired)));
    EXPECT_EQ(stays.reclaim(), blocks) << "adopted, and held back";
    EXPECT_EQ(domain->orphan_blocks(), 0u);
    EXPECT_EQ(domain->orphan_bytes(), 0u);
    EXPECT_EQ(stays.limbo.bytes(), blocks * (40 + sizeof(Retired)));
    domain->leave(reader.self);
    EXPECT_EQ(stays.reclaim(), 0u);
    EXPECT_EQ(freed, blocks);
  }
}

TEST_F(LimboTest, AThreadThatHasGoneLeavesNoAddressesBehind) {
  if (tests::kInstrumented) GTEST_SKIP() << "a sanitizer has addresses of its own";
  const auto domain = make();
  Member stays(*domain);
  const auto live = [&] {
    Member guest(*domain);
    guest.retire(1);
  };
  live();
  const std::size_t before = address_space_bytes();
  for (int round = 0; round < 50; ++round) live();
  EXPECT_LT(address_space_bytes(), before + (std::size_t{16} << 20)) << "a list reserves 1.5 GiB";
}

TEST_F(LimboTest, WhereAddressesAreScarceAListHoldsAMillionBlocks) {
  if (tests::kInstrumented) GTEST_SKIP() << "a sanitizer has addresses of its own";
  tests::in_child([] {
    const auto domain = make();
    const rlim_t most = address_space_bytes() + (std::size_t{64} << 20);
    const rlimit now{most, most};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &now), 0);
    Member writer(*domain), reader(*domain);
    domain->enter(reader.self);
    constexpr std::size_t kBlocks = (std::size_t{1} << 20) - 1;
    for (std::size_t i = 0; i < kBlocks; ++i) domain->retire(writer.limbo, nullptr, count_free, 0);
    domain->leave(reader.self);
    EXPECT_EQ(writer.reclaim(), 0u);
    EXPECT_EQ(freed, kBlocks);
  });
}

// Retires one block more than the list has room for.
TEST_F(LimboTest, AListThatCannotGrowEndsTheProgramWithTheNumberOfItsBlocks) {
  if (tests::kInstrumented) GTEST_SKIP() << "a sanitizer has addresses of its own";
  tests::in_child([] {
    const auto domain = make();
    const rlim_t most = address_space_bytes() + (std::size_t{64} << 20);
    const rlimit now{most, most};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &now), 0);
    Member writer(*domain), reader(*domain);
    domain->enter(reader.self);
    constexpr std::size_t kBlocks = std::size_t{1} << 20;
    for (std::size_t i = 0; i < kBlocks; ++i) domain->retire(writer.limbo, nullptr, count_free, 0);
    EXPECT_DEATH(domain->retire(writer.limbo, nullptr, count_free, 0), "reclaim: 1048576 blocks are held back");
    domain->leave(reader.self);
    EXPECT_EQ(writer.reclaim(), 0u);
    EXPECT_EQ(freed, kBlocks);
  });
}

TEST_F(LimboTest, AForgottenThreadHoldsNothingBackAndItsSlotServesAgain) {
  const auto domain = make();
  Member writer(*domain);
  Member gone(*domain);  // as in the child of a fork: inside, and not there any more
  domain->enter(gone.self);
  writer.retire(1);
  EXPECT_EQ(writer.reclaim(), 1u);
  domain->forget_slot(gone.slot);
  gone.gone = true;
  EXPECT_EQ(writer.reclaim(), 0u);
  const Member next(*domain);
  EXPECT_EQ(next.slot, gone.slot);
}

TEST_F(LimboTest, ToWaitForIdleThreadsWaitsForReadersAlone) {
  const auto domain = make();
  Member waiter(*domain), idle(*domain), reader(*domain);
  domain->wait_for_idle(waiter.self);  // nobody is inside
  domain->enter(reader.self);
  std::atomic<bool> is_over{false};
  std::thread waits([&] {
    domain->wait_for_idle(waiter.self);
    is_over = true;
  });
  platform::sleep_ns(5'000'000);
  EXPECT_FALSE(is_over) << "a reader is inside";
  domain->leave(reader.self);
  waits.join();
  EXPECT_TRUE(is_over);
}

TEST_F(LimboTest, ARetirerGoesOnOnceItIsUnderItsLimitThoughSomeIsHeldBack) {
  const auto domain = make({.batch_blocks = 8, .held_bytes_max = 8192, .wait_ns_max = 20'000'000'000});
  Member writer(*domain), old(*domain), young(*domain);
  domain->enter(old.self);
  const auto retire_batch = [&] {
    for (int i = 0; i < 8; ++i) writer.retire(1, 64);
    writer.settle();
  };
  for (int batch = 0; batch < 6; ++batch) retire_batch();
  ASSERT_EQ(freed, 0u);
  domain->enter(young.self);
  std::thread leaver([&] {
    platform::sleep_ns(20'000'000);
    domain->leave(old.self);
  });
  for (int batch = 0; batch < 8; ++batch) retire_batch();  // over the limit until the old reader leaves
  leaver.join();
  EXPECT_EQ(domain->stalls_reported(), 0u);
  EXPECT_EQ(freed, 48u) << "what was retired before the young reader came, which is still inside";
  domain->leave(young.self);
}

TEST_F(LimboTest, AReportedStallSaysHowLongAndDoublesTheBound) {
  const auto domain = make({.batch_blocks = 8, .held_bytes_max = 4096, .wait_ns_max = 3'000'000});
  Member writer(*domain), stalled(*domain);
  domain->enter(stalled.self);
  testing::internal::CaptureStderr();
  std::vector<std::size_t> at;
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t before = domain->stalls_reported();
    writer.retire(1, 64);
    writer.settle();
    if (domain->stalls_reported() != before) at.push_back(writer.limbo.bytes());
  }
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_NE(message.find("has run for over 3 ms and holds back " + std::to_string(at.front()) + " bytes"),
            std::string::npos)
      << message;
  ASSERT_GE(at.size(), 3u);
  constexpr std::size_t kBatchBytes = 8 * (64 + sizeof(Retired));
  for (std::size_t i = 1; i < at.size(); ++i) {
    EXPECT_GT(at[i], 2 * at[i - 1]);
    EXPECT_LE(at[i], 2 * at[i - 1] + kBatchBytes);
  }
  domain->leave(stalled.self);
}

}  // namespace
}  // namespace loam::reclaim
