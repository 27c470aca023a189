// Transactions of a process whose malloc lends stocks (platform/stock.hpp). Sanitizers have a malloc of their own. So
// this process has a second heap, which lends stocks: created blocks come from there, and long blocks from malloc.
#include "runtime/base/random.hpp"
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/heap/lending.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/unit/tm/attempts/node_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using LentComposition = heap::LoamComposition<NoThreadsHook, DyingFaults>;
using LentHeap = heap::Heap<LentComposition>;
using Lends = heap::Lending<LentComposition>;

// The number of restocks that succeed; all later ones find no memory.
constinit std::atomic<int> restocks_served{1 << 30};

}  // namespace
}  // namespace loam::tests

extern "C" {
int loam_malloc_lend(loam::platform::Stocks** user) {
  if (user != nullptr) return loam::tests::Lends::lend(user) ? 1 : 0;
  loam::tests::Lends::end();
  return 0;
}
int loam_malloc_restock(loam::platform::Stock* stock) {
  if (loam::tests::restocks_served.fetch_sub(1) <= 0) return 0;
  return loam::tests::Lends::restock(*stock) ? 1 : 0;
}
void loam_malloc_give(void* block) {
  if (loam::tests::LentHeap::covers(block)) return loam::tests::Lends::give(block);
  std::free(block);
}
}

namespace loam::tm {
namespace {

using tests::LentHeap;

struct LentBlocksTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, LentBlocksTest,
                         testing::ValuesIn(tests::variants({"small_table", "shadow", "small_table_blame"})),
                         tests::variant_name);

std::string verified() { return tests::verified<LentHeap>(); }

// Sizes of blocks; some of them share a class.
constexpr std::size_t kSizes[] = {0, 16, 24, 48, 100, 112, 130, 1000, 1024, 1025, 5000};
std::size_t size_of(std::size_t i) { return kSizes[i % std::size(kSizes)]; }

// Runs an attempt that allocates `count` blocks, fills them and aborts. returns the blocks
template <class Driver>
std::vector<void*> aborted_attempt(std::size_t count) {
  std::vector<void*> blocks(count);
  EXPECT_THROW(Driver::update([&](auto& tx) {
                 for (std::size_t i = 0; i < count; ++i) {
                   blocks[i] = tx.allocate(size_of(i));
                   std::memset(blocks[i], 0x5a, size_of(i));
                 }
                 throw Cancel{};
               }),
               Cancel);
  return blocks;
}

// Blocks that come from the heap that lends, in the order in which they were handed out.
std::vector<void*> lent(std::vector<void*> blocks) {
  std::erase_if(blocks, [](void* block) { return !LentHeap::covers(block); });
  return blocks;
}

TEST_P(LentBlocksTest, AnAbortAtEveryAllocationLeavesTheHeapAsItWas) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr std::size_t kMost = 300;
    const std::vector<void*> all = lent(aborted_attempt<Driver>(kMost));
    EXPECT_GT(all.size(), kMost / 2);
    EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), all.size());
    const heap::Statistics before = LentHeap::statistics();
    for (std::size_t n = 0; n < kMost; ++n) {
      const std::vector<void*> some = lent(aborted_attempt<Driver>(n));
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << n << ": the same blocks, the same order";
      ASSERT_EQ(live_blocks(), 0);
    }
    EXPECT_EQ(LentHeap::statistics().committed_bytes, before.committed_bytes);
    EXPECT_EQ(LentHeap::statistics().metadata_bytes, before.metadata_bytes);
    EXPECT_EQ(verified(), "");
  });
}

TEST_P(LentBlocksTest, ManyBlocksInAbortedAttemptsTakeNoMemory) {
  const std::uint64_t blocks = std::getenv("LOAM_TEST_ALL") != nullptr ? 10'000'000 : 100'000;
  tests::in_variant(GetParam(), [blocks]<class Driver>() {
    aborted_attempt<Driver>(1000);
    const std::uint64_t before = LentHeap::statistics().committed_bytes;
    for (std::uint64_t done = 0; done < blocks; done += 1000) aborted_attempt<Driver>(1000);
    EXPECT_EQ(LentHeap::statistics().committed_bytes, before);
    EXPECT_EQ(live_blocks(), 0);
    EXPECT_EQ(verified(), "");
  });
}

TEST_P(LentBlocksTest, WhatHasCommittedStaysThroughLaterAborts) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::set<Node*> kept;
    for (int round = 0; round < 100; ++round) {
      Node* const node = Driver::update([&](auto& tx) { return tx.template create<Node>(round, nullptr); });
      ASSERT_TRUE(kept.insert(node).second) << round;
      for (void* const block : aborted_attempt<Driver>(20)) ASSERT_FALSE(kept.contains(static_cast<Node*>(block)));
    }
    EXPECT_EQ(live_blocks(), 100);
    std::int64_t sum = 0;
    for (const Node* const node : kept) sum += node->key;
    EXPECT_EQ(sum, 99 * 100 / 2);
    // Half by transactions, half plainly, as free() of the heap.
    bool plainly = false;
    for (Node* const node : kept)
      if ((plainly = !plainly))
        LentHeap::deallocate(node);
      else
        Driver::update([&](auto& tx) { tx.destroy(node); });
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(live_blocks(), 50);
    EXPECT_EQ(verified(), "");
  });
}

TEST_P(LentBlocksTest, WhatIsDestroyedIsCreatedAgain) {
  const char* const asked = std::getenv("LOAM_TEST_TRANSACTIONS");
  const long pairs = (asked == nullptr ? 40000 : std::atol(asked)) / 2;
  tests::in_variant(GetParam(), [pairs]<class Driver>() {
    std::set<Node*> seen;
    std::uint64_t committed = 0;
    for (long i = 0; i < pairs; ++i) {
      if (i == pairs / 4) committed = LentHeap::statistics().committed_bytes;
      Node* const node = Driver::update([&](auto& tx) { return tx.template create<Node>(i, nullptr); });
      seen.insert(node);
      Driver::update([&](auto& tx) { tx.destroy(node); });
    }
    // Only as many blocks are used as wait for quiescence at a time, and a lot or two.
    EXPECT_LT(seen.size(), 1000u);
    EXPECT_EQ(LentHeap::statistics().committed_bytes, committed);
    quiesce();
    EXPECT_EQ(live_blocks(), 0);
    EXPECT_EQ(verified(), "");
  });
}

TEST_P(LentBlocksTest, ACancelledPartTakesItsOwnBlocksBackAlone) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool all : {false, true}) {
      Node *outer = nullptr, *behind = nullptr, *inner = nullptr;
      try {
        Driver::update([&](auto& tx) {
          outer = tx.template create<Node>(1, nullptr);
          EXPECT_FALSE(Driver::closed([&](auto& part) {
            inner = part.template create<Node>(2, nullptr);
            EXPECT_TRUE(LentHeap::covers(inner)) << "parts take from the stocks as well";
            EXPECT_FALSE(Driver::closed([](auto& innermost) {
              innermost.template create<Node>(3, nullptr);
              Driver::cancel();
            }));
            Driver::cancel();
          }));
          EXPECT_TRUE(Driver::closed([](auto& part) { part.template create<Node>(4, nullptr); }));
          behind = tx.template create<Node>(5, nullptr);
          EXPECT_NE(outer, behind);
          EXPECT_TRUE(LentHeap::covers(outer) && LentHeap::covers(behind)) << "the part's end is the stocks' return";
          EXPECT_EQ(outer->key, 1);
          if (all) throw Cancel{};
        });
      } catch (const Cancel&) {
      }
      EXPECT_EQ(live_blocks(), 3);
      EXPECT_EQ(verified(), "");
    }
  });
}

// A block is taken from its stock as any other, whoever takes it: nothing is written to these before they are freed.
TEST_P(LentBlocksTest, BlocksThatNobodyHasWrittenAreFreedOnce) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr std::size_t kBlocks = 64;
    std::vector<void*> blocks(3 * kBlocks);
    for (int round = 0; round < 10; ++round) {
      Driver::update([&](auto& tx) {
        const auto take = [&](auto& by, std::size_t first) {
          for (std::size_t i = first; i < first + kBlocks; ++i) blocks[i] = by.allocate(size_of(i));
        };
        take(tx, 0);
        Driver::closed([&](auto& part) {
          take(part, kBlocks);
          Driver::closed([&](auto& inner) { take(inner, 2 * kBlocks); });
        });
      });
      EXPECT_FALSE(lent(blocks).empty());
      for (void* const block : blocks) LentHeap::covers(block) ? LentHeap::deallocate(block) : std::free(block);
      EXPECT_EQ(verified(), "");
    }
  });
}

// Nested parts are kept or cancelled, in attempts that commit or abort: each block is in one place, and none is lost.
TEST_P(LentBlocksTest, PartsAtRandomLoseNoBlockAndServeNoneTwice) {
  tests::in_variant(GetParam(), []<class Driver>() {
    base::Random random(11, 3);
    std::set<void*> held;
    for (int round = 0; round < 300; ++round) {
      const bool commits = random.below(3) != 0;
      std::vector<void*> made;
      const auto make = [&](auto& tx) {
        for (unsigned left = random.below(6); left > 0; --left) {
          void* const block = tx.allocate(size_of(random.below(std::size(kSizes))));
          std::memset(block, 0x5a, 16);
          made.push_back(block);
        }
      };
      try {
        Driver::update([&](auto& tx) {
          made.clear();
          make(tx);
          for (unsigned parts = random.below(4); parts > 0; --parts) {
            const std::size_t before = made.size();
            const bool kept = Driver::closed([&](auto& part) {
              make(part);
              const std::size_t inside = made.size();
              const bool inner = Driver::closed([&](auto& innermost) {
                make(innermost);
                if (random.below(2) == 0) Driver::cancel();
              });
              if (!inner) made.resize(inside);
              make(part);
              if (random.below(2) == 0) Driver::cancel();
            });
            if (!kept) made.resize(before);
            make(tx);
          }
          if (!commits) throw Cancel{};
        });
        for (void* const block : made) ASSERT_TRUE(held.insert(block).second) << "handed out twice in round " << round;
      } catch (const Cancel&) {
      }
      for (unsigned left = random.below(12); left > 0 && !held.empty(); --left) {
        Driver::update([&](auto& tx) { tx.release(*held.begin()); });
        held.erase(held.begin());
      }
    }
    quiesce();
    EXPECT_EQ(live_blocks(), static_cast<std::int64_t>(held.size()));
    for (void* const block : held) Driver::update([&](auto& tx) { tx.release(block); });
    quiesce();
    EXPECT_EQ(live_blocks(), 0);
    EXPECT_EQ(verified(), "");
  });
}

// The whole attempt ends while a part runs.
TEST_P(LentBlocksTest, AnAttemptThatEndsWithinAPartTakesAllBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    Node* first = nullptr;
    Driver::update([&](auto& tx) {
      Node* const node = tx.template create<Node>(1, nullptr);
      if (attempts++ == 0) {
        first = node;
        Driver::closed([](auto& part) {
          part.template create<Node>(2, nullptr);
          Driver::irrevocable([](auto&) {});  // not in an attempt: it ends, and the body runs again alone
        });
      }
      EXPECT_EQ(node, first) << "taken back, and taken again";
      EXPECT_TRUE(LentHeap::covers(tx.template create<Node>(3, nullptr)));
    });
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(live_blocks(), 2);
    EXPECT_EQ(verified(), "");
  });
}

TEST_P(LentBlocksTest, TransactionsOfHandlersTakeTheStocksAndGiveThemBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static std::vector<Node*> made;
    std::set<Node*> kept;
    for (int round = 0; round < 50; ++round) {
      made.clear();
      int attempts = 0;
      bool undone = false;
      try {
        Node* const node = Driver::update([&](auto& tx) {
          Node* const first = tx.template create<Node>(round, nullptr);
          // Another descriptor, whose attempts are counted from 0 as the first one's are.
          tx.on_abort(
              [] { made.push_back(Driver::update([](auto& own) { return own.template create<Node>(-1, nullptr); })); });
          if (attempts++ == 0) Driver::irrevocable([](auto&) {});  // the attempt ends, the body runs again
          EXPECT_TRUE(LentHeap::covers(tx.template create<Node>(-2, nullptr))) << round;
          if (round % 2 == 0) throw Cancel{};
          return first;
        });
        made.push_back(node);
      } catch (const Cancel&) {
        undone = true;
      }
      EXPECT_EQ(made.size(), 2u);
      EXPECT_EQ(undone, round % 2 == 0);
      for (Node* const node : made) ASSERT_TRUE(kept.insert(node).second) << "handed out twice in round " << round;
    }
    EXPECT_EQ(live_blocks(), static_cast<std::int64_t>(kept.size() + 25))
        << "of every other round one that is not kept";
    EXPECT_EQ(verified(), "");
  });
}

TEST_P(LentBlocksTest, AConflictTakesBackWhatTheAttemptTook) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    alignas(64) static std::uint64_t x = 0;
    alignas(64) static std::uint64_t y = 0;
    const tests::ChangesOnce<Driver> change(x, 1);
    std::vector<Node*> made;
    Driver::update([&](auto& tx) {
      made.push_back(tx.template create<Node>(0, nullptr));
      made.back()->key = static_cast<std::int64_t>(tx.read(x));
      tx.write(y, std::uint64_t{1});
    });
    ASSERT_EQ(made.size(), 2u);
    EXPECT_EQ(made[0], made[1]);
    EXPECT_EQ(live_blocks(), 1);
  });
}

TEST_P(LentBlocksTest, ABodyThatRunsAloneIsTakenBackAsAnyOther) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool undone : {true, false}) {
      static std::vector<Node*> made;
      made.clear();
      int runs = 0;
      try {
        Driver::update([&](auto& tx) {
          made.push_back(tx.template create<Node>(1, nullptr));
          if (runs++ == 1 && undone) throw Cancel{};  // alone, and still revocable
          Driver::irrevocable([](auto& alone) { made.push_back(alone.template create<Node>(2, nullptr)); });
        });
      } catch (const Cancel&) {
      }
      ASSERT_EQ(made.size(), undone ? 2u : 3u);
      EXPECT_EQ(made[0], made[1]);
      if (!undone) {
        EXPECT_NE(made[1], made[2]);
      }
      EXPECT_EQ(live_blocks(), undone ? 0 : 2);
      EXPECT_EQ(verified(), "");
    }
  });
}

TEST_P(LentBlocksTest, WhereNothingCanBeRestockedMallocServes) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const int served : {0, 1, 2}) {
      tests::restocks_served = served;
      std::set<Node*> nodes;
      Driver::update([&](auto& tx) {
        nodes.clear();
        for (int i = 0; i < 200; ++i) nodes.insert(tx.template create<Node>(i, nullptr));
      });
      EXPECT_EQ(nodes.size(), 200u);
      const auto foreign = std::count_if(nodes.begin(), nodes.end(), [](Node* n) { return !LentHeap::covers(n); });
      EXPECT_GT(foreign, 0);
      for (Node* const node : nodes) Driver::update([&](auto& tx) { tx.destroy(node); });
      aborted_attempt<Driver>(300);
      quiesce();
      EXPECT_EQ(live_blocks(), 0);
      EXPECT_EQ(verified(), "");
      LentHeap::trim();
    }
  });
}

// Threads start and end. For some the heap is detached before the transactions' descriptor, for others after it.
TEST_P(LentBlocksTest, ThreadsThatEndHandTheirStocksOver) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static NodeLists lists;
    for (int round = 0; round < 4; ++round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([t] {
          lists.change<Driver>(t, 500);
          if (t % 2 == 0) thread_exit();
          LentHeap::thread_exit();
          if (t == 1) Driver::update([](auto& tx) { tx.destroy(tx.template create<Node>(1, nullptr)); });
          thread_exit();
          LentHeap::thread_exit();
        });
      for (auto& thread : threads) thread.join();
    }
    quiesce();
    EXPECT_EQ(live_blocks(), lists.reachable());
    EXPECT_EQ(verified(), "");
  });
}

}  // namespace
}  // namespace loam::tm
