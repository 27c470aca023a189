// Blocks that a thread keeps although another heap owns them (borrowed.hpp): when, how many, and what becomes of them.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;
using Blocks = std::vector<std::byte*>;

Blocks allocated(std::size_t count, std::size_t bytes) { return tests::filled_blocks<TestHeap>(count, bytes, 3); }
constexpr auto free_all = tests::free_all<TestHeap>;
constexpr auto verified = tests::verified<TestHeap>;
constexpr auto in_a_thread = [](auto body) { tests::in_a_thread<TestHeap>(body); };

std::size_t common(const Blocks& blocks, const Blocks& others) {
  const std::set<std::byte*> known(others.begin(), others.end());
  return static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(), [&known](std::byte* block) { return known.contains(block); }));
}

// Frees blocks of another heap and runs out of its own, until its class borrows. returns what it holds then
Blocks learn_to_borrow(const std::vector<Blocks>& lots, std::size_t bytes) {
  Blocks own;
  for (const Blocks& lot : lots) {
    free_all(lot);
    const Blocks more = allocated(400, bytes);
    own.insert(own.end(), more.begin(), more.end());
  }
  return own;
}

TEST(Borrowed, AThreadThatFreesAndAllocatesReusesWhatItFreed) {
  constexpr std::size_t kBytes = 256;
  std::vector<Blocks> lots;
  for (int i = 0; i < 6; ++i) lots.push_back(allocated(64, kBytes));
  const Blocks last = allocated(64, kBytes);
  in_a_thread([&] {
    const Blocks held = learn_to_borrow(lots, kBytes);
    const std::uint64_t sent = TestHeap::statistics().remote_blocks_sent;
    free_all(last);
    EXPECT_EQ(TestHeap::statistics().remote_blocks_sent, sent) << "kept, all of them";
    EXPECT_EQ(verified(), "");
    const Blocks own = allocated(4000, kBytes);
    EXPECT_EQ(common(own, last), last.size());
    free_all(own);
    free_all(held);
  });
  EXPECT_EQ(verified(), "");
}

TEST(Borrowed, AThreadThatOnlyFreesKeepsNothing) {
  constexpr std::size_t kBytes = 304, kBlocks = 6400;
  const Blocks blocks = allocated(kBlocks, kBytes);
  in_a_thread([&] {
    ASSERT_TRUE(TestHeap::attach());  // so that batches begin with the first block
    const std::uint64_t sent = TestHeap::statistics().remote_blocks_sent;
    free_all(blocks);
    EXPECT_EQ(TestHeap::statistics().remote_blocks_sent, sent + kBlocks);
  });
}

TEST(Borrowed, FewShortBlocksAreNotReusedSinceTheyShareLines) {
  constexpr std::size_t kBytes = 16;
  std::vector<Blocks> lots;
  for (int i = 0; i < 6; ++i) lots.push_back(allocated(64, kBytes));
  const Blocks last = allocated(15, kBytes);  // under four lines
  in_a_thread([&] {
    const Blocks held = learn_to_borrow(lots, kBytes);
    free_all(last);
    const Blocks own = allocated(8192, kBytes);
    EXPECT_EQ(common(own, last), 0u);
    free_all(held);
    free_all(own);
  });
}

TEST(Borrowed, AThreadThatEndsSendsThemHome) {
  constexpr std::size_t kBytes = 416;
  TestHeap::trim();
  std::vector<Blocks> lots;
  for (int i = 0; i < 6; ++i) lots.push_back(allocated(64, kBytes));
  const Blocks last = allocated(40, kBytes);
  in_a_thread([&] {
    const Blocks held = learn_to_borrow(lots, kBytes);
    free_all(last);
    free_all(held);
  });
  Blocks all = last;
  for (const Blocks& lot : lots) all.insert(all.end(), lot.begin(), lot.end());
  const Blocks again = allocated(5000, kBytes);
  EXPECT_EQ(common(again, all), all.size());
  free_all(again);
  EXPECT_EQ(verified(), "");
}

// Their owner's mark is in them, whosever list they are in.
TEST(BorrowedDeathTest, ABorrowedBlockThatIsFreedOnceMoreIsFound) {
  constexpr std::size_t kBytes = 512;
  std::vector<Blocks> lots;
  for (int i = 0; i < 6; ++i) lots.push_back(allocated(64, kBytes));
  const Blocks last = allocated(40, kBytes);
  for (const int who : {0, 1, 2})  // the borrower, a third thread, the owner
    EXPECT_DEATH(
        {
          std::atomic<bool> freed{false};
          std::thread([&] {
            const Blocks held = learn_to_borrow(lots, kBytes);
            free_all(last);
            if (who == 0) TestHeap::deallocate(last[7]);
            if (who == 1) in_a_thread([&] { TestHeap::deallocate(last[7]); });
            freed = true;
            while (freed) std::this_thread::yield();  // its lists stay its own
          }).detach();
          while (!freed) std::this_thread::yield();
          TestHeap::deallocate(last[7]);
          freed = false;
        },
        "double free in a block of 512 bytes");
  free_all(last);
  for (const Blocks& lot : lots) free_all(lot);
}

}  // namespace
}  // namespace loam::heap
