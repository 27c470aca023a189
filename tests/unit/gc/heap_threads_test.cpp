// The threads of a heap: native regions, several Mutators and several heaps of one thread, and forks.
#include "tests/harness/child.hpp"
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;
using gc::Transaction;
using gc::Transactions;

void collect_in_a_thread(Heap& heap) {
  std::thread([&] {
    Mutator own(heap);
    own.collect();
    churn(own, 2);
  }).join();
}

TEST(HeapThreads, NativeRegionsNest) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  Local<Cell> list(mutator, make_list(mutator, 1, 5));
  for (unsigned round = 0; round < 3; ++round) {
    const Mutator::Native outer(mutator);
    {
      const Mutator::Native inner(mutator);
      collect_in_a_thread(heap);
      const Mutator::Native innermost(mutator);
      mutator.safepoint();
      collect_in_a_thread(heap);
    }
    collect_in_a_thread(heap);
  }
  mutator.collect();
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(1, 5));
}

// Their thread is one thread: what one of them collects moves the objects of the other ones.
TEST(HeapThreads, AThreadMayHaveSeveralMutators) {
  for (const bool first_ends_first : {false, true}) {
    Heap heap(small_heap(1));
    auto first = std::make_unique<Mutator>(heap), second = std::make_unique<Mutator>(heap);
    Global<Cell> kept(heap);
    {
      Local<Cell> a(*first, make_list(*first, 1, 20)), b(*second, make_list(*second, 30, 20));
      {
        const Mutator::Native native(*second);
        const Mutator::Native again(*first);
        collect_in_a_thread(heap);
      }
      first->collect();
      second->collect(false);
      EXPECT_EQ(numbers_of(*first, a.get()), counted(1, 20));
      EXPECT_EQ(numbers_of(*second, b.get()), counted(30, 20));
      kept.set(a.get());
    }
    (first_ends_first ? first : second).reset();
    Mutator& left = first_ends_first ? *second : *first;
    churn(left, 2);
    {
      const Mutator::Native native(left);
      collect_in_a_thread(heap);
    }
    Mutator third(heap);
    churn(third, 2);
    EXPECT_EQ(numbers_of(left, kept.get()), counted(1, 20));
  }
}

// The Mutators of a thread end in any order: those that are left are one thread all the time.
TEST(HeapThreads, OfSeveralMutatorsAnyMayEndBeforeTheOthers) {
  for (std::size_t first = 0; first < 3; ++first)
    for (std::size_t second = 0; second < 3; ++second) {
      if (second == first) continue;
      SCOPED_TRACE(std::to_string(first) + " " + std::to_string(second));
      Heap heap(small_heap(1));
      std::array<std::unique_ptr<Mutator>, 3> all;
      for (auto& mutator : all) mutator = std::make_unique<Mutator>(heap);
      const auto use = [&] {
        for (auto& mutator : all) {
          if (mutator == nullptr) continue;
          churn(*mutator, 2);
          const Mutator::Native native(*mutator);
          collect_in_a_thread(heap);
        }
      };
      use();
      all[first].reset();
      use();
      all[second].reset();
      use();
    }
}

TEST(HeapThreads, ThreadsThatCollectTwoHeapsDoNotWaitForEachOther) {
  Heap one(small_heap()), two(small_heap());
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (unsigned round = 0; round < 5; ++round) {
        Mutator a(one), b(two);
        Local<Cell> in_a(a, make_list(a, t, 10)), in_b(b, make_list(b, t + 1, 10));
        for (unsigned i = 0; i < 20; ++i) {
          if ((i + t) % 3 == 0) a.collect(i % 2 == 0);
          if ((i + t) % 3 == 1) b.collect(i % 2 == 0);
          if ((i + t) % 7 == 2) {
            const Mutator::Native native(a);
            b.collect(false);
          }
          if (numbers_of(a, in_a.get()) != counted(t, 10)) ++wrong;
          if (numbers_of(b, in_b.get()) != counted(t + 1, 10)) ++wrong;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(HeapThreads, ATemporaryLocalBesideANewOneLosesNoRoot) {
  Heap heap(small_heap(1));
  Mutator mutator(heap);
  Local<Cell> before(mutator, make_cell(mutator, 1));
  {
    Local<Cell> a(mutator, Local<Cell>(mutator, make_list(mutator, 2, 3)).get());
    Local<Cell> b(mutator, Local<Cell>(mutator, Local<Cell>(mutator, make_list(mutator, 5, 3)).get()).get());
    churn(mutator, 3);
    EXPECT_EQ(numbers_of(mutator, a.get()), counted(2, 3));
    EXPECT_EQ(numbers_of(mutator, b.get()), counted(5, 3));
  }
  std::optional<Local<Cell>> first, second, third;
  first.emplace(mutator, make_cell(mutator, 7));
  second.emplace(mutator, make_cell(mutator, 8));
  third.emplace(mutator, make_cell(mutator, 9));
  second.reset();
  churn(mutator, 2);
  EXPECT_EQ((*third)->number.slot().load(), 9u);
  first.reset();
  churn(mutator, 2);
  EXPECT_EQ((*third)->number.slot().load(), 9u);
  third.reset();
  EXPECT_EQ(mutator.newest_local(), &before);
  EXPECT_EQ(before->number.slot().load(), 1u);
}

// An element has the type of its array.
template <class Array, class Element>
concept HasElement = requires(Array& array) { array.template at<Element>(0); };
static_assert(HasElement<gc::RefArray<Cell>, gc::Ref<Cell>> && !HasElement<gc::RefArray<Cell>, gc::Value<long>> &&
              !HasElement<gc::RefArray<Cell>, gc::Ref<gc::Object>>);
static_assert(HasElement<gc::ValueArray<int>, gc::Value<int>> && !HasElement<gc::ValueArray<int>, gc::Value<long>> &&
              !HasElement<gc::ValueArray<int>, gc::Ref<Cell>> && !HasElement<gc::Array, gc::Value<int>>);

TEST(HeapThreadsDeathTest, WhatWouldHangOrCorruptEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        Mutator mutator(heap);
        const Mutator::Native native(mutator);
        make_list(mutator, 0, 1000);
      },
      "an allocation inside of a Mutator::Native");
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        Mutator mutator(heap);
        const Mutator::Native native(mutator);
        mutator.collect();
      },
      "inside of a Mutator::Native");
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        Mutator mutator(heap);
        const Mutator::Native native(mutator);
        const Mutator another(heap);
      },
      "a Mutator is made inside of a Mutator::Native of the same thread");
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        auto mutator = std::make_unique<Mutator>(heap);
        std::thread([&] { mutator.reset(); }).join();
      },
      "a Mutator ends in the thread that has made it");
#ifdef LOAM_CHECKED
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        Mutator mutator(heap);
        mutator.allocate_array<gc::ValueArray<int>>(10)->at(10);
      },
      "element 10 of an array of 10");
#endif
}

#ifndef LOAM_TSAN  // it ends a child of several threads that makes threads of its own

// The other thread is inside of a transaction when this one forks; it has changed an object and collects now and then.
TEST(HeapForks, TheChildUsesTheHeapAlone) {
  for (const gc::Placement placement : {gc::Placement::heap, gc::Placement::dedicated, gc::Placement::arena}) {
    Heap heap({.memory_bytes = std::size_t{2} << 20, .nursery_bytes = std::size_t{32} << 10, .buffer_bytes = 4096});
    gc::TxSettings settings;
    settings.placement = placement;
    settings.alone_after = 1;
    Transactions all(heap, settings);
    Mutator mutator(heap);
    Global<Cell> shared(heap), remembered(heap);
    shared.set(make_cell(mutator, 1));
    remembered.set(make_cell(mutator, 10));
    mutator.collect();
    std::atomic<bool> has_changed{false}, ends{false};
    std::thread other([&] {
      Mutator own(heap);
      Transaction tx(all, own);
      Local<Cell> cell(own, shared.get()), holder(own, remembered.get());
      own.write(holder, &Cell::next, make_list(own, 11, 3));
      unsigned attempts = 0;
      atomically(tx, [&](Transaction& t) {
        if (++attempts == 1) t.retry();  // now it runs alone
        t.write(cell, &Cell::number, 77);
        has_changed = true;
        while (!ends) own.safepoint();
      });
    });
    while (!has_changed) mutator.safepoint();
    const bool child_is_right = in_fork([&] {
      Local<Cell> cell(mutator, shared.get()), holder(mutator, remembered.get());
      if (mutator.read(cell, &Cell::number) != 1) return false;
      churn(mutator, 2);
      mutator.collect();
      if (numbers_of(mutator, holder.get()) != counted(10, 4)) return false;
      Transaction tx(all, mutator);
      atomically(tx, [&](Transaction& t) { t.write(cell, &Cell::number, t.read(cell, &Cell::number) + 1); });
      std::thread([&] {
        Mutator own(heap);
        Transaction in_thread(all, own);
        Local<Cell> same(own, shared.get());
        atomically(in_thread, [&](Transaction& t) { t.write(same, &Cell::number, t.read(same, &Cell::number) + 1); });
        own.safepoint();
      }).detach();
      while (mutator.read(cell, &Cell::number) != 3) mutator.safepoint();
      mutator.collect();
      heap.verify(mutator);
      return true;
    });
    EXPECT_TRUE(child_is_right);
    ends = true;
    {
      const Mutator::Native native(mutator);
      other.join();
    }
    EXPECT_EQ(shared.get()->number.slot().load(), 77u);
    mutator.collect();
  }
}

// Forks of a thread with and without a Mutator, while others collect, make and end Mutators and heaps.
TEST(HeapForks, AtAnyTime) {
  Heap heap(small_heap()), second(small_heap());
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      while (!ends) {
        Mutator own(heap), also(second);
        Local<Cell> list(own, make_list(own, 0, 50));
        make_list(also, 0, 300);
        churn(own, 2);
        if (t == 0) const Heap another{small_heap()};
        const Mutator::Native native(own);
        const Mutator::Native other(also);
        std::this_thread::yield();
      }
    });
  const auto child = [&] {
    Mutator own(heap), also(second);
    Local<Cell> list(own, make_list(own, 0, 50));
    churn(own, 3);
    churn(also, 3);
    return numbers_of(own, list.get()) == counted(0, 50);
  };
  for (unsigned i = 0; i < 10; ++i) EXPECT_TRUE(in_fork(child));
  {
    Mutator mutator(heap);
    Local<Cell> list(mutator, make_list(mutator, 5, 20));
    for (unsigned i = 0; i < 10; ++i) {
      EXPECT_TRUE(in_fork([&] { return child() && numbers_of(mutator, list.get()) == counted(5, 20); }));
      churn(mutator, 1);
    }
    const Mutator::Native native(mutator);
    EXPECT_TRUE(in_fork([&] { return heap.live_bytes() > 0; }));
  }
  ends = true;
  for (auto& thread : threads) thread.join();
}

#endif

}  // namespace
}  // namespace loam::tests
