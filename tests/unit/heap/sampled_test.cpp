// Samples: blocks between guard pages, how they come, what they find, in an open heap and in a guarded one.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace loam::heap {
namespace {

template <bool guarded>
struct Mode {
  static bool on() noexcept { return guarded; }
  static std::uint64_t sample_gap_ns() noexcept { return 1; }
  static CallStack stack() noexcept {
    CallStack stack{};
    stack.thread = platform::thread_id();
    return stack;
  }
  [[noreturn]] static void report(Fault fault, const void*, const SampledBlock& block) noexcept {
    tests::DyingFaults::report(fault, nullptr, block.bytes, 0);
  }
};
template <bool guarded>
using HeapOf = Heap<LoamWithSamplesComposition<tests::NoThreadsHook, tests::DyingFaults, Mode<guarded>>>;

struct OpenMode {
  using TestHeap = HeapOf<false>;
  using Samples = LoamWithSamplesComposition<tests::NoThreadsHook, tests::DyingFaults, Mode<false>>::Samples;
};
struct GuardedMode {
  using TestHeap = HeapOf<true>;
  using Samples = LoamWithSamplesComposition<tests::NoThreadsHook, tests::DyingFaults, Mode<true>>::Samples;
};

// Where the page of a sample begins and ends, counted from its block.
std::pair<std::ptrdiff_t, std::ptrdiff_t> page_around(const std::byte* block) {
  const auto page = static_cast<std::ptrdiff_t>(platform::page_bytes());
  const std::ptrdiff_t before = static_cast<std::ptrdiff_t>(address_of(block)) & (page - 1);
  return {-before, page - before};
}

template <class M>
struct SampledTest : testing::Test {
  using TestHeap = typename M::TestHeap;
  using Samples = typename M::Samples;

  static void SetUpTestSuite() { TestHeap::begin_samples(); }

  // A block of that length that is a sample: the blocks that come before it are freed. nullptr: there was none.
  static std::byte* sample(std::size_t bytes, int tries = 2'000'000) {
    std::vector<void*> others;
    std::byte* found = nullptr;
    for (int i = 0; i < tries && found == nullptr; ++i) {
      void* const block = TestHeap::allocate(bytes);
      if (Samples::covers(block))
        found = static_cast<std::byte*>(block);
      else if (i % 2 == 0)
        TestHeap::deallocate(block);
      else
        others.push_back(block);
    }
    for (void* const block : others) TestHeap::deallocate(block);
    return found;
  }
};
struct Names {
  template <class M>
  static std::string GetName(int) {
    return std::is_same_v<M, OpenMode> ? "Open" : "Guarded";
  }
};
using Modes = testing::Types<OpenMode, GuardedMode>;
TYPED_TEST_SUITE(SampledTest, Modes, Names);
template <class M>
using SampledDeathTest = SampledTest<M>;
TYPED_TEST_SUITE(SampledDeathTest, Modes, Names);

TYPED_TEST(SampledTest, ASampleServesAsAnyBlock) {
  using TestHeap = typename TestFixture::TestHeap;
  for (const std::size_t bytes : {1, 8, 24, 100, 1000, 4000, 4096}) {
    std::byte* const block = TestFixture::sample(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_EQ(address_of(block) % kBlockAlignment, 0u);
    EXPECT_EQ(TestHeap::usable_bytes(block), bytes);
    EXPECT_EQ(block[0], std::byte{0});
    std::fill(block, block + bytes, std::byte{7});
    TestHeap::deallocate_sized(block, bytes);
  }
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TYPED_TEST(SampledTest, ItKeepsItsContentsWhenItIsResized) {
  using TestHeap = typename TestFixture::TestHeap;
  for (const std::size_t bytes : {80, 120, 3000, 100'000}) {
    std::byte* block = TestFixture::sample(100);
    ASSERT_NE(block, nullptr);
    std::fill(block, block + 100, std::byte{9});
    block = static_cast<std::byte*>(TestHeap::reallocate(block, bytes));
    EXPECT_TRUE(tests::holds(block, std::min<std::size_t>(bytes, 100), 9)) << bytes;
    EXPECT_GE(TestHeap::usable_bytes(block), bytes);
    std::fill(block, block + bytes, std::byte{1});
    TestHeap::deallocate(block);
  }
}

// What cannot be had leaves the sample as it is.
TYPED_TEST(SampledTest, AResizeThatFailsLeavesItWhereItIs) {
  using TestHeap = typename TestFixture::TestHeap;
  std::byte* const block = TestFixture::sample(100);
  ASSERT_NE(block, nullptr);
  std::fill(block, block + 100, std::byte{9});
  EXPECT_EQ(TestHeap::reallocate(block, std::size_t{1} << 62), nullptr);
  EXPECT_EQ(TestHeap::usable_bytes(block), 100u);
  EXPECT_TRUE(tests::holds(block, 100, 9));
  TestHeap::deallocate(block);
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TYPED_TEST(SampledTest, LongBlocksAreNone) { EXPECT_EQ(TestFixture::sample(4097, 20'000), nullptr); }

TYPED_TEST(SampledTest, WhenEverySlotIsHeldOtherBlocksServe) {
  using TestHeap = typename TestFixture::TestHeap;
  std::vector<std::byte*> held;
  while (held.size() < SampledBlocks<SystemPages>::kSlots) {
    std::byte* const block = TestFixture::sample(32);
    ASSERT_NE(block, nullptr) << held.size();
    held.push_back(block);
  }
  EXPECT_EQ(TestFixture::sample(32, 100'000), nullptr);
  TestHeap::deallocate(held.back());
  held.pop_back();
  std::byte* const again = TestFixture::sample(32);
  EXPECT_NE(again, nullptr);
  TestHeap::deallocate(again);
  tests::free_all<TestHeap>(held);
}

TYPED_TEST(SampledTest, AnotherThreadMayFreeItAndThreadsMayEndBeforeTheyTakeOne) {
  using TestHeap = typename TestFixture::TestHeap;
  std::byte* const block = TestFixture::sample(40);
  ASSERT_NE(block, nullptr);
  for (int t = 0; t < 50; ++t)
    tests::in_a_thread<TestHeap>([t] {
      auto blocks = tests::filled_blocks<TestHeap>(static_cast<std::size_t>(200 + 37 * t), 64, 1);
      tests::free_all<TestHeap>(blocks);
    });
  tests::in_a_thread<TestHeap>([block] { TestHeap::deallocate(block); });
  EXPECT_EQ(tests::verified<TestHeap>(), "");
}

TYPED_TEST(SampledTest, AChildOfAForkTakesAndGivesSamples) {
  using TestHeap = typename TestFixture::TestHeap;
  std::byte* const block = TestFixture::sample(40);
  ASSERT_NE(block, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    TestHeap::after_fork_in_child();
    TestHeap::deallocate(block);
    std::byte* const own = TestFixture::sample(40);
    if (own != nullptr) TestHeap::deallocate(own);
    _exit(own != nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  TestHeap::deallocate(block);
}

TYPED_TEST(SampledDeathTest, WhatTheReleaseOfASampleFinds) {
  using TestHeap = typename TestFixture::TestHeap;
  std::byte* const block = TestFixture::sample(20);
  ASSERT_NE(block, nullptr);
  EXPECT_DEATH(TestHeap::deallocate(block + 1), "interior in a block of 20");
  EXPECT_DEATH(TestHeap::deallocate_sized(block, 21), "wrong size");
  EXPECT_DEATH(TestHeap::usable_bytes(block + 16), "interior");
  EXPECT_DEATH((block[20] = std::byte{1}, TestHeap::deallocate(block)), "write past end");
  EXPECT_DEATH((block[20] = std::byte{1}, TestHeap::check_what_waits()), "write past end");
  EXPECT_DEATH((TestHeap::deallocate(block), TestHeap::deallocate(block)), "double free");
  EXPECT_DEATH((TestHeap::deallocate(block), TestHeap::reallocate(block, 50)), "double free");
  TestHeap::deallocate(block);
}

TYPED_TEST(SampledDeathTest, AnAccessBeyondItsPageOrAfterItsFreeEndsTheProcess) {
  using TestHeap = typename TestFixture::TestHeap;
  std::byte* const block = TestFixture::sample(4096);
  ASSERT_NE(block, nullptr);
  volatile std::byte* const seen = block;
  const auto dies = [](int status) { return status != 0; };  // by SIGSEGV; a sanitizer makes an exit of that
  const auto [begin, end] = page_around(block);
  EXPECT_EXIT(seen[end] = std::byte{1}, dies, "");
  EXPECT_EXIT(seen[begin - 1] = std::byte{1}, dies, "");
  EXPECT_EXIT(
      {
        TestHeap::deallocate(block);
        seen[0] = std::byte{1};
      },
      dies, "");
  TestHeap::deallocate(block);
}

// Its end is where the last resize has put it.
TYPED_TEST(SampledDeathTest, AWritePastTheEndOfASampleThatWasShortenedIsFound) {
  using TestHeap = typename TestFixture::TestHeap;
  std::byte* block = TestFixture::sample(100);
  ASSERT_NE(block, nullptr);
  std::fill(block, block + 100, std::byte{9});
  block = static_cast<std::byte*>(TestHeap::reallocate(block, 80));
  EXPECT_DEATH((block[80] = std::byte{1}, TestHeap::deallocate(block)), "write past end");
  block = static_cast<std::byte*>(TestHeap::reallocate(block, 79));
  EXPECT_DEATH((block[79] = std::byte{1}, TestHeap::deallocate(block)), "write past end");
  TestHeap::deallocate(block);
}

// Runs work() in a thread of its own that has allocated n blocks of 16 KiB and freed them, for each n; then, when it has
// ended, behind(). For some n the n-th block made a sample due.
template <class TestHeap, class Work, class Behind>
void after_each_number_of_blocks(Work work, Behind behind) {
  for (std::size_t n = 1; n <= 300; ++n) {
    tests::in_a_thread<TestHeap>([n, &work] {
      std::vector<std::byte*> blocks(n);
      for (auto& block : blocks) block = static_cast<std::byte*>(TestHeap::allocate(16'000));
      tests::free_all<TestHeap>(blocks);
      work();
    });
    behind();
  }
}

using OpenSampledTest = SampledTest<OpenMode>;

TEST_F(OpenSampledTest, AThreadThatEndsWhileASampleIsDueHandsItsHeapOver) {
  const auto before = TestHeap::statistics().heaps_in_use;
  // Before the next thread, which would find a heap that was left behind.
  after_each_number_of_blocks<TestHeap>([] {}, [before] { ASSERT_EQ(TestHeap::statistics().heaps_in_use, before); });
}

TEST_F(OpenSampledTest, AFreeWhileASampleIsDueDoesNotTakeIt) {
  int samples = 0;
  after_each_number_of_blocks<TestHeap>(
      [&samples] {
        void* const block = TestHeap::allocate(64);
        samples += Samples::covers(block) ? 1 : 0;
        TestHeap::deallocate(block);
      },
      [] {});
  EXPECT_GT(samples, 0);
}

TYPED_TEST(SampledTest, AnAddressBetweenTwoSamplesMeansTheNearerOne) {
  using TestHeap = typename TestFixture::TestHeap;
  using Samples = typename TestFixture::Samples;
  std::byte* const block = TestFixture::sample(4096);
  ASSERT_NE(block, nullptr);
  const auto [begin, end] = page_around(block);
  const std::ptrdiff_t half = (end - begin) / 2;
  for (const std::ptrdiff_t offset : {begin - half, begin - 1, begin, end - 1, end, end + half - 1})
    EXPECT_EQ(Samples::meant_by(block + offset)->start, block) << offset;
  int elsewhere = 0;
  EXPECT_EQ(Samples::meant_by(&elsewhere), nullptr);
  TestHeap::deallocate(block);
}

}  // namespace
}  // namespace loam::heap
