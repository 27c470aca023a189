// A fork in the middle of a change that another thread makes under a lock of the heap: that thread is not in the child,
// and the lock is not released there by anybody.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/fork_amid.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;
using tests::kChildSeconds;

constexpr std::size_t kBytes = 300000;  // of a large block
constexpr std::size_t kOwnMapping = 70u << 20;

bool is_zero(const std::byte* block, std::size_t bytes) { return tests::holds(block, bytes, 0); }

// What a child does. returns its exit status: 0, or what is wrong
int use_heap() {
  if (TestHeap::verify() != nullptr) return 6;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::byte*> blocks;
    for (const std::size_t bytes : {kBytes, kBytes, 3 * kBytes, std::size_t{24}, std::size_t{5000}, kOwnMapping}) {
      auto* const block = static_cast<std::byte*>(TestHeap::allocate_zeroed(bytes));
      if (block == nullptr) return 2;
      if (!is_zero(block, std::min(bytes, 3 * kBytes))) return 3;
      std::memset(block, 0xee, std::min(bytes, 3 * kBytes));
      blocks.push_back(block);
    }
    tests::free_all<TestHeap>(blocks);
  }
#ifndef LOAM_TSAN  // which starts no thread in the child of a process with threads
  tests::in_a_thread<TestHeap>([] { TestHeap::deallocate(TestHeap::allocate(100)); });
#endif
  TestHeap::trim();
  return TestHeap::verify() == nullptr ? 0 : 4;
}

constexpr auto fork_amid = tests::fork_amid<TestHeap>;

TEST(ForkMoments, ASpanIsBeingTaken) {
  LOAM_NEEDS_POINTS();
  TestHeap::deallocate(tests::filled<TestHeap>(kBytes, 0xff));
  EXPECT_EQ(fork_amid("heap.passing_units", [] { TestHeap::deallocate(TestHeap::allocate(kBytes)); }, use_heap), 0);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

// The end of a block that is made shorter; blocks that go leave no memory behind.
TEST(ForkMoments, ASpanIsBeingGivenBack) {
  LOAM_NEEDS_POINTS();
  std::byte* const block = tests::filled<TestHeap>(kBytes, 0xff);
  EXPECT_EQ(fork_amid(
                "heap.passing_units", [block] { TestHeap::reallocate(block, kBytes / 3); }, use_heap),
            0)
      << "what was in use is not zero";
  TestHeap::deallocate(block);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST(ForkMoments, ABlockGrowsInPlace) {
  LOAM_NEEDS_POINTS();
  std::byte* const longer = tests::filled<TestHeap>(3 * kBytes, 0xff);
  auto* const block = static_cast<std::byte*>(TestHeap::reallocate(longer, kBytes));
  void* grown = nullptr;
  EXPECT_EQ(fork_amid(
                "heap.passing_units", [&] { grown = TestHeap::reallocate(block, 2 * kBytes); },
                [block] {
                  TestHeap::deallocate(block);
                  return use_heap();
                }),
            0);
  EXPECT_EQ(grown, block);
  TestHeap::deallocate(grown);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST(ForkMoments, AMappingIsBeingMade) {
  LOAM_NEEDS_POINTS();
  EXPECT_EQ(
      fork_amid("heap.taking_descriptor", [] { TestHeap::deallocate(TestHeap::allocate(kOwnMapping)); }, use_heap), 0);
}

TEST(ForkMoments, AThreadIsGettingItsHeap) {
  LOAM_NEEDS_POINTS();
  std::thread([] {
    EXPECT_EQ(fork_amid("heap.attached", [] { TestHeap::deallocate(TestHeap::allocate(100)); }, use_heap), 0);
    TestHeap::thread_exit();
  }).join();
}

// A heap that nobody has, into which another thread was taking blocks.
TEST(ForkMoments, AHeapIsBeingTended) {
  LOAM_NEEDS_POINTS();
  TestHeap::deallocate(TestHeap::allocate(100));  // this thread has a heap of its own
  std::vector<std::byte*> blocks;
  tests::in_a_thread<TestHeap>([&] { blocks = tests::filled_blocks<TestHeap>(64, 700, 3); });
  const std::uint64_t idle = TestHeap::statistics().heaps_idle;
  const auto in_child = [idle] { return TestHeap::statistics().heaps_idle == idle - 1 ? use_heap() : 5; };
  EXPECT_EQ(fork_amid(
                "heap.taken", [&] { tests::free_all<TestHeap>(blocks); }, in_child),
            0)
      << "the heap may be half changed: nobody takes it";
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

// As in a signal handler: the forking thread is itself in the middle of the change, and goes on with it in the child.
TEST(ForkMoments, TheForkingThreadGoesOnWithItsChange) {
#ifdef LOAM_CHECKED
  static pid_t child;
  for (const char* const point : {"heap.passing_units", "heap.taking_descriptor"}) {
    static const char* wanted;
    wanted = point;
    child = -1;
    base::point_hook = [](const char* name) {
      if (std::string_view(name) != wanted || child >= 0) return;
      child = fork();
      if (child != 0) return;
      signal(SIGALRM, SIG_DFL);
      alarm(kChildSeconds);
      TestHeap::after_fork_in_child();
    };
    std::byte* const block = tests::filled<TestHeap>(kBytes, 0xff);
    TestHeap::deallocate(block);
    TestHeap::deallocate(TestHeap::allocate(kOwnMapping));
    base::point_hook = nullptr;
    if (child == 0) _exit(use_heap());
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child) << point;
    EXPECT_EQ(status, 0) << point;
  }
#endif
}

}  // namespace
}  // namespace loam::heap
