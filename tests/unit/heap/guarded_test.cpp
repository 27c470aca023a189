// The guarded heap: what it finds, and that it serves.
#include "runtime/base/random.hpp"
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

struct Always {
  static bool on() noexcept { return true; }
};
using TestHeap = Heap<LoamOrGuardedComposition<tests::NoThreadsHook, tests::DyingFaults, Always>>;

using tests::holds;
constexpr auto filled = tests::filled<TestHeap>;
constexpr auto verified = tests::verified<TestHeap>;

// Other values than are there, out of the compiler's sight.
void write(std::byte* block, std::size_t offset, std::size_t bytes) {
  std::byte* volatile hidden = block;
  for (std::size_t i = 0; i < bytes; ++i) hidden[offset + i] ^= std::byte{0x11};
}

void let_others_wait() {
  for (int i = 0; i < 8000; ++i) TestHeap::deallocate(TestHeap::allocate(64));
}

const std::size_t kSizes[] = {0, 1, 7, 8, 15, 16, 17, 24, 40, 100, 1000, 1016, 5000, 32000, 40000, 3 << 20};

TEST(Guarded, BlocksServeAndTellTheirLength) {
  std::set<std::byte*> blocks;
  for (const std::size_t bytes : kSizes) {
    std::byte* const block = filled(bytes, 7);
    EXPECT_EQ(TestHeap::usable_bytes(block), bytes);
    EXPECT_EQ(address_of(block) % kBlockAlignment, 0u);
    EXPECT_TRUE(blocks.insert(block).second);
  }
  for (std::byte* const block : blocks) {
    EXPECT_TRUE(holds(block, TestHeap::usable_bytes(block), 7));
    TestHeap::deallocate(block);
  }
  EXPECT_EQ(verified(), "");
}

TEST(Guarded, AlignedAndZeroedBlocksAre) {
  for (std::size_t alignment = 16; alignment <= 1 << 17; alignment *= 2)
    for (const std::size_t bytes : {std::size_t{1}, alignment, std::size_t{5000}}) {
      void* const block = TestHeap::allocate_aligned(alignment, bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(address_of(block) % alignment, 0u);
      std::memset(block, 0xff, bytes);
      TestHeap::deallocate(block);
      auto* const zeroed = static_cast<std::byte*>(TestHeap::allocate_zeroed(bytes));
      EXPECT_TRUE(holds(zeroed, bytes, 0));
      TestHeap::deallocate(zeroed);
    }
}

TEST(Guarded, ZeroedLongBlocksAreNotTouched) {
  const std::size_t bytes = std::size_t{128} << 20;  // a mapping of its own
  auto* const block = static_cast<std::byte*>(TestHeap::allocate_zeroed(bytes));
  EXPECT_LT(platform::resident_bytes(block, bytes), bytes / 2);
  EXPECT_TRUE(holds(block + bytes - 5000, 5000, 0));
  TestHeap::deallocate(block);
  // Whoever had the memory before.
  auto* const dirty = filled(400000, 1);
  TestHeap::deallocate(dirty);
  for (const std::size_t other : {400000u, 50000u, 3u << 20}) {
    TestHeap::deallocate(filled(other, 1));
    auto* const zeroed = static_cast<std::byte*>(TestHeap::allocate_zeroed(other));
    EXPECT_TRUE(holds(zeroed, other, 0)) << other;
    EXPECT_EQ(TestHeap::usable_bytes(zeroed), other);
    TestHeap::deallocate(zeroed);
  }
}

TEST(Guarded, ReallocateKeepsTheContents) {
  for (const std::size_t from : kSizes)
    for (const std::size_t to : kSizes) {
      if (to == 0) continue;
      auto* const block = static_cast<std::byte*>(TestHeap::reallocate(filled(from, 3), to));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(TestHeap::usable_bytes(block), to);
      EXPECT_TRUE(holds(block, std::min(from, to), 3));
      TestHeap::deallocate(block);
    }
}

TEST(Guarded, ImpossibleRequestsFail) {
  EXPECT_EQ(TestHeap::allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(TestHeap::allocate(~std::size_t{0} - 7), nullptr);
  EXPECT_EQ(TestHeap::allocate_zeroed(std::size_t{1} << 63), nullptr);
  EXPECT_EQ(TestHeap::allocate_aligned(64, ~std::size_t{0} - 7), nullptr);
}

TEST(Guarded, BlocksThatChangeHandsAreFreedByOthers) {
  constexpr int kBlocks = 3000;
  std::vector<std::byte*> blocks(kBlocks);
  base::Random random(1);
  for (auto& block : blocks) block = filled(1 + random.below(600), 5);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&blocks, t] {
      for (int i = t; i < kBlocks; i += 3) {
        EXPECT_TRUE(holds(blocks[i], TestHeap::usable_bytes(blocks[i]), 5));
        TestHeap::deallocate(blocks[i]);
        TestHeap::deallocate(filled(100, 1));
      }
      TestHeap::thread_exit();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(verified(), "");
}

// After how many frees a freed block is handed out again.
int frees_until_it_serves() {
  void* const block = TestHeap::allocate(48);
  TestHeap::deallocate(block);
  for (int frees = 1;; ++frees) {
    void* const other = TestHeap::allocate(48);
    TestHeap::deallocate(other);
    if (other == block) return frees;
  }
}

TEST(Guarded, WhenAFreedBlockServesAgainIsNotForeseen) {
  std::set<int> seen;
  for (int i = 0; i < 200; ++i) {
    const int frees = frees_until_it_serves();
    EXPECT_GE(frees, 32);
    seen.insert(frees);
  }
  EXPECT_GE(seen.size(), 10u);
}

// As in a heap without guards, the last one that has left serves first. ADR 0017: another order costs much.
TEST(Guarded, FreedBlocksLeaveInTheOrderInWhichTheyCame) {
  constexpr int kBlocks = 200;  // fewer than a list has before it goes to its slabs
  std::vector<void*> freed;
  for (int i = 0; i < kBlocks; ++i) freed.push_back(TestHeap::allocate(16));
  for (void* const block : freed) TestHeap::deallocate(block);
  std::vector<std::ptrdiff_t> served;
  for (int i = 0; i < 60; ++i)
    served.push_back(std::find(freed.begin(), freed.end(), TestHeap::allocate(16)) - freed.begin());
  EXPECT_LT(served.front(), kBlocks);
  EXPECT_TRUE(std::is_sorted(served.rbegin(), served.rend()));
}

TEST(GuardedDeathTest, AWriteOfOneToThirtyTwoBytesPastTheEndIsFoundAtTheFree) {
  for (const std::size_t bytes : kSizes)
    for (const std::size_t past : {1, 8, 32}) {
      EXPECT_DEATH(
          {
            std::byte* const block = filled(bytes, 1);
            write(block, bytes, past);
            TestHeap::deallocate(block);
          },
          bytes == 0 ? "" : "write past end")  // of no bytes none is accessible
          << bytes << " " << past;
    }
}

TEST(GuardedDeathTest, ALongBlockDoesNotRunOnIntoItsNeighbour) {
  for (const std::size_t bytes : {300000u, 1u << 20, 3u << 20, 80u << 20}) {
    std::byte* const block = filled(bytes, 1);
    EXPECT_DEATH(write(block, bytes, 1 << 17), "") << bytes;
    TestHeap::deallocate(block);
    TestHeap::trim();
    std::byte* const next = filled(bytes + 5000, 2);  // over the same addresses: the page is open again
    EXPECT_TRUE(holds(next, bytes + 5000, 2));
    TestHeap::deallocate(next);
  }
  EXPECT_EQ(verified(), "");
}

// What a block's guard page takes of its place, wherever the block ends. A page of the system may have 64 KiB.
std::size_t guard_bytes() { return 2 * platform::page_bytes(); }
// The system call finds out without dying. bytes: from the block's begin, beyond what it may hold
bool runs_into_a_page(const std::byte* block, std::size_t bytes) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  bool closed = false;
  for (std::size_t at = 0; at < bytes && !closed; at += platform::kPageBytes) {
    std::byte one;
    closed = ::write(ends[1], block + at, 1) < 0 && errno == EFAULT;
    EXPECT_TRUE(closed || ::read(ends[0], &one, 1) == 1);
  }
  close(ends[0]);
  close(ends[1]);
  return closed;
}

TEST(Guarded, OfShorterLongBlocksSomeHaveAPage) {
  const auto blocks = tests::filled_blocks<TestHeap>(400, 40000, 1);
  // No further: behind it lies the next block, which may have a page.
  const std::size_t place = base::round_up(40000 + guard_bytes(), kUnitBytes);
  const auto guarded =
      std::count_if(blocks.begin(), blocks.end(), [=](std::byte* block) { return runs_into_a_page(block, place); });
  EXPECT_GE(guarded, 5);
  EXPECT_LE(guarded, 60);
  tests::free_all<TestHeap>(blocks);
  EXPECT_EQ(verified(), "");
}

TEST(Guarded, LongBlocksServeAgainWithTheirPageAndZeroed) {
  for (const std::size_t bytes : {300000u, 1100000u}) {
    std::byte* const block = filled(bytes, 1);
    for (std::byte* const freed : {block, filled(bytes, 2)}) TestHeap::deallocate(freed);
    EXPECT_EQ(verified(), "");
    auto* const again = static_cast<std::byte*>(TestHeap::allocate(bytes - 1000));
    EXPECT_EQ(again, block) << "not the one that was freed last";
    EXPECT_EQ(TestHeap::usable_bytes(again), bytes - 1000);
    EXPECT_TRUE(holds(again, bytes - 1000, 0));
    EXPECT_TRUE(runs_into_a_page(again, bytes + kUnitBytes + guard_bytes()));
    TestHeap::deallocate(again);
  }
}

// A heap of its own: in the one of the other tests it is luck what lies behind a block.
struct OwnPages : SystemPages {};
using OwnHeap = Heap<LoamOrGuardedComposition<tests::NoThreadsHook, tests::DyingFaults, Always, OwnPages>>;

// As a heap without guards does it: by the pages behind the block, or by pages that move.
TEST(Guarded, LongBlocksGrowWithoutACopy) {
  constexpr std::size_t kStep = 100000;
  for (const std::size_t begin : {50000u, 300000u, 80u << 20}) {
    std::byte* block = tests::filled<OwnHeap>(begin, 1);
    std::vector<std::byte*> places{block};
    for (std::size_t bytes = begin + kStep; bytes <= begin + 10 * kStep; bytes += kStep) {
      const std::size_t had = bytes - kStep;
      block = static_cast<std::byte*>(OwnHeap::reallocate(block, bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(OwnHeap::usable_bytes(block), bytes);
      EXPECT_TRUE(holds(block, had, 1));
      std::memset(block + had, 1, kStep);
      EXPECT_TRUE(bytes < 256u << 10 || runs_into_a_page(block + bytes, 2 * kUnitBytes + guard_bytes())) << bytes;
      if (block != places.back()) places.push_back(block);
    }
    if (begin < 1u << 20) {
      EXPECT_LE(places.size(), 3u) << begin;
    }
    OwnHeap::deallocate(block);
    EXPECT_EQ(tests::verified<OwnHeap>(), "");
  }
}

TEST(Guarded, ABlockThatCannotGrowKeepsItsPage) {
  for (const std::size_t bytes : {300000u, 80u << 20}) {
    std::byte* const block = filled(bytes, 1);
    EXPECT_EQ(TestHeap::reallocate(block, std::size_t{1} << 60), nullptr);
    EXPECT_TRUE(runs_into_a_page(block + bytes, 2 * kUnitBytes + guard_bytes()));
    EXPECT_TRUE(holds(block, TestHeap::usable_bytes(block), 1));
    TestHeap::deallocate(block);
  }
}

TEST(GuardedDeathTest, AWritePastTheEndOfABlockThatHasGrownIsFound) {
  for (const std::size_t bytes : {50000u, 400000u})
    EXPECT_DEATH(
        {
          auto* const block = static_cast<std::byte*>(TestHeap::reallocate(filled(bytes, 1), bytes + 100000));
          write(block, bytes + 100000, 1);
          TestHeap::deallocate(block);
        },
        "write past end")
        << bytes;
}

TEST(GuardedDeathTest, AWriteOfOneToThirtyTwoBytesBeforeTheStartIsFoundAtTheFree) {
  for (const std::size_t bytes : {1, 24, 1000, 32000, 40000, 3 << 20})
    for (const int before : {1, 8, 16, 32}) {
      EXPECT_DEATH(
          {
            std::byte* const block = filled(bytes, 1);
            write(block - before, 0, 1);
            TestHeap::deallocate(block);
          },
          "write before start")
          << bytes << " " << before;
    }
}

TEST(GuardedDeathTest, AWriteBeforeAnAlignedBlockIsFound) {
  for (const std::size_t alignment : {32, 64, 4096}) {
    auto* const block = static_cast<std::byte*>(TestHeap::allocate_aligned(alignment, 100));
    EXPECT_DEATH((write(block - 24, 0, 1), TestHeap::deallocate(block)), "write before start|interior") << alignment;
    TestHeap::deallocate(block);
  }
}

TEST(GuardedDeathTest, ABlockThatIsNeverFreedIsLookedAtInTheEnd) {
  for (const std::size_t bytes : {1, 24, 1000, 20000, 40000}) {
    std::byte* const block = filled(bytes, 1);
    TestHeap::check_what_waits();
    EXPECT_DEATH((write(block, bytes, 1), TestHeap::check_what_waits()), "write past end") << bytes;
    EXPECT_DEATH((write(block - 1, 0, 1), TestHeap::check_what_waits()), "write before start") << bytes;
    TestHeap::deallocate(block);
    TestHeap::check_what_waits();
  }
}

TEST(GuardedDeathTest, ABlockThatIsNeverFreedIsLookedAtWhileTheProgramRuns) {
  std::byte* const block = filled(64, 1);
  EXPECT_DEATH((write(block, 64, 1), let_others_wait(), let_others_wait(), let_others_wait()), "write past end");
  TestHeap::deallocate(block);
}

TEST(GuardedDeathTest, ABlockOfNoBytesIsAnAddressOfItsOwn) {
  auto *const block = static_cast<std::byte*>(TestHeap::allocate(0)), *const other = static_cast<std::byte*>(
                                                                          TestHeap::allocate_aligned(4096, 0));
  EXPECT_NE(block, other);
  EXPECT_EQ(address_of(other) % 4096, 0u);
  EXPECT_EQ(TestHeap::usable_bytes(block), 0u);
  EXPECT_DEATH(write(block, 0, 1), "");
  EXPECT_DEATH(TestHeap::deallocate(block + 1), "interior");
  EXPECT_DEATH((TestHeap::deallocate(block), TestHeap::deallocate(block)), "double free");
  EXPECT_DEATH(TestHeap::deallocate_sized(block, 1), "wrong size");
  TestHeap::deallocate_sized(other, 0);
  auto* const grown = static_cast<std::byte*>(TestHeap::reallocate(block, 100));
  EXPECT_EQ(TestHeap::usable_bytes(grown), 100u);
  EXPECT_DEATH(TestHeap::deallocate(block), "double free");
  TestHeap::deallocate(grown);
  EXPECT_EQ(verified(), "");
}

TEST(GuardedDeathTest, AFarWriteIntoUnusedAddressesIsFoundAtOnce) {
  std::byte* const block = tests::filled<OwnHeap>(1000, 1);
  EXPECT_DEATH(write(block, 64u << 20, 1), "");
  OwnHeap::deallocate(block);
}

// The terminating zero of a string that has no room for it: the first byte of the seal where there is no padding.
TEST(GuardedDeathTest, AZeroPastTheEndIsFound) {
  for (std::size_t bytes = 1; bytes <= 600; bytes += bytes < 64 ? 1 : 37)
    EXPECT_DEATH(
        {
          std::byte* volatile const block = filled(bytes, 0);
          block[bytes] = std::byte{0};
          TestHeap::deallocate(block);
        },
        "write past end")
        << bytes;
}

TEST(GuardedDeathTest, AWriteOverPartOfTheSealIsFound) {
  for (std::size_t offset = 8; offset < 16; ++offset)
    EXPECT_DEATH(
        {
          std::byte* const block = filled(8, 1);
          write(block, offset, 1);
          TestHeap::deallocate(block);
        },
        "write past end")
        << offset;
}

TEST(GuardedDeathTest, AWritePastTheEndIsFoundWhenTheBlockIsResized) {
  EXPECT_DEATH(
      {
        std::byte* const block = filled(100, 1);
        write(block, 100, 1);
        TestHeap::reallocate(block, 5000);
      },
      "write past end");
}

TEST(GuardedDeathTest, ASecondFreeIsFoundHoweverLate) {
  for (const std::size_t bytes : kSizes)
    EXPECT_DEATH(
        {
          std::byte* const block = filled(bytes, 1);
          TestHeap::deallocate(block);
          let_others_wait();
          TestHeap::deallocate(block);
        },
        "double free|foreign|interior")
        << bytes;
}

TEST(GuardedDeathTest, PointersThatAreNoBlocksAreFound) {
  std::byte* const block = filled(200, 1);
  std::byte* const large = filled(1 << 20, 1);
  int local = 0;
  EXPECT_DEATH(TestHeap::deallocate(block + 16), "interior in a block of 256 bytes");
  EXPECT_DEATH(TestHeap::deallocate(block + 1), "interior");
  EXPECT_DEATH(TestHeap::deallocate(large + 32), "interior");
  EXPECT_DEATH(TestHeap::deallocate(&local), "foreign");
  EXPECT_DEATH(TestHeap::usable_bytes(block + 16), "interior");
  EXPECT_DEATH(TestHeap::usable_bytes(&local), "foreign");
  EXPECT_DEATH(TestHeap::reallocate(large + 64, 100), "interior");
  TestHeap::deallocate(block);
  TestHeap::deallocate(large);
}

TEST(GuardedDeathTest, ASizeThatIsNotTheBlocksIsFound) {
  std::byte* const block = filled(100, 1);
  EXPECT_DEATH(TestHeap::deallocate_sized(block, 99), "wrong size");
  EXPECT_DEATH(TestHeap::deallocate_sized(block, 101), "wrong size");
  TestHeap::deallocate_sized(block, 100);
}

TEST(GuardedDeathTest, AWriteToAFreedBlockIsFoundWhenItHasWaited) {
  for (const std::size_t offset : {0, 8, 16, 99}) {
    EXPECT_DEATH(
        {
          std::byte* const block = filled(100, 1);
          TestHeap::deallocate(block);
          write(block, offset, 1);
          let_others_wait();
        },
        "use after free")
        << offset;
  }
}

TEST(GuardedDeathTest, AWriteIntoEitherEndOfALongFreedBlockIsFoundWhenItHasWaited) {
  for (const std::size_t bytes : {2000, 20000, 30001})
    for (const std::size_t offset : {std::size_t{0}, std::size_t{479}, bytes - 496, bytes - 1}) {
      EXPECT_DEATH(
          {
            std::byte* const block = filled(bytes, 1);
            TestHeap::deallocate(block);
            write(block, offset, 1);
            let_others_wait();
          },
          "use after free")
          << bytes << ", at " << offset;
    }
}

// Each time another place between the ends is looked at.
TEST(GuardedDeathTest, AWriteIntoTheMiddleOfALongFreedBlockIsFoundInTheEnd) {
  EXPECT_DEATH(
      {
        for (int i = 0; i < 1000; ++i) {
          std::byte* const block = filled(20000, 1);
          TestHeap::deallocate(block);
          write(block, 9000, 1);
          let_others_wait();
        }
      },
      "use after free");
}

TEST(GuardedDeathTest, AWriteToALongFreedBlockIsFoundWhenItServesAgain) {
  for (const std::size_t offset : {0, 479})
    EXPECT_DEATH(
        {
          std::byte* const block = filled(300000, 1);
          std::byte* const last = filled(300000, 1);
          TestHeap::deallocate(block);
          TestHeap::deallocate(last);
          write(block, offset, 1);
          TestHeap::allocate(300000);
        },
        "use after free")
        << offset;
}

TEST(Guarded, WhatAThreadFreedLastServesOnceItHasEnded) {
  const std::uint64_t before = TestHeap::statistics().committed_bytes;
  for (int t = 0; t < 300; ++t)
    tests::in_a_thread<TestHeap>([] { tests::free_all<TestHeap>(tests::filled_blocks<TestHeap>(20, 16000, 1)); });
  EXPECT_LE(TestHeap::statistics().committed_bytes, before + (8u << 20));
  EXPECT_EQ(TestHeap::verify(), nullptr);
}

// A system that no longer makes pages accessible.
struct StubbornPages : SystemPages {
  static inline bool refuses = false;
  static bool protect(void* start, std::size_t bytes, bool accessible) noexcept {
    return !(accessible && refuses) && SystemPages::protect(start, bytes, accessible);
  }
};

TEST(Guarded, ABlockWhosePageStaysClosedServesNobody) {
  using StubbornHeap = Heap<LoamOrGuardedComposition<tests::NoThreadsHook, tests::DyingFaults, Always, StubbornPages>>;
  constexpr std::size_t kBytes = 3 << 20;
  const std::byte* const lost = tests::filled<StubbornHeap>(kBytes, 1);
  const std::uintptr_t begin = address_of(lost);
  StubbornPages::refuses = true;
  StubbornHeap::deallocate(const_cast<std::byte*>(lost));
  StubbornPages::refuses = false;
  for (std::byte* const block : tests::filled_blocks<StubbornHeap>(100, kBytes, 1))
    EXPECT_TRUE(address_of(block) >= begin + kBytes || address_of(block) + kBytes <= begin);
  EXPECT_EQ(verified(), "");
}

}  // namespace
}  // namespace loam::heap
