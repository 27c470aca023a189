// When a managed heap is full: it refuses only what does not fit beside its live objects, and says what would.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::Heap;
using gc::Local;
using gc::Mutator;
using Words = gc::ValueArray<std::uint64_t>;

// Runs ask() so many times; returns whether memory was refused.
template <class Ask>
bool is_refused(unsigned times, Ask ask) {
  try {
    for (; times != 0; --times) ask();
  } catch (const gc::OutOfMemory&) {
    return true;
  }
  return false;
}

// Other threads take what a collection has freed, and their collections are none of one's own. All that lives at a time
// are some short lists and either the large array or the logs, which fit. On two processors it takes many rounds until one of
// them comes between a collection and what it was made for.
TEST(FullHeap, ThreadsThatTakeAllOfItFromEachOtherAreNotRefused) {
  constexpr std::size_t kMost = std::size_t{166} << 10;
  for (unsigned round = 0; round < 40; ++round) {
    Heap heap(small_heap());
    std::atomic<unsigned> lists{0}, arrays{0}, logs{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 6; ++t)
      threads.emplace_back([&] {
        Mutator mutator(heap);
        lists += is_refused(400, [&] { make_list(mutator, 0, 20); }) ? 1 : 0;
      });
    threads.emplace_back([&] {
      Mutator mutator(heap);
      if (round % 2 == 0)
        arrays = is_refused(200, [&] { mutator.allocate_array<Words>(kMost / sizeof(std::uint64_t)); }) ? 1 : 0;
      else
        logs = is_refused(200,
                          [&] {
                            heap.charge_logs(mutator, kMost);
                            heap.discharge_logs(kMost);
                          })
                   ? 1
                   : 0;
    });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(lists + arrays + logs, 0u) << lists << " threads with lists, " << arrays << " with arrays, " << logs;
  }
}

// What the message names is enough, and it is more than the heap has.
template <class Program>
void expect_enough(gc::Settings settings, Program program) {
  std::size_t enough = 0;
  {
    Heap heap(settings);
    Mutator mutator(heap);
    try {
      program(heap, mutator);
      FAIL() << "it was not refused";
    } catch (const gc::OutOfMemory& full) {
      enough = full.enough_bytes;
      EXPECT_GT(enough, settings.memory_bytes);
      EXPECT_EQ(full.memory_bytes, settings.memory_bytes);
      const std::string text = full.what();
      EXPECT_NE(text.find("(set it to at least " + std::to_string(enough) + ")"), std::string::npos) << text;
    }
  }
  settings.memory_bytes = enough;
  Heap heap(settings);
  Mutator mutator(heap);
  EXPECT_NO_THROW(program(heap, mutator));
}

std::uint64_t cells_until_full(const gc::Settings& settings) {
  Heap heap(settings);
  Mutator mutator(heap);
  Local<Cell> list(mutator);
  for (std::uint64_t made = 0;; ++made) try {
      Cell* const cell = make_cell(mutator, made);
      cell->next.init(list.get());
      list = cell;
    } catch (const gc::OutOfMemory&) {
      return made;
    }
}

TEST(FullHeap, WhatItAsksForIsEnough) {
  for (const std::size_t nursery : {std::size_t{0}, std::size_t{32} << 10})
    for (const std::size_t memory : {std::size_t{256} << 10, std::size_t{1} << 20}) {
      const gc::Settings settings{.memory_bytes = memory, .nursery_bytes = nursery, .buffer_bytes = 4096};
      const std::uint64_t one_too_many = cells_until_full(settings) + 1;
      expect_enough(settings, [&](Heap&, Mutator& mutator) { make_list(mutator, 0, one_too_many); });
      expect_enough(settings, [&](Heap&, Mutator& mutator) {
        Local<Cell> list(mutator, make_list(mutator, 0, memory / 8 / sizeof(Cell)));
        Local<Words> large(mutator, mutator.allocate_array<Words>(memory / 4 / sizeof(std::uint64_t)));
        mutator.allocate_array<Words>(memory / 2 / sizeof(std::uint64_t));
      });
      expect_enough(settings, [&](Heap& heap, Mutator& mutator) {
        Local<Cell> list(mutator, make_list(mutator, 0, memory / 8 / sizeof(Cell)));
        heap.charge_logs(mutator, memory);
        heap.discharge_logs(memory);
      });
    }
}

TEST(FullHeap, RefusesAfterFullCollectionsOfItsOwnAndServesAgain) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  make_list(mutator, 0, 100);
  EXPECT_THROW(mutator.allocate_array<Words>(1 << 20), gc::OutOfMemory);
  EXPECT_EQ(heap.statistics().full, 2u) << "one, and one that would have removed duplicates from logs";
  EXPECT_EQ(heap.live_bytes(), 0u);
  EXPECT_EQ(numbers_of(mutator, make_list(mutator, 0, 100)), counted(0, 100));
}

// Lengths whose bytes have no 64 bits, or whose sum with anything else has none.
TEST(FullHeap, SizesThatOverflowAreRefused) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t length : {(std::size_t{1} << 61) + 1, kMost / 8, kMost / 8 - 3, kMost, kMost / 2,
                                   std::size_t{1} << 60, gc::kMemoryMost, gc::kMemoryMost / 8 - 3}) {
    EXPECT_THROW(mutator.allocate_array<Words>(length), gc::OutOfMemory) << length;
    EXPECT_THROW(mutator.allocate_array<gc::RefArray<Cell>>(length), gc::OutOfMemory) << length;
    EXPECT_THROW(heap.charge_logs(mutator, length), gc::OutOfMemory) << length;
  }
  for (const std::size_t length : {kMost, kMost - 30, kMost - 24, gc::kMemoryMost})
    EXPECT_THROW(mutator.allocate_array<gc::ValueArray<std::uint8_t>>(length), gc::OutOfMemory) << length;
  EXPECT_EQ(heap.log_bytes(), 0u);
  EXPECT_EQ(heap.live_bytes(), 0u);
  try {
    mutator.allocate_array<Words>((std::size_t{1} << 61) + 1);
  } catch (const gc::OutOfMemory& full) {
    EXPECT_EQ(full.requested_bytes, kMost);
    EXPECT_STREQ(full.what(),
                 "no managed heap has room for 18446744073709551615 bytes: memory_bytes is at most 70368744177664");
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Heap({.memory_bytes = gc::kMemoryMost + 1}), "memory_bytes=70368744177665: a heap has at most");
  EXPECT_DEATH(Heap({.memory_bytes = 1 << 20, .nursery_bytes = 8192}), "nursery_bytes=8192: at least 16384");
}

// Objects of every size below that of large ones fit into the smallest nursery.
TEST(FullHeap, EveryObjectFitsIntoASmallNursery) {
  Heap heap({.memory_bytes = std::size_t{128} << 10, .nursery_bytes = gc::kLargeBytes, .buffer_bytes = 1024});
  Mutator mutator(heap);
  for (std::size_t bytes = 64; bytes <= gc::kLargeBytes + 64; bytes += 8)
    ASSERT_NO_THROW(mutator.allocate_array<gc::ValueArray<std::uint8_t>>(bytes - sizeof(gc::Array))) << bytes;
}

}  // namespace
}  // namespace loam::tests
