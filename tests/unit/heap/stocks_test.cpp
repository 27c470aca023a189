// Blocks that are ready for a thread's transactions (stocks.hpp, lending.hpp), used as the transactional memory does.
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/heap/lending.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/refusing_pages.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using Composition = LoamComposition<tests::NoThreadsHook, tests::DyingFaults>;
using TestHeap = Heap<Composition>;
using TestLending = Lending<Composition>;
using TestStocks = Stocks<Composition::Classes>;
constexpr auto verified = tests::verified<TestHeap>;
constexpr auto in_a_thread = [](auto body) { tests::in_a_thread<TestHeap>(body); };

// What runtime/tm does, reduced to one size.
struct User {
  platform::Stocks* stocks = &platform::no_stocks;

  User() { EXPECT_TRUE(TestLending::lend(&stocks)); }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  ~User() { TestLending::end(); }

  platform::Stock& of(std::size_t bytes) const { return stocks->all[platform::stock_of(bytes)]; }

  void begin(std::size_t bytes) const { of(bytes).kept = of(bytes).next; }
  void abort(std::size_t bytes) const { of(bytes).next = of(bytes).kept; }

  std::byte* take(std::size_t bytes) const {
    platform::Stock& stock = of(bytes);
    if (*stock.next == nullptr) {
      EXPECT_TRUE(TestLending::restock(stock));
    }
    auto* const block = static_cast<std::byte*>(*stock.next++);
    EXPECT_NE(block, nullptr);
    static_cast<FreeBlock*>(static_cast<void*>(block))->mark = 0;
    std::memset(block, 0x5a, bytes);  // nothing that the heap wrote there is left
    return block;
  }
};

TEST(Stocks, AreLentAndTakenBack) {
  platform::Stocks* first = &platform::no_stocks;
  ASSERT_TRUE(TestLending::lend(&first));
  EXPECT_NE(first->units, 0u);
  platform::Stocks* second = &platform::no_stocks;
  ASSERT_TRUE(TestLending::lend(&second));
  EXPECT_EQ(first, &platform::no_stocks);
  EXPECT_NE(second->units, 0u);
  TestLending::end();
  EXPECT_EQ(second, &platform::no_stocks);
  TestLending::end();
}

TEST(Stocks, AHeapThatLeavesItsThreadTakesThemBack) {
  platform::Stocks* user = &platform::no_stocks;
  std::thread([&user] {
    ASSERT_TRUE(TestLending::lend(&user));
    EXPECT_NE(user->units, 0u);
    TestHeap::thread_exit();
    EXPECT_EQ(user, &platform::no_stocks);
  }).join();
  EXPECT_EQ(verified(), "");
}

TEST(Stocks, ServeEachSizeWithBlocksThatPlainFreeTakes) {
  const User user;
  std::set<std::byte*> blocks;
  for (std::size_t bytes = 1; bytes <= platform::kStockBytesMax; bytes += bytes < 1024 ? 7 : 997)
    for (int i = 0; i < 20; ++i) {
      std::byte* const block = user.take(bytes);
      EXPECT_EQ(address_of(block) % kBlockAlignment, 0u);
      EXPECT_GE(TestHeap::usable_bytes(block), bytes);
      EXPECT_TRUE(blocks.insert(block).second);
    }
  EXPECT_EQ(verified(), "");
  for (std::byte* const block : blocks) TestHeap::deallocate(block);
  EXPECT_EQ(verified(), "");
}

TEST(Stocks, AnAbortFindsWhatTheAttemptTookInItsOrder) {
  const User user;
  constexpr std::size_t kBytes = 48;
  for (const std::size_t taken : {1, 10, 63, 64, 65, 1000, 20000}) {
    user.begin(kBytes);
    std::vector<std::byte*> before(taken), after(taken);
    for (std::byte*& block : before) block = user.take(kBytes);
    user.abort(kBytes);
    EXPECT_EQ(verified(), "") << taken;
    user.begin(kBytes);
    for (std::byte*& block : after) block = user.take(kBytes);
    EXPECT_EQ(before, after) << taken;
    user.abort(kBytes);
  }
}

TEST(Stocks, TakeBackUpToTheirMostAndTheRestGoesToMalloc) {
  const User user;
  constexpr std::size_t kBytes = 32;
  constexpr std::uint32_t kMost = TestStocks::most_of(Composition::Classes::class_of(kBytes));
  TestHeap::trim();
  const std::vector<std::byte*> blocks = tests::filled_blocks<TestHeap>(kMost + 10, kBytes, 1);
  for (std::byte* const block : blocks) TestLending::give(block);
  EXPECT_EQ(verified(), "");
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(TestHeap::allocate(kBytes), blocks[blocks.size() - 1 - i]);
  for (std::uint32_t i = 0; i < kMost; ++i) EXPECT_EQ(user.take(kBytes), blocks[kMost - 1 - i]);
  for (std::byte* const block : blocks) TestHeap::deallocate(block);
}

TEST(Stocks, BlocksOfOtherThreadsGoHome) {
  const User user;
  constexpr std::size_t kBytes = 64;
  std::vector<std::byte*> others;
  in_a_thread([&others] { others = tests::filled_blocks<TestHeap>(8, kBytes, 1); });
  const std::set<std::byte*> known(others.begin(), others.end());
  for (std::byte* const block : others) TestLending::give(block);
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(known.contains(user.take(kBytes)));
  EXPECT_EQ(verified(), "");
}

TEST(Stocks, LongAndStrangeBlocksAreFreed) {
  const User user;
  TestLending::give(nullptr);
  for (const std::size_t bytes : {1025, 4096, 100000, 70 << 20}) TestLending::give(TestHeap::allocate(bytes));
  TestLending::give(TestHeap::allocate_aligned(512, 512));
  EXPECT_EQ(verified(), "");
}

TEST(Stocks, AreEmptiedByTrimAndAnAttemptKeepsItsBlocks) {
  const User user;
  constexpr std::size_t kBytes = 80;
  user.begin(kBytes);
  std::vector<std::byte*> taken(100);
  for (std::byte*& block : taken) block = user.take(kBytes);
  TestHeap::trim();
  EXPECT_EQ(*user.of(kBytes).next, nullptr) << "malloc has the rest";
  EXPECT_EQ(verified(), "");
  const std::set<void*> known(taken.begin(), taken.end());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(known.contains(TestHeap::allocate(kBytes)));
  user.abort(kBytes);
  for (std::byte* const block : taken) EXPECT_EQ(user.take(kBytes), block);
  EXPECT_EQ(verified(), "");
}

TEST(StocksDeathTest, WhatIsInAStockIsNotFreedAgain) {
  const User user;
  std::byte* const block = tests::filled<TestHeap>(128, 1);
  TestLending::give(block);
  EXPECT_DEATH(TestHeap::deallocate(block), "double free in a block of 128 bytes");
  EXPECT_DEATH(TestLending::give(block), "double free in a block of 128 bytes");
}

// Attempts, commits, frees and trims at random beside plain calls: each block is in one place.
TEST(Stocks, AtRandomNoBlockIsHandedOutTwice) {
  const User user;
  base::Random random(7, 1);
  constexpr std::size_t kSizes[] = {16, 48, 112, 300, 1000};
  std::vector<std::byte*> held;  // in use
  std::set<std::byte*> known;
  const auto hold = [&](std::byte* block) {
    held.push_back(block);
    ASSERT_TRUE(known.insert(block).second) << "handed out twice";
  };
  const auto some = [&] {
    std::swap(held[random.below(static_cast<std::uint32_t>(held.size()))], held.back());
    std::byte* const found = held.back();
    held.pop_back();
    known.erase(found);
    return found;
  };
  for (int step = 0; step < 4000; ++step) {
    const std::size_t bytes = kSizes[random.below(5)];
    switch (random.below(6)) {
      case 0:
      case 1: {  // an attempt
        user.begin(bytes);
        std::vector<std::byte*> taken(random.below(40) * random.below(8));
        for (std::byte*& block : taken) block = user.take(bytes);
        if (random.below(2) == 0)
          user.abort(bytes);
        else
          for (std::byte* const block : taken) hold(block);
        break;
      }
      case 2:
        hold(static_cast<std::byte*>(TestHeap::allocate(bytes)));
        break;
      case 3:
        for (auto left = random.below(100); left > 0 && !held.empty(); --left) TestLending::give(some());
        break;
      case 4:
        for (auto left = random.below(20); left > 0 && !held.empty(); --left) TestHeap::deallocate(some());
        break;
      case 5:
        if (random.below(50) == 0) TestHeap::trim();
        break;
    }
    if (step % 500 == 0) {
      ASSERT_EQ(verified(), "") << step;
    }
  }
  while (!held.empty()) TestLending::give(some());
  EXPECT_EQ(verified(), "");
}

// ---- low-water marks, for hardware attempts ----

std::size_t ready(const platform::Stock& stock) {
  std::size_t count = 0;
  while (stock.next[count] != nullptr) ++count;  // K1
  return count;
}

TEST(Stocks, AMarkDoublesEachTimeThatAStockFullToItIsFoundEmpty) {
  const User user;
  TestHeap::trim();
  constexpr std::size_t kBytes = 4096;
  constexpr unsigned kClass = Composition::Classes::class_of(kBytes);
  const platform::Stock& stock = user.of(kBytes);
  EXPECT_TRUE(TestLending::refill(stock, false));
  EXPECT_EQ(ready(stock), 0u) << "no attempt has found it empty";
  std::size_t wanted = TestStocks::most_of(kClass);
  for (;; wanted = std::min<std::size_t>(2 * wanted, TestStocks::ready_max_of(kClass))) {
    ASSERT_TRUE(TestLending::refill(stock, true));
    ASSERT_EQ(ready(stock), wanted);
    ASSERT_EQ(verified(), "");
    if (wanted == TestStocks::ready_max_of(kClass)) break;
  }
  EXPECT_GE(wanted, 300u);
  EXPECT_FALSE(TestLending::refill(stock, true)) << "as high as it gets";
  EXPECT_EQ(ready(stock), wanted);
}

TEST(Stocks, AMarkStaysWhereTheStockWasNotFullToIt) {
  const User user;
  constexpr std::size_t kBytes = 200;
  TestHeap::trim();
  const platform::Stock& stock = user.of(kBytes);
  ASSERT_TRUE(TestLending::refill(stock, true));
  const std::size_t wanted = ready(stock);
  std::set<std::byte*> taken;
  for (std::size_t i = 0; i < wanted - 1; ++i) taken.insert(user.take(kBytes));
  ASSERT_TRUE(TestLending::refill(stock, true));
  EXPECT_EQ(ready(stock), wanted);
  for (std::size_t i = 0; i < wanted; ++i) EXPECT_TRUE(taken.insert(user.take(kBytes)).second);
  ASSERT_TRUE(TestLending::refill(stock, false));
  EXPECT_EQ(ready(stock), wanted) << "below the mark it is filled without an attempt that found it empty";
  EXPECT_EQ(verified(), "");
  for (std::byte* const block : taken) TestHeap::deallocate(block);
}

TEST(Stocks, WhatComesBackFitsUpToTheMark) {
  const User user;
  constexpr std::size_t kBytes = 3000;
  TestHeap::trim();
  const platform::Stock& stock = user.of(kBytes);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(TestLending::refill(stock, true));
  const std::size_t wanted = ready(stock);
  EXPECT_GT(wanted, TestStocks::most_of(Composition::Classes::class_of(kBytes)));
  std::vector<std::byte*> taken(wanted);
  for (std::byte*& block : taken) block = user.take(kBytes);
  EXPECT_EQ(ready(stock), 0u);
  for (std::byte* const block : taken) TestLending::give(block);
  EXPECT_EQ(ready(stock), wanted);
  EXPECT_EQ(verified(), "");
}

TEST(Stocks, ATrimTakesTheMarkBack) {
  const User user;
  constexpr std::size_t kBytes = 500;
  const platform::Stock& stock = user.of(kBytes);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(TestLending::refill(stock, true));
  TestHeap::trim();
  EXPECT_EQ(ready(stock), 0u);
  EXPECT_TRUE(TestLending::refill(stock, false));
  EXPECT_EQ(ready(stock), 0u);
  EXPECT_TRUE(TestLending::refill(stock, true));
  EXPECT_EQ(ready(stock), TestStocks::most_of(Composition::Classes::class_of(kBytes)));
  EXPECT_EQ(verified(), "");
}

// ---- no memory, and heaps that watch every call ----

using RefusingComposition = LoamComposition<tests::NoThreadsHook, tests::DyingFaults, tests::RefusingPages>;

TEST(Stocks, WithoutMemoryARequestFailsAndALaterOneDoesNot) {
  using RefusingHeap = Heap<RefusingComposition>;
  using RefusingLending = Lending<RefusingComposition>;
  tests::in_child([] {
    platform::Stocks* stocks = &platform::no_stocks;
    ASSERT_TRUE(RefusingHeap::attach());
    tests::RefusingPages::refuse(0, tests::RefusingPages::kAllThatFollow);
    EXPECT_FALSE(RefusingLending::lend(&stocks));
    EXPECT_EQ(stocks->units, 0u);
    tests::RefusingPages::serve_all();
    ASSERT_TRUE(RefusingLending::lend(&stocks));
    // Each request for pages of an attempt that takes more and more is refused once.
    platform::Stock& stock = stocks->all[platform::stock_of(1000)];
    std::set<void*> taken;
    for (int served = 0; served < 16; ++served) {
      tests::RefusingPages::refuse(served, tests::RefusingPages::kAllThatFollow);
      stock.kept = stock.next;
      const std::size_t before = taken.size();
      for (int i = 0; i < 100000; ++i) {
        if (*stock.next == nullptr && !RefusingLending::restock(stock)) break;
        ASSERT_TRUE(taken.insert(*stock.next).second);
        ++stock.next;
      }
      EXPECT_EQ(tests::verified<RefusingHeap>(), "") << served << " " << before;
      if (served % 2 == 0) {
        for (; stock.next != stock.kept; --stock.next) taken.erase(stock.next[-1]);
      }
    }
    EXPECT_GT(taken.size(), 1000u);
    tests::RefusingPages::serve_all();
    EXPECT_TRUE(*stock.next != nullptr || RefusingLending::restock(stock));
  });
}

// Blocks that were free before, so that they are marked, and no room for them behind those that an attempt has taken.
TEST(Stocks, ALotForWhichThereIsNoRoomGoesBack) {
  using RefusingHeap = Heap<RefusingComposition>;
  using RefusingLending = Lending<RefusingComposition>;
  tests::in_child([] {
    platform::Stocks* stocks = &platform::no_stocks;
    ASSERT_TRUE(RefusingLending::lend(&stocks));
    for (std::byte* const block : tests::filled_blocks<RefusingHeap>(1000, 48, 1)) RefusingHeap::deallocate(block);
    platform::Stock& stock = stocks->all[platform::stock_of(48)];
    tests::RefusingPages::refuse(0, tests::RefusingPages::kAllThatFollow);
    std::size_t taken = 0;
    for (; *stock.next != nullptr || RefusingLending::restock(stock); ++stock.next) ++taken;
    EXPECT_EQ(taken, TestStocks::most_of(Composition::Classes::class_of(48)));
    tests::RefusingPages::serve_all();
    EXPECT_EQ(tests::verified<RefusingHeap>(), "");
    EXPECT_TRUE(RefusingLending::restock(stock));
  });
}

// The number of bytes of a block that lie in pages without memory.
std::size_t unbacked_bytes(const void* block, std::size_t bytes) {
  std::size_t sum = 0;
  for (std::uintptr_t at = address_of(block), end = at + bytes; at < end;) {
    const std::uintptr_t page = at & ~(std::uintptr_t{platform::page_bytes()} - 1),
                         next = page + platform::page_bytes();
    unsigned char resident = 0;
    EXPECT_EQ(mincore(reinterpret_cast<void*>(page), platform::page_bytes(), &resident), 0);
    if ((resident & 1) == 0) sum += std::min(next, end) - at;
    at = next;
  }
  return sum;
}

// In a child process, whose heap has used no memory yet. Blocks of a stock without a mark show that the test can fail.
TEST(Stocks, WhatAMarkAsksForHasAllItsPagesBacked) {
  using RefusingLending = Lending<RefusingComposition>;
  tests::in_child([] {
    platform::Stocks* stocks = &platform::no_stocks;
    ASSERT_TRUE(RefusingLending::lend(&stocks));
    for (const std::size_t bytes : {1000, 4096, 9000, 32768}) {
      platform::Stock& stock = stocks->all[platform::stock_of(bytes)];
      const auto unbacked = [&stock, bytes] {
        std::size_t sum = 0;
        for (void** at = stock.next; *at != nullptr; ++at) sum += unbacked_bytes(*at, bytes);
        return sum;
      };
      ASSERT_TRUE(RefusingLending::restock(stock));
      if (bytes > platform::page_bytes()) {
        EXPECT_GT(unbacked(), 0u) << bytes;
      }
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(RefusingLending::refill(stock, true));
        EXPECT_EQ(unbacked(), 0u) << bytes;
      }
      // A block is freed whose user has not touched it.
      ASSERT_NE(*stock.next, nullptr);
      static_cast<FreeBlock*>(*stock.next)->mark = 0;
      ++stock.next;
      auto* const block = static_cast<std::byte*>(Heap<RefusingComposition>::allocate(bytes));
      RefusingLending::give(block);
      EXPECT_EQ(*stock.next, block) << bytes;
      EXPECT_EQ(unbacked(), 0u) << bytes;
    }
    EXPECT_EQ(tests::verified<Heap<RefusingComposition>>(), "");
  });
}

TEST(Stocks, WithoutMemoryAMarkIsNotReachedAndTheStockStaysWhole) {
  using RefusingLending = Lending<RefusingComposition>;
  tests::in_child([] {
    platform::Stocks* stocks = &platform::no_stocks;
    ASSERT_TRUE(RefusingLending::lend(&stocks));
    platform::Stock& stock = stocks->all[platform::stock_of(20000)];
    bool failed = false;
    for (int served = 0; served < 20; ++served) {
      tests::RefusingPages::refuse(served, tests::RefusingPages::kAllThatFollow);
      for (int i = 0; i < 8; ++i) failed |= !RefusingLending::refill(stock, true);
      EXPECT_EQ(tests::verified<Heap<RefusingComposition>>(), "") << served;
    }
    EXPECT_TRUE(failed);
    tests::RefusingPages::serve_all();
    Heap<RefusingComposition>::trim();
    EXPECT_TRUE(RefusingLending::refill(stock, true));
    EXPECT_GT(ready(stock), 0u);
  });
}

struct GuardedAlways {
  static bool on() noexcept { return true; }
};

TEST(Stocks, AGuardedHeapLendsNothing) {
  using Guarding = LoamOrGuardedComposition<tests::NoThreadsHook, tests::DyingFaults, GuardedAlways>;
  platform::Stocks* stocks = &platform::no_stocks;
  EXPECT_FALSE(Lending<Guarding>::lend(&stocks));
  EXPECT_EQ(stocks, &platform::no_stocks);
}

}  // namespace
}  // namespace loam::heap
