// Every request of the heap for pages is refused once, alone and with those that follow: the call that needed it gives
// nullptr and nothing else happens. No block is harmed, invariants hold, nothing is lost, and what had been handed out
// serves again without any new page.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/checked_blocks.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/harness/refusing_pages.hpp"
#include "tests/harness/watchdog.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using tests::RefusingPages;

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults, RefusingPages>>;
using Blocks = tests::CheckedBlocks<TestHeap>;

constexpr bool kFew = tests::kInstrumented;  // of what takes long
constexpr std::size_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::size_t kOwnMapping = 70 * kMiB;  // longer than areas serve

constexpr auto verified = tests::verified<TestHeap>;

// What a script came to: its blocks, and how many calls were refused one.
struct Held {
  Blocks blocks;
  unsigned failed = 0;

  void note(bool served) { failed += served ? 0 : 1; }
};

// ---- scripts: each holds a few MiB at its end

void small_blocks(Held& held) {
  base::Random random(1);
  for (int i = 0; i < 3000; ++i) held.note(held.blocks.allocate(1 + random.below(i % 8 == 0 ? 20000 : 1500)));
}

void zeroed_blocks(Held& held) {
  base::Random random(2);
  for (int i = 0; i < 600; ++i) held.note(held.blocks.allocate_zeroed(1 + random.below(i % 16 == 0 ? 200000 : 3000)));
}

void aligned_blocks(Held& held) {
  base::Random random(3);
  for (int i = 0; i < 400; ++i) {
    const std::size_t alignment = std::size_t{32} << random.below(14);
    held.note(held.blocks.allocate_aligned(alignment, 1 + random.below(40000)));
  }
}

void large_blocks(Held& held) {
  base::Random random(4);
  for (int i = 0; i < 40; ++i) held.note(held.blocks.allocate(40000 + random.below(500000)));
}

void own_mappings(Held& held) {
  for (std::size_t i = 0; i < 4; ++i) held.note(held.blocks.allocate(kOwnMapping + i * kMiB));
  held.note(held.blocks.allocate_aligned(128 * kMiB, 20 * kMiB));
  if (held.blocks.size() > 0) held.note(held.blocks.reallocate(0, 2 * kOwnMapping));
}

void reallocated_blocks(Held& held) {
  const std::size_t before = held.blocks.size();
  for (int i = 0; i < 12; ++i) held.note(held.blocks.allocate(100));
  for (const std::size_t bytes : {1000u, 10000u, 100000u, 400000u, 50000u, 900000u, 2000000u, 300000u, 600000u})
    for (std::size_t i = before; i < held.blocks.size(); i += 1 + bytes / 200000)
      held.note(held.blocks.reallocate(i, bytes));
}

// Threads that come, one after the other, fill a part, free what others made, and go.
void threads(Held& held) {
  for (unsigned t = 0; t < 4; ++t)
    std::thread([&held, t] {
      base::Random random(5, t);
      Blocks own;
      for (int i = 0; i < 800; ++i) held.note(own.allocate(1 + random.below(i % 16 == 0 ? 30000 : 1000)));
      for (int i = 0; i < 300 && held.blocks.size() > 0; ++i)
        held.blocks.free(random.below(static_cast<std::uint32_t>(held.blocks.size())));
      held.blocks.take(own);
      TestHeap::thread_exit();
    }).join();
}

// Threads that are all there at once: each needs a heap of its own. They take turns, so that requests keep their order.
void threads_at_once(Held& held) {
  constexpr unsigned kThreads = 4;
  std::atomic<unsigned> turn{0};
  std::vector<std::thread> all;
  std::vector<Held> parts(kThreads);
  for (unsigned t = 0; t < kThreads; ++t)
    all.emplace_back([&, t] {
      for (unsigned round = 0; round < 2; ++round) {
        while (turn.load() != round * kThreads + t) platform::yield();
        base::Random random(6 + round, t);
        for (int i = 0; i < 500; ++i) parts[t].note(parts[t].blocks.allocate(1 + random.below(2000)));
        Blocks& others = parts[(t + 1) % kThreads].blocks;
        for (int i = 0; i < 100 && others.size() > 0; ++i)
          others.free(random.below(static_cast<std::uint32_t>(others.size())));
        ++turn;
      }
      while (turn.load() != 2 * kThreads + t) platform::yield();
      TestHeap::thread_exit();
      ++turn;
    });
  for (auto& thread : all) thread.join();
  for (Held& part : parts) {
    held.blocks.take(part.blocks);
    held.failed += part.failed;
  }
}

void everything(Held& held) {
  for (const auto script : {threads, small_blocks, own_mappings, aligned_blocks, large_blocks, reallocated_blocks})
    script(held);
}

struct Script {
  const char* name;
  void (*run)(Held&);
};
constexpr Script kScripts[] = {
    {"small_blocks", small_blocks}, {"zeroed_blocks", zeroed_blocks},     {"aligned_blocks", aligned_blocks},
    {"large_blocks", large_blocks}, {"own_mappings", own_mappings},       {"reallocated_blocks", reallocated_blocks},
    {"threads", threads},           {"threads_at_once", threads_at_once}, {"everything", everything},
};

// ---- what must hold

// Bytes that blocks of this size come to, until there is no more.
std::size_t usable_again(std::size_t bytes, std::size_t enough) {
  std::size_t sum = 0;
  std::vector<void*> blocks;
  for (void* block; sum < enough && (block = TestHeap::allocate(bytes)) != nullptr; sum += bytes)
    blocks.push_back(block);
  for (void* const block : blocks) TestHeap::deallocate(block);
  return sum;
}

void expect_nothing_is_lost(Held& held) {
  EXPECT_STREQ(held.blocks.wrong(), nullptr);
  EXPECT_EQ(verified(), "");
  const std::size_t had = held.blocks.bytes();
  held.blocks.free_all();
  EXPECT_EQ(verified(), "");
  // The counting thread needs a heap.
  RefusingPages::serve_all();
  TestHeap::deallocate(TestHeap::allocate(1));
  RefusingPages::refuse(0, RefusingPages::kAllThatFollow);
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{5000}, std::size_t{250} * kKiB}) {
    const std::size_t again = usable_again(bytes, had);
    EXPECT_GE(again, had / 10 * 9) << "in blocks of " << bytes;
    EXPECT_EQ(verified(), "");
  }
  RefusingPages::serve_all();
  TestHeap::trim();
  TestHeap::thread_exit();
  EXPECT_EQ(TestHeap::statistics().committed_bytes, 0u) << "nothing is in use, and all of it lies in the store";
  EXPECT_EQ(TestHeap::statistics().large_blocks, 0u);
  EXPECT_EQ(TestHeap::statistics().large_bytes, 0u);
}

// Runs the script with these requests refused. returns how many were; those of the calls it takes must fail
std::int64_t run_refused(const Script& script, std::int64_t first, std::int64_t refused) {
  Held held;
  RefusingPages::refuse(first, refused);
  script.run(held);
  const std::int64_t refusals = RefusingPages::refusals();
  RefusingPages::serve_all();
  if (refusals == 0) {
    EXPECT_EQ(held.failed, 0u);
  }
  expect_nothing_is_lost(held);
  return refusals;
}

// A heap that hangs is ended by the alarm.
constexpr unsigned kChildSeconds = 120;

// Runs `work` in a child. returns what it returns
template <class Work>
std::int64_t number_from_child(Work work) {
  int told[2];
  if (pipe(told) != 0) LOAM_FATAL("no pipe");
  tests::in_child([&] {
    alarm(kChildSeconds);
    const std::int64_t found = work();
    EXPECT_EQ(write(told[1], &found, sizeof found), static_cast<ssize_t>(sizeof found));
  });
  close(told[1]);
  std::int64_t found = -1;
  EXPECT_EQ(read(told[0], &found, sizeof found), static_cast<ssize_t>(sizeof found)) << "the child ended early";
  close(told[0]);
  return found;
}

class Refusals : public testing::TestWithParam<Script> {};
// The last one is all of them in a row.
INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::ValuesIn(std::begin(kScripts), std::end(kScripts) - (kFew ? 1 : 0)),
                         [](const auto& found) { return std::string(found.param.name); });

TEST_P(Refusals, EachRequestMayBeRefusedAloneOrWithThoseThatFollow) {
  tests::may_take(60);
  const Script& script = GetParam();
  std::int64_t requests = 0;
  for (const std::int64_t refused : {std::int64_t{1}, std::int64_t{3}, RefusingPages::kAllThatFollow}) {
    if (kFew && refused == 3) continue;
    bool reached = true;
    for (std::int64_t n = 0; reached; ++n) {
      ASSERT_LT(n, 1000) << "requests without end";
      SCOPED_TRACE(std::to_string(refused) + " refused from request " + std::to_string(n));
      reached = number_from_child([&] { return run_refused(script, n, refused); }) > 0;
      if (HasFailure()) return;
      requests += reached ? 1 : 0;
    }
  }
  RecordProperty("requests_refused_first", static_cast<int>(requests));
  EXPECT_GE(requests, 8) << "too few requests to prove anything";
}

// Compared with a process to which nothing was ever refused.
TEST_P(Refusals, WhatIsRefusedAgainAndAgainIsNotLostEither) {
  constexpr int kTimes = 15;  // more refused mappings than one page of descriptors holds
  const auto bytes_out_after = [](std::int64_t n, int times) {
    return number_from_child([n, times] {
      for (int i = 0; i < times; ++i) run_refused(GetParam(), n, i == 0 ? 1 : RefusingPages::kAllThatFollow);
      run_refused(GetParam(), 0, 0);
      return RefusingPages::bytes_out();
    });
  };
  const std::int64_t expected = bytes_out_after(0, 0);
  EXPECT_GT(expected, 0);
  for (std::int64_t n = 0; n < (kFew ? 2 : 4); ++n)
    EXPECT_LE(bytes_out_after(n, kTimes), expected) << "metadata or mappings that nobody has, from request " << n;
}

// No memory is left beside what one size was given: another size gets it.
TEST(Refusals, WhatOneSizeHadServesAnother) {
  constexpr std::size_t kSizes[] = {100, 5000, 20000, 250 * kKiB};
  for (const std::size_t first : kSizes)
    for (const std::size_t then : kSizes) {
      if (kFew && first == then) continue;
      tests::in_child([first, then] {
        alarm(kChildSeconds);
        TestHeap::deallocate(TestHeap::allocate(1));  // its thread has a heap
        RefusingPages::refuse(4, RefusingPages::kAllThatFollow);
        Blocks blocks;
        while (blocks.allocate(first)) continue;
        const std::size_t had = blocks.bytes();
        EXPECT_GE(had, RefusingPages::kAreaBytesMax);
        EXPECT_STREQ(blocks.wrong(), nullptr);
        blocks.free_all();
        EXPECT_GE(usable_again(then, had), had / 10 * 9) << "blocks of " << first << ", then of " << then;
        EXPECT_EQ(verified(), "");
      });
    }
}

TEST(Refusals, TheMapOfPagesMayBeRefusedToo) {
  for (std::int64_t n = 0; n < 2; ++n)
    tests::in_child([n] {
      alarm(kChildSeconds);
      platform::fail_map_after(n);
      Held held;
      small_blocks(held);
      own_mappings(held);
      platform::fail_map_after(-1);
      expect_nothing_is_lost(held);
    });
}

// Threads that allocate, free their own and others' blocks, come and go, while the system gives and refuses in turn.
TEST(Refusals, ThreadsGoOnBesideRefusals) {
  tests::in_child([] {
    alarm(kChildSeconds);
    constexpr unsigned kThreads = 4, kRounds = 12;
    Held held;
    for (unsigned round = 0; round < kRounds; ++round) {
      std::vector<Held> parts(kThreads);
      std::atomic<void*> places[64] = {};
      std::vector<std::thread> all;
      RefusingPages::refuse(round, round % 3 == 0 ? RefusingPages::kAllThatFollow : round * 5);
      for (unsigned t = 0; t < kThreads; ++t)
        all.emplace_back([&, t] {
          base::Random random(7 + round, t);
          for (int i = 0; i < 1500; ++i) {
            const std::size_t bytes = 1 + random.below(i % 32 == 0 ? 200000 : 3000);
            if (random.below(2) == 0)
              parts[t].note(parts[t].blocks.allocate(bytes));
            else
              TestHeap::deallocate(places[random.below(64)].exchange(TestHeap::allocate(bytes)));
            if (parts[t].blocks.size() > 300) parts[t].blocks.free(random.below(300));
          }
          TestHeap::thread_exit();
        });
      for (auto& thread : all) thread.join();
      for (auto& place : places) TestHeap::deallocate(place.load());
      for (Held& part : parts) held.blocks.take(part.blocks);
      EXPECT_STREQ(held.blocks.wrong(), nullptr);
      EXPECT_EQ(verified(), "");
      while (held.blocks.size() > 500) held.blocks.free(held.blocks.size() / 2);
    }
    RefusingPages::serve_all();
    expect_nothing_is_lost(held);
  });
}

}  // namespace
}  // namespace loam::heap
