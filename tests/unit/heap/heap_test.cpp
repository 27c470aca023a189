// The heap as a whole, over its own composition: no malloc is replaced here.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;

using tests::holds;
constexpr auto filled = tests::filled<TestHeap>;
constexpr auto verified = tests::verified<TestHeap>;
constexpr auto in_a_thread = [](auto body) { tests::in_a_thread<TestHeap>(body); };

const std::size_t kSizes[] = {0,    1,    8,    16,    17,    24,    100,    128,     129,     1000,     1024,
                              1025, 4096, 8192, 32768, 32832, 32833, 100000, 1 << 20, 5 << 20, 70 << 20, 300 << 20};

TEST(Heap, BlocksAreAlignedDistinctAndUsableInFull) {
  std::map<std::byte*, std::size_t> blocks;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t bytes : kSizes) {
      auto* const block = static_cast<std::byte*>(TestHeap::allocate(bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(address_of(block) % kBlockAlignment, 0u);
      const std::size_t usable = TestHeap::usable_bytes(block);
      EXPECT_GE(usable, bytes);
      if (bytes <= 5 << 20) std::memset(block, 0xa5, usable);
      const auto [at, added] = blocks.emplace(block, usable);
      ASSERT_TRUE(added);
      if (at != blocks.begin()) {
        EXPECT_LE(std::prev(at)->first + std::prev(at)->second, block);
      }
      if (std::next(at) != blocks.end()) {
        EXPECT_LE(block + usable, std::next(at)->first);
      }
    }
  EXPECT_EQ(verified(), "");
  for (const auto& [block, usable] : blocks) TestHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

TEST(Heap, AlignedBlocksAre) {
  std::vector<void*> blocks;
  for (std::size_t alignment = 1; alignment <= 64 << 20; alignment *= 2)
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{200000}, alignment}) {
      void* const block = TestHeap::allocate_aligned(alignment, bytes);
      ASSERT_NE(block, nullptr) << alignment << " " << bytes;
      EXPECT_EQ(address_of(block) % alignment, 0u);
      EXPECT_GE(TestHeap::usable_bytes(block), bytes);
      std::memset(block, 1, std::min<std::size_t>(bytes, 1 << 20));
      blocks.push_back(block);
    }
  EXPECT_EQ(verified(), "");
  for (void* const block : blocks) TestHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

TEST(Heap, BlocksOfNoBytesAreDistinctHoweverAligned) {
  std::set<void*> blocks;
  for (std::size_t alignment = 16; alignment <= 1 << 20; alignment *= 2)
    for (int i = 0; i < 3; ++i) {
      void* const block = TestHeap::allocate_aligned(alignment, 0);
      EXPECT_EQ(address_of(block) % alignment, 0u);
      EXPECT_TRUE(blocks.insert(block).second) << alignment;
    }
  EXPECT_EQ(verified(), "");
  for (void* const block : blocks) TestHeap::deallocate(block);
}

TEST(Heap, ZeroedBlocksAreZeroWhereTheyWereUsedBefore) {
  for (int round = 0; round < 3; ++round)
    for (const std::size_t bytes : kSizes) {
      if (bytes > 5 << 20) continue;
      std::byte* const block = static_cast<std::byte*>(TestHeap::allocate_zeroed(bytes));
      EXPECT_TRUE(holds(block, bytes, 0)) << bytes;
      std::memset(block, 0xff, bytes);
      TestHeap::deallocate(block);
    }
}

TEST(Heap, ReallocateKeepsTheContents) {
  for (const std::size_t from : kSizes)
    for (const std::size_t to : kSizes) {
      if (from > 5 << 20 || to > 5 << 20 || to == 0) continue;
      std::byte* block = filled(from, 7);
      block = static_cast<std::byte*>(TestHeap::reallocate(block, to));
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(holds(block, std::min(from, to), 7)) << from << " " << to;
      std::memset(block, 8, to);
      TestHeap::deallocate(block);
    }
  EXPECT_EQ(verified(), "");
}

TEST(Heap, AddressesServeAgain) {
  TestHeap::trim();
  std::vector<void*> blocks;
  const auto fill = [&blocks] {
    for (int i = 0; i < 20; ++i) blocks.push_back(TestHeap::allocate((i + 1) * 500000));
    for (void* const block : blocks) TestHeap::deallocate(block);
    blocks.clear();
  };
  fill();
  const std::uint64_t reserved = TestHeap::statistics().reserved_bytes;
  for (int round = 0; round < 20; ++round) fill();
  EXPECT_EQ(TestHeap::statistics().reserved_bytes, reserved);
}

TEST(Heap, ImpossibleRequestsFail) {
  constexpr std::size_t kTooMuch = std::numeric_limits<std::ptrdiff_t>::max();
  EXPECT_EQ(TestHeap::allocate(kTooMuch), nullptr);
  EXPECT_EQ(TestHeap::allocate(kTooMuch + 1), nullptr);
  EXPECT_EQ(TestHeap::allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(TestHeap::allocate_zeroed(~std::size_t{0}), nullptr);
  EXPECT_EQ(TestHeap::allocate_aligned(std::size_t{1} << 62, 1), nullptr);
  EXPECT_EQ(TestHeap::allocate_aligned(64, ~std::size_t{0}), nullptr);
  std::byte* const block = filled(100, 3);
  EXPECT_EQ(TestHeap::reallocate(block, ~std::size_t{0}), nullptr);
  EXPECT_TRUE(holds(block, 100, 3));
  TestHeap::deallocate(block);
}

TEST(Heap, FreedBlocksServeAgainBeforeNewMemory) {
  std::vector<void*> blocks;
  for (int i = 0; i < 20000; ++i) blocks.push_back(TestHeap::allocate(200));
  const std::set<void*> before(blocks.begin(), blocks.end());
  for (void* const block : blocks) TestHeap::deallocate(block);
  unsigned known = 0;
  for (void*& block : blocks) known += before.contains(block = TestHeap::allocate(200)) ? 1 : 0;
  EXPECT_GT(known, 19000u);
  for (void* const block : blocks) TestHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

TEST(Heap, TrimGivesBackWhatNobodyUses) {
  TestHeap::trim();
  const Statistics before = TestHeap::statistics();
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(filled(1000, 1));
  blocks.push_back(filled(3 << 20, 1));
  EXPECT_GE(TestHeap::statistics().committed_bytes, before.committed_bytes + (13u << 20) / 10 * 9);
  for (std::byte* const block : blocks) TestHeap::deallocate(block);
  EXPECT_TRUE(TestHeap::trim());
  const Statistics after = TestHeap::statistics();
  EXPECT_LE(after.committed_bytes, before.committed_bytes + (4u << 20) / 10);
  EXPECT_EQ(after.dirty_bytes, 0u);
  EXPECT_GE(after.purged_bytes_total, before.purged_bytes_total + (12u << 20));
  EXPECT_FALSE(TestHeap::trim());
}

TEST(Heap, MemoryGoesBackByItselfAfterTwoTicks) {
  TestHeap::trim();
  for (int i = 0; i < 20; ++i) {
    TestHeap::deallocate(filled(1 << 20, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::byte* const big = filled(16 << 20, 1);
  TestHeap::deallocate(big);
  for (int i = 0; i < 8; ++i) {  // 16 MiB are 256 units: 8 at the first tick, 16 at the second, ...
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(LoamComposition<tests::NoThreadsHook, tests::DyingFaults>::Spans::kTickNs));
    TestHeap::deallocate(TestHeap::allocate(100000));
  }
  EXPECT_LE(TestHeap::statistics().dirty_bytes, 4u << 20);
  EXPECT_EQ(verified(), "");
}

TEST(Heap, SlabsComeAndGoInLots) {
  TestHeap::trim();
  const std::uint64_t before = TestHeap::statistics().committed_bytes;
  for (unsigned char round = 0; round < 3; ++round) {
    const auto blocks = tests::filled_blocks<TestHeap>(3000, 32000, round);
    EXPECT_EQ(verified(), "");
    for (std::byte* const block : blocks) {
      EXPECT_TRUE(holds(block, 100, round));
      TestHeap::deallocate(block);
    }
    EXPECT_EQ(verified(), "");
    EXPECT_LE(TestHeap::statistics().committed_bytes, before + (24u << 20)) << "some lists and some slabs are kept";
  }
}

TEST(HeapThreads, BlocksFreedByOthersComeBackToTheirOwner) {
  constexpr int kBlocks = 5000;
  std::vector<std::byte*> blocks(kBlocks);
  for (auto& block : blocks) block = filled(48, 5);
  const std::set<std::byte*> mine(blocks.begin(), blocks.end());
  in_a_thread([&] {
    for (auto* const block : blocks) {
      EXPECT_TRUE(holds(block, 48, 5));
      TestHeap::deallocate(block);
    }
  });
  int again = 0;
  for (auto& block : blocks) again += mine.contains(block = filled(48, 6)) ? 1 : 0;
  EXPECT_GT(again, kBlocks * 9 / 10);
  EXPECT_EQ(verified(), "");
  for (auto* const block : blocks) TestHeap::deallocate(block);
}

TEST(HeapThreads, AFewBlocksFreedByAThreadThatEndsComeBackToo) {
  constexpr int kBlocks = 5;  // fewer than a batch
  for (const bool has_heap : {false, true}) {
    std::vector<std::byte*> blocks(kBlocks);
    TestHeap::trim();
    for (auto& block : blocks) block = filled(1900, 5);
    const std::set<std::byte*> mine(blocks.begin(), blocks.end());
    in_a_thread([&] {
      if (has_heap) TestHeap::deallocate(TestHeap::allocate(4000));
      for (auto* const block : blocks) TestHeap::deallocate(block);
    });
    std::vector<std::byte*> later(50);
    int again = 0;
    for (auto& block : later) again += mine.contains(block = filled(1900, 6)) ? 1 : 0;
    EXPECT_EQ(again, kBlocks) << has_heap;
    for (auto* const block : later) TestHeap::deallocate(block);
  }
}

TEST(HeapThreads, TheHeapOfAThreadThatEndedServesTheNext) {
  std::byte* left = nullptr;
  in_a_thread([&] { left = filled(64, 9); });
  const std::uint64_t heaps = TestHeap::statistics().heaps_idle;
  EXPECT_GE(heaps, 1u);
  in_a_thread([&] {
    TestHeap::deallocate(filled(64, 1));
    EXPECT_EQ(TestHeap::statistics().heaps_idle, heaps - 1);
  });
  EXPECT_TRUE(holds(left, 64, 9));
  TestHeap::deallocate(left);
  EXPECT_EQ(verified(), "");
}

TEST(HeapThreads, MemoryOfThreadsThatAreGoneGoesBackThroughWhoFreesIt) {
  TestHeap::deallocate(filled(500, 1));  // this thread has a heap of its own, and does not get the one that is left
  TestHeap::trim();
  const std::uint64_t before = TestHeap::statistics().committed_bytes;
  std::vector<std::byte*> blocks(20000);
  in_a_thread([&] {
    for (auto& block : blocks) block = filled(500, 2);
  });
  EXPECT_GE(TestHeap::statistics().committed_bytes, before + (9u << 20));
  for (auto* const block : blocks) TestHeap::deallocate(block);
  EXPECT_LE(TestHeap::statistics().committed_bytes, before + (2u << 20)) << "all but the last batch";
  TestHeap::trim();
  EXPECT_LE(TestHeap::statistics().committed_bytes, before + (1u << 20));
  EXPECT_EQ(verified(), "");
}

// Threads exchange blocks through a shared array; each block carries its size and a value, checked by whoever frees it.
TEST(HeapThreads, BlocksThatChangeHandsKeepTheirContents) {
  constexpr unsigned kThreads = 4, kSlots = 512, kSteps = 30000;
  struct Tag {
    std::size_t bytes;
    unsigned char value;
  };
  static std::atomic<std::byte*> slots[kSlots];
  const auto drop = [](std::byte* block) {
    if (block == nullptr) return true;
    Tag tag;
    std::memcpy(&tag, block, sizeof tag);
    const bool right = holds(block + sizeof tag, tag.bytes - sizeof tag, tag.value);
    TestHeap::deallocate(block);
    return right;
  };
  std::atomic<unsigned> wrong{0};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        base::Random random(round, t);
        for (unsigned step = 0; step < kSteps; ++step) {
          const std::size_t bytes = sizeof(Tag) + (random.below(64) == 0 ? random.below(200000) : random.below(700));
          auto* const block = static_cast<std::byte*>(TestHeap::allocate(bytes));
          const Tag tag{bytes, static_cast<unsigned char>(random())};
          std::memcpy(block, &tag, sizeof tag);
          std::memset(block + sizeof tag, tag.value, bytes - sizeof tag);
          if (!drop(slots[random.below(kSlots)].exchange(block))) ++wrong;
        }
        TestHeap::thread_exit();
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(verified(), "");
  }
  for (auto& slot : slots)
    if (!drop(slot.exchange(nullptr))) ++wrong;
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(verified(), "");
}

TEST(HeapMemory, EveryRefusalOfTheSystemIsANullPointerAndNothingIsLost) {
  TestHeap::trim();
  const std::uint64_t before = TestHeap::statistics().committed_bytes;
  unsigned refused = 0;
  for (std::int64_t n = 0;; ++n) {
    platform::fail_map_after(n);
    std::vector<void*> blocks;
    bool failed = false;
    for (int i = 0; i < 6; ++i) {
      void* const block = TestHeap::allocate(std::size_t{60} << 20);
      failed = failed || block == nullptr;
      if (block != nullptr) blocks.push_back(block);
    }
    for (void* const block : blocks) TestHeap::deallocate(block);
    EXPECT_EQ(verified(), "");
    refused += failed ? 1 : 0;
    if (!failed) break;
    ASSERT_LT(n, 1000);
  }
  platform::fail_map_after(-1);
  EXPECT_EQ(TestHeap::statistics().committed_bytes, before);
}

using HeapDeathTest = ::testing::Test;

TEST(HeapDeathTest, MisusesAreNamed) {
  std::byte* const block = filled(100, 1);
  std::byte* const large = filled(1 << 20, 1);
  int local = 0;
  EXPECT_DEATH(TestHeap::deallocate(&local), "foreign in a block of 0 bytes");
  EXPECT_DEATH(TestHeap::deallocate(large + 4096), "interior in a block of 1");
  EXPECT_DEATH(TestHeap::deallocate(large + kUnitBytes), "foreign");
  EXPECT_DEATH(
      {
        TestHeap::deallocate(block);
        TestHeap::deallocate(block);
      },
      "double free in a block of 112 bytes");
  EXPECT_DEATH(
      {
        void* const other = TestHeap::allocate(100);
        TestHeap::deallocate(block);
        TestHeap::deallocate(other);
        TestHeap::deallocate(block);
      },
      "double free");
  EXPECT_DEATH(
      {
        TestHeap::deallocate(large);
        TestHeap::deallocate(large);
      },
      "foreign");
  EXPECT_DEATH(TestHeap::deallocate_sized(block, 113), "wrong size in a block of 112 bytes");
  EXPECT_DEATH(TestHeap::deallocate_sized(block, 1 << 20), "wrong size");
  TestHeap::deallocate_sized(block, 97);
  TestHeap::deallocate_sized(large, 1 << 20);
}

// Blocks of another thread's heap, with a batch begun that they would join.
TEST(HeapDeathTest, MisusesOfOthersBlocksAreNamed) {
  // A thread that has no heap sends each block at once, one that has collects a batch of them.
  for (const bool has_heap : {false, true}) {
    std::byte* const first = filled(100, 1);
    std::byte* const second = filled(100, 1);
    const auto free_there = [&](std::initializer_list<void*> blocks) {
      in_a_thread([&] {
        if (has_heap) TestHeap::deallocate(TestHeap::allocate(4000));
        for (void* const block : blocks) TestHeap::deallocate(block);
      });
    };
    int local = 0;
    EXPECT_DEATH(free_there({first, second, first}), "double free in a block of 112 bytes");
    EXPECT_DEATH(free_there({first, second, second}), "double free");
    EXPECT_DEATH(free_there({first, second + 8}), "interior in a block of 112 bytes");
    EXPECT_DEATH(free_there({first, &local}), "foreign");
    // The owner frees the first block of a sent batch once more.
    EXPECT_DEATH(
        {
          free_there({first, second});
          TestHeap::deallocate(second);
        },
        "double free");
    free_there({first, second, nullptr});
    EXPECT_EQ(verified(), "");
  }
}

TEST(Heap, AMarkThatTheUserWroteByAccidentIsNoDoubleFree) {
  auto* const freed = static_cast<std::uintptr_t*>(TestHeap::allocate(48));
  TestHeap::deallocate(freed);
  const std::uintptr_t mark = freed[1];
  auto* const block = static_cast<std::uintptr_t*>(TestHeap::allocate(48));
  block[0] = 1;
  block[1] = mark;
  TestHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

}  // namespace
}  // namespace loam::heap
