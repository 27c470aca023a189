// Finalizable objects: where they lie, in which order their finalizers run, and what a finalizer may do with them.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;

std::vector<std::uint64_t> finalized;
void note(gc::Object* object) { finalized.push_back(static_cast<Cell*>(object)->number.slot().load()); }

Cell* make_finalizable(Mutator& mutator, std::uint64_t number) {
  Cell* const cell = mutator.allocate_finalizable<Cell>(note);
  cell->number.init(number);
  return cell;
}

class Finalizers : public testing::Test {
 protected:
  Finalizers() { finalized.clear(); }
};

TEST_F(Finalizers, AnObjectTakesItsBytesAndNoPage) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  constexpr std::uint64_t kCells = 1000;
  Local<Cell> list(mutator);
  for (std::uint64_t i = kCells; i-- != 0;) {
    Cell* const cell = make_finalizable(mutator, i);
    cell->next.init(list.get());
    list = cell;
  }
  EXPECT_LE(heap.statistics().full, 1u);
  mutator.collect();
  EXPECT_EQ(heap.live_bytes(), kCells * sizeof(Cell));
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, kCells));
  list = nullptr;
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized.size(), kCells);
}

// Objects refer to older and to newer ones, which are kept for their finalizers with them. All died together.
TEST_F(Finalizers, RunInTheOrderInWhichTheObjectsWereMade) {
  for (const bool full : {false, true}) {
    finalized.clear();
    Heap heap(small_heap());
    Mutator mutator(heap);
    {
      Local<Cell> last(mutator), kept(mutator);
      for (std::uint64_t i = 0; i < 20; ++i) {
        Local<Cell> cell(mutator, make_finalizable(mutator, i));
        mutator.write(cell, i % 2 == 0 ? &Cell::next : &Cell::other, last.get());
        if (last && i % 3 == 0) mutator.write(last, &Cell::next, cell.get());
        last = cell;
      }
    }
    mutator.collect(full);
    heap.run_finalizers(mutator);
    EXPECT_EQ(finalized, counted(0, 20));
  }
}

TEST_F(Finalizers, OfYoungObjectsRunAfterAMinorCollectionOfOldOnesAfterAFullOne) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  Local<Cell> old(mutator, make_finalizable(mutator, 1)), kept(mutator, make_finalizable(mutator, 2));
  mutator.collect(false);
  old = nullptr;
  make_finalizable(mutator, 3);
  mutator.collect(false);
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, std::vector<std::uint64_t>{3});
  mutator.collect(true);
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, (std::vector<std::uint64_t>{3, 1}));
  kept = nullptr;
  mutator.collect(true);
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, (std::vector<std::uint64_t>{3, 1, 2}));
}

// Collections of both kinds before the finalizers are called, some of which have been called by then.
TEST_F(Finalizers, ObjectsLiveUntilTheirFinalizerHasRun) {
  for (const bool full : {false, true}) {
    finalized.clear();
    Heap heap(small_heap());
    Mutator mutator(heap);
    for (std::uint64_t i = 0; i < 5; ++i) {
      Local<Cell> cell(mutator, make_finalizable(mutator, i));
      mutator.write(cell, &Cell::next, make_list(mutator, 100 + i, 3));
    }
    for (unsigned i = 0; i < 3; ++i) {
      mutator.collect(full);
      churn(mutator, 1);
    }
    // The finalizer of the third object makes the heap collect while two are left.
    static Mutator* running = nullptr;
    running = &mutator;
    mutator.allocate_finalizable<Cell>([](gc::Object*) { running->collect(true); });
    mutator.collect(full);
    for (std::uint64_t i = 5; i < 8; ++i) make_finalizable(mutator, i);
    mutator.collect(full);
    heap.run_finalizers(mutator);
    EXPECT_EQ(finalized, counted(0, 8));
    mutator.collect();
    EXPECT_EQ(heap.live_bytes(), 0u);
    EXPECT_EQ(heap.statistics().finalized, 9u);
  }
}

TEST_F(Finalizers, AnObjectThatItsFinalizerMakesReachableLivesAndIsNotFinalizedAgain) {
  Heap heap(small_heap());
  static Global<Cell>* saved = nullptr;
  Global<Cell> place(heap);
  saved = &place;
  Mutator mutator(heap);
  {
    Local<Cell> cell(mutator, mutator.allocate_finalizable<Cell>([](gc::Object* object) {
      note(object);
      saved->set(static_cast<Cell*>(object));
    }));
    mutator.write(cell, &Cell::number, 6);
    mutator.write(cell, &Cell::next, make_list(mutator, 7, 2));
  }
  mutator.collect();
  heap.run_finalizers(mutator);
  mutator.collect();
  churn(mutator, 2);
  EXPECT_EQ(numbers_of(mutator, place.get()), counted(6, 3));
  place.set(nullptr);
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, std::vector<std::uint64_t>{6});
  EXPECT_EQ(heap.live_bytes(), 0u);
}

TEST_F(Finalizers, WeakReferencesToThemAreNullBeforeTheyRun) {
  for (const bool full : {false, true}) {
    Heap heap(small_heap());
    Mutator mutator(heap);
    Local<Cell> cell(mutator, make_finalizable(mutator, 1));
    mutator.write(cell, &Cell::next, make_cell(mutator, 2));
    Local<Cell> behind(mutator, mutator.read(cell, &Cell::next));
    Local<gc::WeakReference> weak(mutator, mutator.allocate_weak(cell));
    Local<gc::WeakReference> to_what_it_keeps(mutator, mutator.allocate_weak(behind));
    cell = behind = nullptr;
    mutator.collect(full);
    EXPECT_EQ(weak->target(), nullptr);
    EXPECT_EQ(to_what_it_keeps->target(), nullptr);
    heap.run_finalizers(mutator);
    mutator.collect();
  }
}

struct Watcher : gc::Object {
  gc::Ref<gc::WeakReference> weak, to_dead;
  gc::Ref<Cell> cell;
  static gc::Descriptor describe() {
    return gc::describe<Watcher>("watcher", &Watcher::weak, &Watcher::to_dead, &Watcher::cell);
  }
};

// A weak reference that only a dead object had moves with it; its target has moved, too, or is gone.
TEST_F(Finalizers, WeakReferencesOfAnObjectAreRightInItsFinalizer) {
  for (const bool full : {false, true}) {
    Heap heap(small_heap());
    Mutator mutator(heap);
    static std::uint64_t seen = 0;
    static bool is_null = false;
    {
      Local<Cell> cell(mutator, make_cell(mutator, 5)), dead(mutator, make_cell(mutator, 6));
      Local<gc::WeakReference> weak(mutator, mutator.allocate_weak(cell)),
          to_dead(mutator, mutator.allocate_weak(dead));
      Local<Watcher> watcher(mutator, mutator.allocate_finalizable<Watcher>([](gc::Object* object) {
        auto& dying = *static_cast<Watcher*>(object);
        const auto target = [](gc::Ref<gc::WeakReference>& field) {
          return static_cast<Cell*>(static_cast<gc::WeakReference*>(field.slot().load())->target());
        };
        seen = target(dying.weak)->number.slot().load();
        is_null = target(dying.to_dead) == nullptr;
      }));
      mutator.write(watcher, &Watcher::weak, weak.get());
      mutator.write(watcher, &Watcher::to_dead, to_dead.get());
      mutator.write(watcher, &Watcher::cell, cell.get());
    }
    mutator.collect(full);
    churn(mutator, 1);
    heap.run_finalizers(mutator);
    EXPECT_EQ(seen, 5u);
    EXPECT_TRUE(is_null);
  }
}

TEST_F(Finalizers, OfAThreadThatHasEndedRun) {
  Heap heap(small_heap());
  {
    Mutator mutator(heap);
    Local<Cell> first(mutator, make_finalizable(mutator, 1));
    make_finalizable(mutator, 2);
  }
  Mutator mutator(heap);
  mutator.collect(false);
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, counted(1, 2));
}

// Made by attempts that give their memory back, at two levels, over more than one buffer: they stay, and what they
// referred to and is given back is null.
TEST_F(Finalizers, OfCancelledAttemptsRunThoughMemoryIsGivenBack) {
  for (const bool opaque : {false, true}) {
    finalized.clear();
    Heap heap(small_heap());
    gc::TxSettings settings;
    settings.nursery = true;
    settings.opaque = opaque;
    gc::Transactions all(heap, settings);
    Mutator mutator(heap);
    gc::Transaction tx(all, mutator);
    const auto cancelled = [&](auto body) {
      EXPECT_THROW(gc::atomically(tx,
                                  [&](gc::Transaction&) {
                                    body();
                                    throw std::runtime_error("no");
                                  }),
                   std::runtime_error);
    };
    const auto make = [&](std::uint64_t number) {
      Local<Cell> given_back(mutator, tx.create<Cell>());
      Local<Cell> kept(mutator, make_finalizable(mutator, number));
      kept->next.init(given_back.get());
      for (unsigned i = 0; i < 150; ++i) tx.create<Cell>()->number.init(99);
    };
    cancelled([&] {
      make(0);
      cancelled([&] { make(1); });
      make(2);
    });
    for (unsigned i = 0; i < 300; ++i) make_cell(mutator, 98);
    mutator.collect(false);
    heap.run_finalizers(mutator);
    EXPECT_EQ(finalized, counted(0, 3));
    heap.verify(mutator);
  }
}

// A finalizer throws: it has run, and those behind it run the next time.
TEST_F(Finalizers, OneThatThrowsIsNotRunAgainAndTheOthersAre) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  const auto throws = [](gc::Object* object) {
    note(object);
    throw std::runtime_error("a finalizer");
  };
  for (const std::uint64_t number : {0, 1, 2}) {
    Cell* const cell = number == 1 ? mutator.allocate_finalizable<Cell>(throws) : make_finalizable(mutator, number);
    cell->number.init(number);
  }
  mutator.collect();
  EXPECT_THROW(heap.run_finalizers(mutator), std::runtime_error);
  EXPECT_EQ(finalized, counted(0, 2));
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, counted(0, 3));
}

// A finalizer makes a finalizable object, collects, and runs finalizers itself: each runs once, its own is under way.
Heap* finalizing = nullptr;
Mutator* finalizes = nullptr;
void note_and_run_others(gc::Object* object) {
  note(object);
  make_finalizable(*finalizes, 7);
  finalizes->collect();
  finalizing->run_finalizers(*finalizes);
}

TEST_F(Finalizers, OneMayRunThoseThatAreLeft) {
  Heap heap(small_heap());
  Mutator mutator(heap);
  finalizing = &heap;
  finalizes = &mutator;
  mutator.allocate_finalizable<Cell>(note_and_run_others)->number.init(0);
  make_finalizable(mutator, 1);
  make_finalizable(mutator, 2);
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized, (std::vector<std::uint64_t>{0, 1, 2, 7}));
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(finalized.size(), 4u);
}

TEST_F(Finalizers, ManyThreadsMakeAndRunThem) {
  Heap heap(small_heap());
  static std::atomic<unsigned> count{0};
  count = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      Mutator mutator(heap);
      for (unsigned i = 0; i < 400; ++i) {
        mutator.allocate_finalizable<Cell>([](gc::Object*) { ++count; });
        make_list(mutator, 0, 5);
        if (i % 50 == 0) heap.run_finalizers(mutator);
      }
    });
  for (auto& thread : threads) thread.join();
  Mutator mutator(heap);
  mutator.collect();
  heap.run_finalizers(mutator);
  EXPECT_EQ(count, 1200u);
}

}  // namespace
}  // namespace loam::tests
