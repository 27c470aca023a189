// Long blocks that wait with their page: which one serves, and what has to go.
#include "runtime/heap/closed_blocks.hpp"

#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using Block = ClosedBlocks::Block;

void* place(std::uintptr_t number) { return reinterpret_cast<void*>(number << 24); }

struct Gone {
  std::vector<void*> blocks;
  auto operator()() {
    return [this](void* block) { blocks.push_back(block); };
  }
};

const char* verified(ClosedBlocks& closed) {
  return closed.verify([](const Block&) { return true; });
}

TEST(ClosedBlocks, TheOldestThatFitsServes) {
  ClosedBlocks closed;
  Gone gone;
  EXPECT_EQ(closed.take(1).start, nullptr);
  closed.put({place(1), 500'000}, gone());
  closed.put({place(2), 300'000}, gone());
  closed.put({place(3), 301'000}, gone());
  closed.put({place(9), 100}, gone());
  EXPECT_EQ(closed.take(301'001).start, nullptr) << "two are too short, one is too long";
  EXPECT_EQ(closed.take(300'500).start, place(3));
  closed.put({place(4), 300'000}, gone());
  EXPECT_EQ(closed.take(300'000 - kUnitBytes).start, place(2));
  EXPECT_EQ(closed.take(300'000).start, nullptr) << "the one that was freed last";
  closed.put({place(8), 100}, gone());
  EXPECT_EQ(closed.take(300'000 - kUnitBytes - 1).start, nullptr);
  EXPECT_EQ(closed.take(300'000).usable_bytes, 300'000u);
  EXPECT_EQ(closed.take(300'000).start, nullptr);
  EXPECT_EQ(verified(closed), nullptr);
  EXPECT_TRUE(gone.blocks.empty());
}

TEST(ClosedBlocks, OneTooManyPushesTheOldestOut) {
  ClosedBlocks closed;
  Gone gone;
  for (std::size_t i = 0; i < ClosedBlocks::kMax + 2; ++i) closed.put({place(i + 1), 100}, gone());
  EXPECT_EQ(gone.blocks, (std::vector{place(1), place(2)}));
  EXPECT_EQ(verified(closed), nullptr);
}

TEST(ClosedBlocks, SoManyBytesAreHeldAndNoMore) {
  ClosedBlocks closed;
  Gone gone;
  constexpr std::size_t kFit = ClosedBlocks::kBytesMax / ClosedBlocks::kBlockBytesMax;
  static_assert(kFit < ClosedBlocks::kMax);
  for (std::size_t i = 0; i < kFit; ++i) closed.put({place(i + 1), ClosedBlocks::kBlockBytesMax}, gone());
  EXPECT_TRUE(gone.blocks.empty());
  closed.put({place(99), 1}, gone());
  EXPECT_EQ(gone.blocks, std::vector{place(1)});
  EXPECT_EQ(verified(closed), nullptr);
  EXPECT_TRUE(closed.give_all(gone()));
  EXPECT_EQ(gone.blocks.size(), kFit + 1);
  EXPECT_FALSE(closed.give_all(gone()));
  EXPECT_EQ(verified(closed), nullptr);
}

TEST(ClosedBlocks, VerifyTellsWhichIsNotZero) {
  ClosedBlocks closed;
  Gone gone;
  closed.put({place(1), 100}, gone());
  closed.put({place(2), 100}, gone());
  EXPECT_STREQ(closed.verify([](const Block& block) { return block.start != place(2); }), "C1: a closed block is zero");
}

// The blocks are lost, and the bytes that they had serve others.
TEST(ClosedBlocks, AChildOfAForkBeginsAnewWhereAThreadWasChangingTheList) {
  ClosedBlocks closed;
  Gone gone;
  closed.put({place(1), ClosedBlocks::kBlockBytesMax}, gone());
  closed.put({place(2), ClosedBlocks::kBlockBytesMax}, gone());
  std::atomic<bool> within{false}, go_on{false};
  std::thread other([&] {
    closed.for_each([&](const Block&) {
      within = true;
      while (!go_on) std::this_thread::yield();
    });
  });
  while (!within) std::this_thread::yield();
  EXPECT_TRUE(tests::in_fork([&] {
    closed.mend_in_child();
    if (verified(closed) != nullptr || closed.take(ClosedBlocks::kBlockBytesMax).start != nullptr) return false;
    constexpr std::size_t kFit = ClosedBlocks::kBytesMax / ClosedBlocks::kBlockBytesMax;
    for (std::size_t i = 0; i < kFit; ++i) closed.put({place(i + 1), ClosedBlocks::kBlockBytesMax}, gone());
    return gone.blocks.empty() && verified(closed) == nullptr;
  }));
  go_on = true;
  other.join();
  EXPECT_TRUE(tests::in_fork([&] {
    closed.mend_in_child();
    return verified(closed) == nullptr && closed.take(ClosedBlocks::kBlockBytesMax).start == place(1);
  })) << "nobody was changing it";
}

}  // namespace
}  // namespace loam::heap
