// Blocks of hardware attempts (lent.hpp, elided_memory.hpp), in plain code: the tests restore a stock as an abort
// would. tests/simulator/lent.cpp runs real attempts.
#include "runtime/tm/hardware/lent.hpp"
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/heap/lending.hpp"
#include "runtime/tm/hardware/elided_memory.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

namespace loam::tests {
namespace {

using LentComposition = heap::LoamComposition<NoThreadsHook, DyingFaults>;
using LentHeap = heap::Heap<LentComposition>;
using Lends = heap::Lending<LentComposition>;

int refills = 0;

}  // namespace
}  // namespace loam::tests

extern "C" {
int loam_malloc_lend(loam::platform::Stocks** user) {
  if (user != nullptr) return loam::tests::Lends::lend(user) ? 1 : 0;
  loam::tests::Lends::end();
  return 0;
}
int loam_malloc_restock(loam::platform::Stock* stock) { return loam::tests::Lends::restock(*stock) ? 1 : 0; }
int loam_malloc_refill(loam::platform::Stock* stock, int was_short) {
  ++loam::tests::refills;
  return loam::tests::Lends::refill(*stock, was_short != 0) ? 1 : 0;
}
void loam_malloc_give(void* block) {
  if (loam::tests::LentHeap::covers(block)) return loam::tests::Lends::give(block);
  std::free(block);
}
}

namespace loam::tm::hardware {
namespace {

using tests::LentHeap;

std::string verified() { return tests::verified<LentHeap>(); }

struct LentBlocks : ::testing::Test {
  LentBlocks() { tests::Lends::lend(&stocks); }
  ~LentBlocks() override { tests::Lends::end(); }
  LentBlocks(const LentBlocks&) = delete;
  LentBlocks& operator=(const LentBlocks&) = delete;

  // Does what follows an attempt that found the stock empty.
  void fill(std::size_t bytes) { ASSERT_TRUE(provide(*stocks, kRestockCode + platform::stock_of(bytes))); }

  platform::Stocks* stocks = &platform::no_stocks;
};

TEST_F(LentBlocks, AnAbortIsTheStockAsItWas) {
  constexpr unsigned kNumber = platform::stock_of(48);
  Taken taken;
  while (take(*stocks, kNumber, taken) != nullptr) {
  }
  fill(48);
  const platform::Stock before = stocks->all[kNumber];
  std::vector<void*> first(100), second(100);
  for (void*& block : first) {
    block = take(*stocks, kNumber, taken);
    ASSERT_NE(block, nullptr);
    std::memset(block, 0x5a, 48);
  }
  EXPECT_EQ(taken.stocks, std::uint64_t{1} << kNumber);
  stocks->all[kNumber] = before;
  for (void*& block : second) block = take(*stocks, kNumber, taken);
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::set<void*>(first.begin(), first.end()).size(), first.size());
  for (void* const block : second) LentHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

TEST_F(LentBlocks, ATakenBlockIsNotMarkedAsFree) {
  fill(300);
  Taken taken;
  auto* const block = static_cast<std::uintptr_t*>(take(*stocks, platform::stock_of(300), taken));
  tests::Lends::give(block);
  EXPECT_EQ(block[1], stocks->mark);
  EXPECT_EQ(take(*stocks, platform::stock_of(300), taken), block);
  EXPECT_EQ(block[1], 0u);
  LentHeap::deallocate(block);
}

TEST_F(LentBlocks, OnlyStocksBelowTheirMarksAreFilledBeforeAnAttempt) {
  constexpr unsigned kFew = platform::stock_of(64), kNone = platform::stock_of(3000);
  fill(64);
  fill(3000);
  Taken taken;
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(take(*stocks, kFew, taken));
  const platform::Stock& few = stocks->all[kFew];
  EXPECT_GT(few.next, few.low);
  tests::refills = 0;
  refill(*stocks, taken.stocks | std::uint64_t{1} << kNone);
  EXPECT_EQ(tests::refills, 1);
  EXPECT_LE(few.next, few.low);
  for (void* const block : blocks) LentHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

TEST_F(LentBlocks, WhereALoanHasEndedNothingIsFilled) {
  fill(80);
  tests::Lends::end();
  ASSERT_EQ(stocks, &platform::no_stocks);
  tests::refills = 0;
  refill(*stocks, ~std::uint64_t{0} >> (64 - platform::kStocks));
  EXPECT_FALSE(provide(*stocks, kRestockCode));
  EXPECT_EQ(tests::refills, 0);
  Taken taken;
  EXPECT_EQ(take(*stocks, 0, taken), nullptr);
  EXPECT_EQ(taken.stocks, 0u);
}

TEST(Codes, OfStocksAskToProvideAndNoOthersAreTakenForThem) {
  for (unsigned code = 0; code < 256; ++code) {
    const unsigned status = platform::kAbortExplicit | code << 24;
    const bool provides = (code >= kRestockCode && code < kRestockCode + platform::kStocks) || code >= 0xC0;
    EXPECT_EQ(next_after(status, 1) == Next::provide, provides) << code;
    EXPECT_FALSE(is_restock(code) && platform::is_provision(code)) << code;
  }
}

// Runs f(section) as a section under the lock.
template <class F>
void in_section(ElidedMemory& memory, F f) {
  memory.begin();
  Section section(memory);
  section.begin(false);
  f(section);
  memory.end(section);
}

TEST(ElidedMemoryTest, WhatASectionFreesComesBackOnceItHasEnded) {
  static thread_local ElidedMemory memory;
  void* first = nullptr;
  in_section(memory, [&](Section& section) { first = section.allocate(100); });  // from malloc: the stock is empty
  EXPECT_FALSE(LentHeap::covers(first));
  ASSERT_TRUE(memory.lends());
  ASSERT_TRUE(provide(memory.stocks(), kRestockCode + platform::stock_of(100)));
  void *second = nullptr, *third = nullptr;
  in_section(memory, [&](Section& section) {
    second = section.allocate(100);
    section.release(second);
    third = section.allocate(100);
    EXPECT_NE(third, second) << "freed within the section";
    section.release(third);
    section.release(first);
  });
  EXPECT_TRUE(LentHeap::covers(second));
  EXPECT_EQ(memory.live(), 0);
  in_section(memory, [&](Section& section) {
    void* const again = section.allocate(100);
    EXPECT_EQ(again, third) << "what came back last serves first";
    section.release(again);
  });
  EXPECT_EQ(verified(), "");
  memory.end_thread();
  EXPECT_FALSE(memory.lends());
}

TEST(ElidedMemoryTest, TheNextSectionFindsItsStocksFilled) {
  static thread_local ElidedMemory memory;
  memory.begin();
  ASSERT_TRUE(provide(memory.stocks(), kRestockCode + platform::stock_of(200)));
  std::vector<void*> blocks;
  in_section(memory, [&](Section& section) {
    for (int i = 0; i < 30; ++i) blocks.push_back(section.allocate(200));
  });
  EXPECT_EQ(memory.live(), 30);
  const platform::Stock& stock = memory.stocks().all[platform::stock_of(200)];
  EXPECT_GT(stock.next, stock.low);
  memory.begin();
  EXPECT_LE(stock.next, stock.low);
  in_section(memory, [&](Section& section) {
    for (void* const block : blocks) section.release(block);
  });
  EXPECT_EQ(memory.take_live(), 0);
  EXPECT_EQ(verified(), "");
  memory.end_thread();
}

// A section frees more blocks than its log holds. They come from malloc.
TEST(ElidedMemoryTest, EveryBlockIsFreedOnceHoweverManyThereAre) {
  static thread_local ElidedMemory memory;
  constexpr std::size_t kBlocks = 3 * ElidedMemory::kFreedMax;
  std::vector<void*> blocks(kBlocks);
  in_section(memory, [&](Section& section) {
    for (std::size_t i = 0; i < kBlocks; ++i) blocks[i] = section.allocate(40000);  // longer than any stock's
  });
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), kBlocks);
  in_section(memory, [&](Section& section) {
    for (void* const block : blocks) section.release(block);
  });
  EXPECT_EQ(memory.live(), 0);
  memory.end_thread();
}

}  // namespace
}  // namespace loam::tm::hardware
