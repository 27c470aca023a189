// Blocks that other threads freed: in which order malloc uses them, and where those go that the thread does not use.
#include "runtime/heap/arrivals.hpp"

#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;
using Blocks = std::vector<std::byte*>;
using TestArrivals = Arrivals<FourPerDoubling>;

Blocks allocated(std::size_t count, std::size_t bytes) { return tests::filled_blocks<TestHeap>(count, bytes, 3); }
constexpr auto free_all = tests::free_all<TestHeap>;
constexpr auto verified = tests::verified<TestHeap>;
std::uint64_t committed() { return TestHeap::statistics().committed_bytes; }

// Another thread frees the blocks in this order, and then ends, so that all its batches are sent. It has a heap from the
// beginning: without one, its first frees would go home one by one.
void free_elsewhere(const Blocks& blocks) {
  tests::in_a_thread<TestHeap>([&] {
    ASSERT_TRUE(TestHeap::attach());
    free_all(blocks);
  });
}

// Allocates until the block comes. returns how many came before it
std::size_t allocate_until(const std::byte* wanted, std::size_t bytes, Blocks& held) {
  for (std::size_t before = 0; before < 20'000; ++before) {
    held.push_back(tests::filled<TestHeap>(bytes, 4));
    if (held.back() == wanted) return before;
  }
  return ~std::size_t{0};
}

// returns the blocks in the order in which malloc uses them after another thread has freed them in this order
Blocks as_they_serve(const Blocks& freed, std::size_t bytes) {
  const std::size_t all = (16u << 10) / FourPerDoubling::bytes_of(FourPerDoubling::class_of(bytes));
  const std::size_t batch = std::clamp<std::size_t>(all, 1, 32);
  Blocks order;
  for (std::size_t first = 0; first < freed.size(); first += batch)
    for (std::size_t i = std::min(first + batch, freed.size()); i-- > first;) order.push_back(freed[i]);
  return order;
}

TEST(Arrivals, TheBatchThatCameFirstServesFirst) {
  for (const std::size_t bytes : {16, 64, 1500, 4000}) {
    const Blocks freed = allocated(128, bytes), blocks = as_they_serve(freed, bytes);
    free_elsewhere(freed);
    EXPECT_EQ(verified(), "");
    Blocks held;
    ASSERT_NE(allocate_until(blocks.front(), bytes, held), ~std::size_t{0}) << bytes;
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      held.push_back(tests::filled<TestHeap>(bytes, 4));
      ASSERT_EQ(held.back(), blocks[i]) << bytes;
      if (i % 16 == 0) {
        EXPECT_EQ(verified(), "");
      }
    }
    free_all(held);
  }
}

TEST(Arrivals, AnInboxThatHeldLittleIsPassedByOnce) {
  constexpr std::size_t kBytes = 112, kBlocks = 64;
  const Blocks first = allocated(kBlocks, kBytes), second = allocated(kBlocks, kBytes);
  free_elsewhere(first);
  Blocks held;
  ASSERT_NE(allocate_until(as_they_serve(first, kBytes).back(), kBytes, held), ~std::size_t{0});
  free_elsewhere(second);
  const std::size_t others = allocate_until(as_they_serve(second, kBytes).front(), kBytes, held);
  EXPECT_GT(others, 0u) << "from the slabs, so that more may come meanwhile";
  EXPECT_LT(others, 1000u) << "and then they serve";
  free_all(held);
}

TEST(Arrivals, WhatIsMoreThanMayWaitGoesToItsSlabs) {
  constexpr std::size_t kBytes = 96, kBlocks = 200'000;
  TestHeap::trim();
  const std::uint64_t before = committed();
  free_elsewhere(allocated(kBlocks, kBytes));
  EXPECT_GT(committed(), before + kBlocks * kBytes * 9 / 10) << "it lies in the inbox";
  // First the rest of the list that was carved last is used, then the arrivals.
  const Blocks more = allocated(200, kBytes);
  EXPECT_LT(committed(), before + TestArrivals::kWaitingBytesMax);
  EXPECT_EQ(verified(), "");
  free_all(more);
}

TEST(Arrivals, WhatNobodyAsksForGoesBackBeforeSlabsAreMade) {
  constexpr std::size_t kBytes = 640, kBlocks = 30'000;
  TestHeap::trim();
  const std::uint64_t before = committed();
  free_elsewhere(allocated(kBlocks, kBytes));
  EXPECT_GT(committed(), before + kBlocks * kBytes * 9 / 10);
  const Blocks others = allocated(4 * kUnitBytes / 80, 80);
  EXPECT_LT(committed(), before + kBlocks * kBytes / 10);
  EXPECT_EQ(verified(), "");
  free_all(others);
}

TEST(Arrivals, WhatNobodyAsksForGoesBackWhileOthersServe) {
  constexpr std::size_t kBytes = 640, kBlocks = 30'000, kOther = 48;
  TestHeap::trim();
  Blocks others = allocated(4096, kOther);
  const std::uint64_t before = committed();
  free_elsewhere(allocated(kBlocks, kBytes));
  // No slab is made: malloc uses the blocks that came back.
  for (unsigned round = 0; round < 3 * TestArrivals::kEmptiedUntilLook; ++round) {
    free_elsewhere(others);
    others = allocated(others.size(), kOther);
  }
  EXPECT_LT(committed(), before + kBlocks * kBytes / 10);
  EXPECT_EQ(verified(), "");
  free_all(others);
}

TEST(Arrivals, WhatIsAskedForNowAndThenGoesOnServing) {
  constexpr std::size_t kBytes = 208, kBlocks = 2048;
  TestHeap::trim();
  const Blocks freed = allocated(kBlocks, kBytes), blocks = as_they_serve(freed, kBytes);
  free_elsewhere(freed);
  Blocks held, others;
  ASSERT_NE(allocate_until(blocks.front(), kBytes, held), ~std::size_t{0});
  for (std::size_t i = 1; i < kBlocks; ++i) {
    held.push_back(tests::filled<TestHeap>(kBytes, 4));
    ASSERT_EQ(held.back(), blocks[i]) << "though slabs of another class are made meanwhile";
    if (i % 64 == 0)
      for (std::size_t n = 0; n < kUnitBytes / 640; ++n) others.push_back(tests::filled<TestHeap>(320, 5));
  }
  EXPECT_EQ(verified(), "");
  free_all(held);
  free_all(others);
}

TEST(Arrivals, NothingIsKeptOfAHeapThatIsTrimmed) {
  TestHeap::trim();
  const std::uint64_t before = committed();
  const Blocks some = allocated(1000, 64), more = allocated(1000, 64);
  free_elsewhere(some);
  Blocks held;
  ASSERT_NE(allocate_until(some[31], 64, held), ~std::size_t{0}) << "from now on the rest of them waits";
  free_elsewhere(more);
  free_all(held);
  TestHeap::trim();
  EXPECT_EQ(committed(), before);
  EXPECT_EQ(verified(), "");
}

}  // namespace
}  // namespace loam::heap
