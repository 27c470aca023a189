// Which of the heaps that threads left behind the next thread takes.
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/platform/affinity.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

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

}  // namespace
}  // namespace loam::heap
