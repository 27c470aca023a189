// The managed heap: what lives stays and moves, what is dead goes, and a full heap is an error that can be handled.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;

TEST(ManagedHeap, AListSurvivesCollectionsAtEveryAllocation) {
  for (const bool full : {false, true}) {
    Heap heap(small_heap(1, full));
    Mutator mutator(heap);
    Local<Cell> list(mutator, make_list(mutator, 10, 50));
    const Cell* const before = list.get();
    EXPECT_EQ(numbers_of(mutator, list.get()), counted(10, 50));
    EXPECT_GE(heap.collections(), 50u);
    mutator.collect();
    EXPECT_NE(list.get(), before) << "a full collection moves what is old";
    EXPECT_EQ(numbers_of(mutator, list.get()), counted(10, 50));
  }
}

TEST(ManagedHeap, DeadObjectsGoAndTheOldGenerationShrinks) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  {
    Local<Cell> list(mutator, make_list(mutator, 0, 500));
    mutator.collect();
    EXPECT_GE(heap.live_bytes(), 500 * sizeof(Cell));
  }
  mutator.collect();
  EXPECT_EQ(heap.live_bytes(), 0u);
}

TEST(ManagedHeap, MinorCollectionsFindYoungObjectsThatOldOnesReferTo) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  Local<Cell> old(mutator, make_cell(mutator, 1));
  mutator.collect(false);
  ASSERT_FALSE(mutator.is_young(old.get()));
  mutator.write(old, &Cell::next, make_list(mutator, 2, 3));
  mutator.write(old, &Cell::other, old.get());
  churn(mutator, 2);
  EXPECT_EQ(numbers_of(mutator, old.get()), counted(1, 4));
  EXPECT_EQ(mutator.read(old, &Cell::other), old.get());
  EXPECT_GE(heap.statistics().minor, 2u);
}

TEST(ManagedHeap, ArraysOfReferencesAndValues) {
  Heap heap(small_heap(3));
  Mutator mutator(heap);
  Local<gc::RefArray<Cell>> cells(mutator, mutator.allocate_array<gc::RefArray<Cell>>(20));
  Local<gc::ValueArray<std::uint32_t>> words(mutator, mutator.allocate_array<gc::ValueArray<std::uint32_t>>(7));
  for (std::size_t i = 0; i < 20; ++i) {
    Cell* const cell = make_cell(mutator, i);
    mutator.store(cells.get(), cells->at<gc::Ref<Cell>>(i), cell);
  }
  for (std::size_t i = 0; i < 7; ++i) words->at<gc::Value<std::uint32_t>>(i).init(static_cast<std::uint32_t>(i * i));
  churn(mutator, 10);
  for (std::size_t i = 0; i < 20; ++i) {
    Local<Cell> cell(mutator, static_cast<Cell*>(cells->at<gc::Ref<Cell>>(i).slot().load()));
    EXPECT_EQ(mutator.read(cell, &Cell::number), i);
  }
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(words->at<gc::Value<std::uint32_t>>(i).slot().load(), i * i);
}

// The example of docs/managed-heap.md, with cells.
TEST(ManagedHeap, ArraysAreReadAndWrittenAsTheIntroductionShows) {
  Heap heap(small_heap(1));
  gc::Transactions transactions(heap, {});
  Mutator mutator(heap);
  gc::Transaction tx(transactions, mutator);
  Local<Cell> cell(mutator, make_cell(mutator, 3));
  Local<gc::RefArray<Cell>> cells(mutator, mutator.allocate_array<gc::RefArray<Cell>>(10));
  cells->at(0).init(cell.get());
  mutator.write_at(cells, 1, cell.get());
  cell = make_cell(mutator, 4);
  gc::atomically(tx, [&](auto& t) {
    t.write_at(cells, 9, cell);
    cell = t.read_at(cells, 1);
  });
  EXPECT_EQ(cell.get(), mutator.read_at(cells, 0));
  cell = mutator.read_at(cells, cells->length() - 1);
  EXPECT_EQ(mutator.read(cell, &Cell::number), 4u);
  Local<gc::ValueArray<int>> ages(mutator, mutator.allocate_array<gc::ValueArray<int>>(10));
  mutator.write_at(ages, 9, 42);
  churn(mutator, 1);
  EXPECT_EQ(mutator.read_at(ages, 9), 42);
}

TEST(ManagedHeap, LargeObjectsDoNotMoveAndAreSwept) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  Local<gc::RefArray<Cell>> large(mutator, mutator.allocate_array<gc::RefArray<Cell>>(3000));
  const auto* const before = large.get();
  mutator.store(large.get(), large->at<gc::Ref<Cell>>(2999), make_list(mutator, 5, 2));
  churn(mutator, 3);
  mutator.collect();
  EXPECT_EQ(large.get(), before);
  EXPECT_EQ(numbers_of(mutator, static_cast<Cell*>(large->at<gc::Ref<Cell>>(2999).slot().load())), counted(5, 2));
  const std::size_t live = heap.live_bytes();
  large = nullptr;
  mutator.collect();
  EXPECT_LT(heap.live_bytes() + 3000 * sizeof(void*), live + 1);
}

// Each pattern of dead and live ones, so that the one that takes the place of a dead one is dead or live.
TEST(ManagedHeap, LargeObjectsBehindDeadOnesAreSweptOrKept) {
  constexpr unsigned kObjects = 4;
  for (unsigned live = 0; live < 1U << kObjects; ++live) {
    Heap heap({.memory_bytes = std::size_t{2} << 20, .nursery_bytes = std::size_t{64} << 10});
    Mutator mutator(heap);
    Local<gc::RefArray<Cell>> a(mutator), b(mutator), c(mutator), d(mutator);
    Local<gc::RefArray<Cell>>* const all[kObjects] = {&a, &b, &c, &d};
    for (unsigned i = 0; i < kObjects; ++i) {
      *all[i] = mutator.allocate_array<gc::RefArray<Cell>>(3000);
      mutator.store(all[i]->get(), (*all[i])->at<gc::Ref<Cell>>(2999), make_list(mutator, i, 2));
    }
    for (unsigned i = 0; i < kObjects; ++i)
      if ((live >> i & 1) == 0) *all[i] = nullptr;
    for (unsigned round = 0; round < 3; ++round) {
      mutator.collect();
      churn(mutator, 1);
      unsigned count = 0;
      for (unsigned i = 0; i < kObjects; ++i) {
        if (!*all[i]) continue;
        ++count;
        auto* const last = static_cast<Cell*>((*all[i])->at<gc::Ref<Cell>>(2999).slot().load());
        EXPECT_EQ(numbers_of(mutator, last), counted(i, 2));
      }
      EXPECT_EQ(heap.live_bytes() / (std::size_t{3000} * sizeof(void*)), count) << "live: " << live;
    }
  }
}

TEST(ManagedHeap, CyclesAndSharedObjectsAreCopiedOnce) {
  Heap heap(small_heap(1, true));
  Mutator mutator(heap);
  Local<Cell> first(mutator, make_cell(mutator, 1)), second(mutator, make_cell(mutator, 2));
  mutator.write(first, &Cell::next, second.get());
  mutator.write(second, &Cell::next, first.get());
  mutator.write(first, &Cell::other, first.get());
  mutator.collect();
  EXPECT_EQ(mutator.read(first, &Cell::next), second.get());
  EXPECT_EQ(mutator.read(second, &Cell::next), first.get());
  EXPECT_EQ(mutator.read(first, &Cell::other), first.get());
  EXPECT_EQ(heap.live_bytes(), 2 * sizeof(Cell));
}

TEST(ManagedHeap, WeakReferencesAreClearedOnceTheirObjectIsDead) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  for (const bool full : {false, true}) {
    Local<Cell> cell(mutator, make_cell(mutator, 3));
    Local<gc::WeakReference> weak(mutator, mutator.allocate_weak(cell));
    mutator.collect(full);
    ASSERT_NE(weak->target(), nullptr);
    EXPECT_EQ(weak->target(), cell.get());
    cell = nullptr;
    mutator.collect(true);
    EXPECT_EQ(weak->target(), nullptr);
  }
  EXPECT_EQ(heap.statistics().weak_cleared, 2u);
}

std::vector<std::uint64_t> finalized;

TEST(ManagedHeap, FinalizersRunOnceAndSeeTheirObject) {
  finalized.clear();
  Heap heap(small_heap());
  Mutator mutator(heap);
  {
    Local<Cell> cell(mutator, mutator.allocate_finalizable<Cell>([](gc::Object* object) {
      finalized.push_back(static_cast<Cell*>(object)->number.slot().load());
    }));
    mutator.write(cell, &Cell::number, 42);
    mutator.write(cell, &Cell::next, make_list(mutator, 1, 3));
    mutator.collect();
    heap.run_finalizers(mutator);
    EXPECT_TRUE(finalized.empty()) << "it lives";
  }
  mutator.collect();
  churn(mutator, 2);
  heap.run_finalizers(mutator);
  heap.run_finalizers(mutator);
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, std::vector<std::uint64_t>{42});
  mutator.collect();
  EXPECT_EQ(heap.live_bytes(), 0u);
}

TEST(ManagedHeap, AHeapThatIsTooSmallThrowsWithItsNumbersAndServesAgain) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  Local<Cell> list(mutator);
  std::size_t made = 0;
  try {
    for (;; ++made) {
      Cell* const cell = make_cell(mutator, made);
      cell->next.init(list.get());
      list = cell;
    }
  } catch (const gc::OutOfMemory& full) {
    EXPECT_EQ(full.memory_bytes, kSmallHeap);
    EXPECT_GE(full.live_bytes, made * sizeof(Cell) * 9 / 10);
    const std::string text = full.what();
    EXPECT_NE(text.find("live"), std::string::npos) << text;
    EXPECT_NE(text.find("memory_bytes=262144 (set it to at least"), std::string::npos) << text;
  }
  // Two halves beside the nursery: about 112 KiB can live.
  EXPECT_GT(made * sizeof(Cell), std::size_t{60} << 10);
  EXPECT_EQ(numbers_of(mutator, list.get()).size(), made) << "nothing was lost";
  EXPECT_THROW(mutator.allocate_array<gc::ValueArray<std::uint64_t>>(1 << 20), gc::OutOfMemory);
  list = nullptr;
  list = make_list(mutator, 0, 100);
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 100));
}

TEST(ManagedHeap, LogsOutsideOfItAreChargedAndMakeRoomByACollection) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  {
    Local<Cell> garbage(mutator, make_list(mutator, 0, 1500));
  }
  heap.charge_logs(mutator, 100 << 10);
  EXPECT_EQ(heap.log_bytes(), std::size_t{100} << 10);
  EXPECT_THROW(heap.charge_logs(mutator, 1 << 20), gc::OutOfMemory);
  Local<Cell> kept(mutator, make_list(mutator, 0, 300));
  churn(mutator, 3);
  heap.discharge_logs(100 << 10);
  EXPECT_EQ(numbers_of(mutator, kept.get()), counted(0, 300));
}

TEST(ManagedHeap, GlobalsAreRootsUntilTheyEnd) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  {
    Global<Cell> a(heap), b(heap), c(heap);
    a.set(make_cell(mutator, 1));
    b.set(make_cell(mutator, 2));
    c.set(make_cell(mutator, 3));
    mutator.collect();
    EXPECT_EQ(heap.live_bytes(), 3 * sizeof(Cell));
    EXPECT_EQ(b.get()->number.slot().load(), 2u);
  }
  mutator.collect();
  EXPECT_EQ(heap.live_bytes(), 0u);
}

TEST(ManagedHeap, GlobalsEndInAnyOrder) {
  for (unsigned order = 0; order < 27; ++order) {
    const unsigned ends[3] = {order % 3, order / 3 % 3, order / 9};
    if (ends[0] == ends[1] || ends[1] == ends[2] || ends[0] == ends[2]) continue;
    Heap heap(small_heap());
    Mutator mutator(heap);
    std::optional<Global<Cell>> globals[3];
    for (unsigned i = 0; i < 3; ++i) {
      globals[i].emplace(heap);
      globals[i]->set(make_cell(mutator, i));
    }
    for (unsigned ended = 0; ended < 3; ++ended) {
      globals[ends[ended]].reset();
      mutator.collect();
      EXPECT_EQ(heap.live_bytes(), (2 - ended) * sizeof(Cell)) << order;
      for (unsigned i = 0; i < 3; ++i)
        if (globals[i]) {
          EXPECT_EQ(globals[i]->get()->number.slot().load(), i);
        }
    }
  }
}

TEST(ManagedHeap, PausesAndTheWayToThemAreCounted) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  churn(mutator, 5);
  const auto counts = heap.statistics();
  EXPECT_EQ(counts.pauses.count(), counts.time_to_safepoint.count());
  EXPECT_GE(counts.pauses.count(), 5u);
  EXPECT_GE(counts.pauses.sum_ns(), counts.pauses.max_ns());
  EXPECT_GT(counts.pauses.max_ns(), 0u);
}

TEST(ManagedHeap, ThreadsAllocateShareAndEndWhileOthersCollect) {
  Heap heap({.memory_bytes = std::size_t{2} << 20, .nursery_bytes = std::size_t{128} << 10, .buffer_bytes = 4096});
  constexpr unsigned kThreads = 4, kRounds = 25;
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (unsigned round = 0; round < kRounds; ++round) {
        Mutator mutator(heap);
        Local<Cell> old(mutator, make_cell(mutator, 0));
        mutator.collect(false);
        for (unsigned i = 0; i < 20; ++i) {
          mutator.write(old, &Cell::next, make_list(mutator, 1, 20));
          if (numbers_of(mutator, old.get()) != counted(0, 21)) ++wrong;
          if (i == 10) {
            Mutator::Native native(mutator);
            std::this_thread::yield();
          }
        }
        if (round % 8 == t) mutator.collect();
        // What the thread remembered must not be lost with it.
        Local<Cell> last(mutator, old);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(ManagedHeap, WhatAThreadRememberedSurvivesItsEnd) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  Global<Cell> old(heap);
  old.set(make_cell(mutator, 1));
  mutator.collect(false);
  {
    Mutator::Native native(mutator);
    std::thread([&] {
      Mutator other(heap);
      Local<Cell> cell(other, old.get());
      other.write(cell, &Cell::next, make_list(other, 2, 5));
    }).join();
  }
  churn(mutator, 3);
  EXPECT_EQ(numbers_of(mutator, old.get()), counted(1, 6));
}

using ManagedHeapDeathTest = testing::Test;

TEST(ManagedHeapDeathTest, ALocalAfterItsScopeAndAnObjectOfUnknownDescriptor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Heap heap(small_heap());
  Mutator mutator(heap);
#ifdef LOAM_CHECKED
  alignas(Local<Cell>) std::byte storage[sizeof(Local<Cell>)];
  auto* const dead = ::new (storage) Local<Cell>(mutator);
  dead->~Local();
  EXPECT_DEATH((void)dead->get(), "a Local is used after its scope");
  EXPECT_DEATH(
      {
        Local<Cell> cell(mutator, make_cell(mutator, 1));
        static const std::uint64_t no_descriptor[8] = {};
        cell->word().store(reinterpret_cast<std::uintptr_t>(no_descriptor) & ~std::uintptr_t{15});
        mutator.collect();
      },
      "O1: the object at .* has no descriptor");
#endif
  EXPECT_DEATH(Heap(gc::Settings{.memory_bytes = 1000}), "memory_bytes=1000: a heap has at least 131072 bytes");
  EXPECT_DEATH(Heap(gc::Settings{.memory_bytes = 1 << 20, .nursery_bytes = 1 << 20}), "nursery_bytes=1048576: at most");
}

#ifdef LOAM_CHECKED
TEST(ManagedHeapDeathTest, TheVerifierFindsAMissingBarrier) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        Mutator mutator(heap);
        Local<Cell> old(mutator, make_cell(mutator, 1));
        mutator.collect(false);
        old->next.init(make_cell(mutator, 2));
        mutator.collect(false);
      },
      "M3: the old object at .* refers to the young one at .* and is not remembered");
}
#endif

}  // namespace
}  // namespace loam::tests
