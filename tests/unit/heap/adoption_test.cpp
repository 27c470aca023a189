// Which of the heaps that threads left behind the next thread takes.
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;

// Runs a thread on a processor to its end. returns what the page map says of its 64-byte blocks, the same for one heap;
// 0 if it may not run there
template <class Body>
PageMap::Word heap_of_a_thread_on(unsigned cpu, Body meanwhile) {
  PageMap::Word word = 0;
  tests::in_a_thread<TestHeap>([&] {
    if (!platform::pin_this_thread(cpu)) return;
    std::byte* const block = tests::filled<TestHeap>(64, 1);
    word = PageMap::at(unit_of(block));
    meanwhile();
    TestHeap::deallocate(block);
  });
  return word;
}
PageMap::Word heap_of_a_thread_on(unsigned cpu) {
  return heap_of_a_thread_on(cpu, [] {});
}

TEST(Adoption, AThreadTakesTheHeapThatWasLeftLastOnItsProcessor) {
  std::array<unsigned, 2> cpus{};
  if (platform::allowed_cpus(cpus) < 2) GTEST_SKIP() << "one processor";
  PageMap::Word there = 0;
  const PageMap::Word here = heap_of_a_thread_on(cpus[0], [&] { there = heap_of_a_thread_on(cpus[1]); });
  ASSERT_NE(here, 0u);
  ASSERT_NE(there, 0u);
  ASSERT_NE(here, there) << "two threads at a time have two heaps";
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(heap_of_a_thread_on(cpus[0]), here);
    EXPECT_EQ(heap_of_a_thread_on(cpus[0]), here) << "though it was left before as well";
    EXPECT_EQ(heap_of_a_thread_on(cpus[1]), there);
  }
  EXPECT_EQ(TestHeap::statistics().heaps_idle, 2u);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TEST(Adoption, AThreadTakesTheHeapOfAnotherProcessorRatherThanANewOne) {
  std::array<unsigned, 2> cpus{};
  if (platform::allowed_cpus(cpus) < 2) GTEST_SKIP() << "one processor";
  const PageMap::Word last = heap_of_a_thread_on(cpus[0], [&] { heap_of_a_thread_on(cpus[0]); });
  ASSERT_NE(last, 0u);
  const std::uint64_t idle = TestHeap::statistics().heaps_idle;
  EXPECT_EQ(heap_of_a_thread_on(cpus[1]), last) << "both were left on the other processor, this one later";
  EXPECT_EQ(TestHeap::statistics().heaps_idle, idle);
}

// ---- heaps that nobody handed over

// A thread that ends as one does after the last round of destructors. returns the word of its 64-byte blocks
PageMap::Word heap_of_a_thread_that_leaves_it() {
  PageMap::Word word = 0;
  unsigned number = 0;
  std::thread([&] {
    std::byte* const block = tests::filled<TestHeap>(64, 2);
    word = PageMap::at(unit_of(block));
    TestHeap::deallocate(block);
    number = platform::thread_id();
  }).join();
  while (platform::thread_exists(number)) std::this_thread::yield();  // the kernel is not done with it yet
  return word;
}

// Makes threads that hold a heap each until no idle one is left. end(): lets them go
class Holders {
 public:
  void take_all_idle_heaps() {
    while (TestHeap::statistics().heaps_idle != 0) {
      std::atomic<bool> has{false};
      threads_.emplace_back([this, &has] {
        tests::filled<TestHeap>(64, 3);
        has = true;
        while (!end_) std::this_thread::yield();
        TestHeap::thread_exit();
      });
      while (!has) std::this_thread::yield();
    }
  }
  void end() {
    end_ = true;
    for (auto& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<bool> end_{false};
};

TEST(Adoption, AHeapWhoseThreadIsGoneServesTheNextThread) {
  TestHeap::deallocate(TestHeap::allocate(1));
  Holders holders;
  holders.take_all_idle_heaps();
  const std::uint64_t in_use = TestHeap::statistics().heaps_in_use;
  const PageMap::Word left = heap_of_a_thread_that_leaves_it();
  EXPECT_EQ(TestHeap::statistics().heaps_in_use, in_use + 1);
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(heap_of_a_thread_that_leaves_it(), left) << "that of a living thread, or a new one, in round " << round;
    EXPECT_EQ(TestHeap::statistics().heaps_in_use, in_use + 1) << round;
  }
  tests::in_a_thread<TestHeap>([&] { EXPECT_EQ(PageMap::at(unit_of(tests::filled<TestHeap>(64, 4))), left); });
  EXPECT_EQ(TestHeap::statistics().heaps_in_use, in_use);
  holders.end();
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

// A child that the kernel makes without our handler: its first thread goes on with a heap that was attached under
// another number.
TEST(Adoption, AHeapThatWasAttachedInAnotherProcessIsLeftAlone) {
  std::byte* const kept = tests::filled<TestHeap>(64, 5);
  const PageMap::Word own = PageMap::at(unit_of(kept));
  const pid_t child = _Fork();
  if (child == 0) {
    alarm(30);
    bool apart = true;
    for (int i = 0; i < 40; ++i)
      std::thread([&] { apart = apart && PageMap::at(unit_of(tests::filled<TestHeap>(64, 6))) != own; }).join();
    _exit(apart && tests::holds(kept, 64, 5) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  TestHeap::deallocate(kept);
}

TEST(Adoption, AfterAForkTheHeapOfTheOnlyThreadIsItsOwn) {
  std::byte* const kept = tests::filled<TestHeap>(64, 7);
  const PageMap::Word own = PageMap::at(unit_of(kept));
  EXPECT_TRUE(tests::in_fork([&] {
    TestHeap::after_fork_in_child();
    bool apart = true;
    for (int i = 0; i < 40; ++i)
      std::thread([&] { apart = apart && PageMap::at(unit_of(tests::filled<TestHeap>(64, 8))) != own; }).join();
    return apart && tests::holds(kept, 64, 7);
  }));
  TestHeap::deallocate(kept);
}

// ---- threads whose end has begun

TEST(Ending, AFreeGetsNoHeapAndAnAllocationGetsOneThatIsHandedOver) {
  const auto of_main = tests::filled_blocks<TestHeap>(100, 64, 9);
  const std::uint64_t in_use = TestHeap::statistics().heaps_in_use;
  const auto in_use_now = [] { return TestHeap::statistics().heaps_in_use; };
  std::thread([&] {
    std::byte* const own = tests::filled<TestHeap>(64, 10);
    EXPECT_EQ(in_use_now(), in_use + 1);
    TestHeap::thread_exit();
    TestHeap::deallocate(own);
    tests::free_all<TestHeap>(of_main);
    EXPECT_EQ(in_use_now(), in_use) << "a free got a heap";
    std::byte* const later = tests::filled<TestHeap>(64, 11);
    EXPECT_EQ(in_use_now(), in_use + 1);
    TestHeap::thread_exit(true);
    EXPECT_EQ(in_use_now(), in_use);
    EXPECT_TRUE(tests::holds(later, 64, 11));
    TestHeap::deallocate(later);
    // The last round of destructors is over.
    for (int i = 0; i < 100; ++i) {
      std::byte* const last = tests::filled<TestHeap>(100, 12);
      auto* const aligned = static_cast<std::byte*>(TestHeap::allocate_aligned(1024, 3000));
      std::byte* const large = tests::filled<TestHeap>(300'000, 13);
      EXPECT_EQ(in_use_now(), in_use);
      EXPECT_FALSE(TestHeap::attach());
      EXPECT_TRUE(tests::holds(last, 100, 12));
      TestHeap::deallocate(last);
      TestHeap::deallocate(aligned);
      TestHeap::deallocate(large);
    }
    EXPECT_EQ(in_use_now(), in_use);
  }).join();
  EXPECT_EQ(TestHeap::statistics().heaps_in_use, in_use);
  TestHeap::trim();
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

}  // namespace
}  // namespace loam::heap
