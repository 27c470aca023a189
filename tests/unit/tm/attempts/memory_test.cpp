// Memory that follows the outcome of a transaction: undone by an abort, freed after commit and quiescence, and counted.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/unit/tm/attempts/node_lists.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace loam::tm {
namespace {

struct MemoryTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, MemoryTest, testing::ValuesIn(tests::variants()), tests::variant_name);

TEST_P(MemoryTest, MallocIsUndoneByACancel) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (int n : {1, 2, 100}) {
      EXPECT_THROW(Driver::update([&](auto& tx) {
                     for (int i = 0; i < n; ++i) tx.template create<Node>(i, nullptr);
                     throw Cancel{};
                   }),
                   Cancel);
      EXPECT_EQ(live_blocks(), 0);
    }
    EXPECT_EQ(statistics().blocks_allocated, 103u);
  });
}

TEST_P(MemoryTest, FreeIsForgottenByACancelAndDoneAfterACommit) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Node* const node = Driver::update([](auto& tx) { return tx.template create<Node>(1, nullptr); });
    EXPECT_EQ(live_blocks(), 1);
    EXPECT_THROW(Driver::update([&](auto& tx) {
                   tx.destroy(node);
                   throw Cancel{};
                 }),
                 Cancel);
    quiesce();
    EXPECT_EQ(live_blocks(), 1);
    EXPECT_EQ(node->key, 1);
    Driver::update([&](auto& tx) { tx.destroy(node); });
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(live_blocks(), 0);
  });
}

TEST_P(MemoryTest, AFreedBlockIsReadableUntilCommitAndQuiescence) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Node* const node = Driver::update([](auto& tx) { return tx.template create<Node>(7, nullptr); });
    Driver::update([&](auto& tx) {
      tx.destroy(node);
      // Until the commit the block is this attempt's: a retry would read it again.
      EXPECT_EQ(tx.read(node->key), 7);
      EXPECT_EQ(live_blocks(), 1);
    });
    quiesce();
    EXPECT_EQ(live_blocks(), 0);
  });
}

TEST_P(MemoryTest, CreatedAndDestroyedInOneTransaction) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool cancel : {false, true}) {
      try {
        Driver::update([&](auto& tx) {
          Node* const node = tx.template create<Node>(1, nullptr);
          tx.write(node->key, std::int64_t{2});
          EXPECT_EQ(tx.read(node->key), 2);
          tx.destroy(node);
          if (cancel) throw Cancel{};
        });
      } catch (const Cancel&) {
      }
      quiesce();
      EXPECT_EQ(live_blocks(), 0);
    }
  });
}

TEST_P(MemoryTest, NullIsNotFreedAndSizesAreRoundedToGranules) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      tx.release(nullptr);
      tx.template destroy<Node>(nullptr);
    });
    for (std::size_t bytes : {0, 1, 8, 15, 16, 17, 1000}) {
      void* const block = Driver::update([&](auto& tx) { return tx.allocate(bytes); });
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
      std::memset(block, 1, (bytes + 15) / 16 * 16);
      Driver::update([&](auto& tx) { tx.release(block); });
    }
    EXPECT_THROW(Driver::update([](auto& tx) { tx.allocate(~std::size_t{0} - 3); }), std::bad_alloc);
    quiesce();
    EXPECT_EQ(live_blocks(), 0);
  });
}

TEST_P(MemoryTest, AConflictUndoesWhatTheAttemptAllocated) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    alignas(64) static std::uint64_t x = 0;
    const tests::ChangesOnce<Driver> change(x, 1);
    alignas(64) static std::uint64_t y = 0;
    int attempts = 0;
    Node* const node = Driver::update([&](auto& tx) {
      ++attempts;
      Node* const made = tx.template create<Node>(0, nullptr);
      made->key = static_cast<std::int64_t>(tx.read(x));
      tx.write(y, std::uint64_t{1});
      return made;
    });
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(node->key, 1);
    EXPECT_EQ(live_blocks(), 1);
    EXPECT_EQ(statistics().blocks_allocated, 2u);
    Driver::update([&](auto& tx) { tx.destroy(node); });
    quiesce();
    EXPECT_EQ(live_blocks(), 0);
  });
}

// A reader that was inside when the block was unlinked still reads the old content: the block is neither freed nor
// handed out again before the reader has left. (Its attempt may well abort; it must not see a stranger's data.)
TEST_P(MemoryTest, RecycleAnOldReaderNeverSeesTheNextLifeOfABlock) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    alignas(64) static Node* head = nullptr;
    Driver::update([](auto& tx) { tx.write(head, tx.template create<Node>(7, nullptr)); });
    int attempts = 0;
    std::int64_t seen[2] = {-1, -1};
    bool unlinked = false;
    const auto unlink = [](auto& tx) {
      tx.destroy(tx.read(head));
      tx.write(head, static_cast<Node*>(nullptr));
    };
    std::thread reader([&] {
      Driver::read_only([&](auto& tx) {
        const Node* const node = tx.read(head);
        if (attempts++ > 0) return;
        std::thread([&] {
          unlinked = tests::attempt_update<Driver>(2, unlink);
          quiesce();
          // The next owners of such blocks initialise them plainly.
          for (int i = 0; i < 64; ++i) {
            void* const block = Driver::update([](auto& tx) { return tx.allocate(sizeof(Node)); });
            std::memset(block, 0x5a, sizeof(Node));
            Driver::update([&](auto& tx) { tx.release(block); });
          }
          quiesce();
        }).join();
        seen[0] = node->key;           // plainly: what a doomed attempt's uninstrumented code would read
        seen[1] = tx.read(node->key);  // and through the transaction
      });
    });
    reader.join();
    EXPECT_EQ(seen[0], 7);
    // By its record the block is as old as the snapshot; who compares values sees that the link to it is gone.
    const bool goes_on = uses_records<typename Driver::Uses>();
    EXPECT_EQ(attempts, goes_on ? 1 : 2);
    EXPECT_EQ(seen[1], goes_on ? 7 : -1);
    EXPECT_EQ(unlinked, !readers_block_writers<typename Driver::Uses>());
    if (!unlinked) Driver::update(unlink);
    quiesce();
    EXPECT_EQ(live_blocks(), 0);
  });
}

TEST_P(MemoryTest, CountsBalanceAfterConcurrentInsertsDeletesAndCancels) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static NodeLists lists;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { lists.change<Driver>(t, 1000); });
    for (auto& thread : threads) thread.join();
    quiesce();
    EXPECT_EQ(live_blocks(), lists.reachable());
  });
}

}  // namespace
}  // namespace loam::tm
