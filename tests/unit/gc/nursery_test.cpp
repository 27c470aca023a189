// A nursery per transaction: memory of aborted attempts comes back, and not too early.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Heap;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::Transactions;
using gc::TxSettings;

gc::Settings roomy() {
  return {.memory_bytes = std::size_t{16} << 20, .nursery_bytes = std::size_t{1} << 20, .buffer_bytes = 4096};
}

TxSettings nursery(bool opaque) {
  TxSettings settings;
  settings.placement = Placement::arena;
  settings.opaque = opaque;
  settings.nursery = true;
  return settings;
}

struct NoMore : std::exception {};

// An attempt that makes so many cells and is cancelled; returns the first of them as a number.
std::uintptr_t cancelled(Transaction& tx, unsigned cells) {
  std::uintptr_t first = 0;
  EXPECT_THROW(atomically(tx,
                          [&](Transaction& t) {
                            for (unsigned i = 0; i < cells; ++i) {
                              Cell* const cell = t.create<Cell>();
                              cell->number.init(1);
                              if (i == 0) first = reinterpret_cast<std::uintptr_t>(cell);
                            }
                            throw NoMore();
                          }),
               NoMore);
  return first;
}

TEST(TransactionNursery, AnAbortSetsTheBumpPointerBackAndTheMemoryIsZero) {
  Heap heap(roomy());
  Transactions all(heap, nursery(true));
  Mutator mutator(heap);
  Transaction tx(all, mutator);
  make_cell(mutator, 1);
  const auto first = cancelled(tx, 10);
  Cell* const next = mutator.allocate<Cell>();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(next), first);
  EXPECT_EQ(next->number.slot().load(), 0u);
  EXPECT_EQ(tx.statistics().returned_bytes, 10 * sizeof(Cell));
}

TEST(TransactionNursery, WholeBuffersServeAgainWithoutACollection) {
  Heap heap(roomy());
  Transactions all(heap, nursery(true));
  Mutator mutator(heap);
  Transaction tx(all, mutator);
  for (int i = 0; i < 200; ++i) cancelled(tx, 1000);
  EXPECT_EQ(heap.collections(), 0u) << "40 KB each time, 8 MB in all, out of a nursery of 1 MB";
}

TEST(TransactionNursery, ACommitKeepsAndAnInnerAbortGivesBackItsOwn) {
  Heap heap(roomy());
  Transactions all(heap, nursery(true));
  Mutator mutator(heap);
  Transaction tx(all, mutator);
  Local<Cell> root(mutator, make_cell(mutator, 0));
  atomically(tx, [&](Transaction& t) {
    Local<Cell> outer(mutator, t.create<Cell>());
    outer->number.init(1);
    Local<Cell> assigned_inside(mutator);
    EXPECT_THROW(atomically(t,
                            [&](Transaction& inner) {
                              assigned_inside = inner.create<Cell>();
                              for (int i = 0; i < 500; ++i) inner.create<Cell>();
                              inner.write(assigned_inside, &Cell::number, 5);
                              throw NoMore();
                            }),
                 NoMore);
    EXPECT_EQ(assigned_inside.get(), nullptr) << "a root that outlives what it referred to becomes null";
    for (int i = 0; i < 500; ++i) t.create<Cell>()->number.init(9);
    t.write(root, &Cell::next, outer);
  });
  mutator.collect();
  EXPECT_EQ(numbers_of(mutator, root.get()), counted(0, 2));
}

// The inner part fills the buffer in which the outer one began, and more. Memory of neither may be lost, and no other
// memory may be zeroed or served: that of an older object in the same buffer, that of a thread between the two buffers.
TEST(TransactionNursery, AnInnerAndThenAnOuterAbortGiveBackEachItsOwn) {
  for (const bool opaque : {true, false})
    for (const int after : {0, 150}) {
      Heap heap(roomy());
      Transactions all(heap, nursery(opaque));
      Mutator mutator(heap), neighbour(heap);
      Transaction tx(all, mutator);
      Local<Cell> before(mutator, make_list(mutator, 1, 3));
      Local<Cell> between(neighbour), later(mutator);
      const auto make = [&](int count, std::uint64_t number) {
        for (; count != 0; --count) tx.create<Cell>()->number.init(number);
      };
      const auto cancelled_part = [&](auto body) {
        EXPECT_THROW(atomically(tx,
                                [&](Transaction&) {
                                  body();
                                  throw NoMore();
                                }),
                     NoMore);
      };
      for (unsigned round = 0; round < 3; ++round) {
        cancelled_part([&] {
          make(5, 7);
          for (unsigned part = 0; part < 2; ++part) {
            Local<Cell> outer(mutator, tx.create<Cell>());
            outer->number.init(41);
            cancelled_part([&] {
              make(120, 8);
              between = make_list(neighbour, 50, 60);
              make(120, 8);
            });
            make(after, 9);
            EXPECT_EQ(outer->number.slot().load(), 41u);
          }
        });
        for (int i = 0; i < 400; ++i) {
          Cell* const cell = mutator.allocate<Cell>();
          EXPECT_EQ(cell->number.slot().load(), 0u) << "M1";
          cell->number.init(12);
        }
        later = make_list(mutator, 100, 50);
        EXPECT_EQ(numbers_of(mutator, before.get()), counted(1, 3));
        EXPECT_EQ(numbers_of(neighbour, between.get()), counted(50, 60));
      }
      EXPECT_EQ(heap.collections(), 0u);
      EXPECT_EQ(numbers_of(mutator, later.get()), counted(100, 50));
    }
}

// What an attempt made may have been filled without undo entries. Outside of the nursery it is remembered until it is swept.
TEST(TransactionNursery, WhatLiesOutsideForgetsWhatIsGivenBack) {
  using Cells = gc::RefArray<Cell>;
  Heap heap(roomy());
  Transactions all(heap, nursery(true));
  Mutator mutator(heap);
  Transaction tx(all, mutator);
  EXPECT_THROW(atomically(tx,
                          [&](Transaction& t) {
                            Local<Cells> large(mutator, t.create_array<Cells>(gc::kLargeBytes / sizeof(void*)));
                            Local<Cell> moved(mutator, t.create<Cell>());
                            moved->number.init(1);
                            mutator.collect(false);
                            Local<Cell> young(mutator, t.create<Cell>());
                            young->number.init(2);
                            mutator.write(moved, &Cell::next, young.get());
                            t.write_at(large, 7, young);
                            throw NoMore();
                          }),
               NoMore);
  mutator.collect(false);  // checks every reference
  EXPECT_EQ(heap.collections(), 2u);
}

TEST(TransactionNursery, ACollectionInBetweenLeavesWhatItMovedAlone) {
  for (const bool opaque : {true, false}) {
    Heap heap(roomy());
    Transactions all(heap, nursery(opaque));
    Mutator mutator(heap);
    Transaction tx(all, mutator);
    Local<Cell> root(mutator, make_cell(mutator, 0));
    for (int i = 0; i < 3; ++i) {
      EXPECT_THROW(atomically(tx,
                              [&](Transaction& t) {
                                Local<Cell> a(mutator, t.create<Cell>());
                                mutator.collect(false);
                                for (int k = 0; k < 300; ++k) t.create<Cell>()->number.init(3);
                                t.write(root, &Cell::next, a);
                                throw NoMore();
                              }),
                   NoMore);
      EXPECT_EQ(numbers_of(mutator, root.get()), counted(0, 1));
      heap.verify(mutator);
    }
  }
}

// Two transactions of one thread, for one certain order. The second reads, unchecked, out of an object that the first one
// has written, gets a reference to an object of it, and holds it while the first one aborts and allocates again.
// Without the limbo the memory would be another object by then: the paper's claim that nobody else can see it is wrong.
TEST(TransactionNursery, WhatADoomedTransactionHoldsIsNotServedAgainBeforeItEnds) {
  Heap heap(roomy());
  Transactions all(heap, nursery(false));
  Mutator mutator_a(heap), mutator_b(heap);
  Transaction a(all, mutator_a), b(all, mutator_b);
  Local<Cell> shared_a(mutator_a, make_cell(mutator_a, 0));
  Local<Cell> shared_b(mutator_b, shared_a.get());
  const auto reuse = [&] {
    for (int i = 0; i < 300; ++i) atomically(a, [&](Transaction& t) { t.create<Cell>()->number.init(222); });
  };
  unsigned attempts = 0;
  std::uintptr_t held = 0;
  atomically(b, [&](Transaction& doomed) {
    if (++attempts == 2) return;
    Local<Cell> found(mutator_b, doomed.read(shared_b, &Cell::other));
    EXPECT_THROW(atomically(a,
                            [&](Transaction& t) {
                              Local<Cell> fresh(mutator_a, t.create<Cell>());
                              fresh->number.init(111);
                              for (int i = 0; i < 300; ++i) t.create<Cell>();
                              t.write(shared_a, &Cell::other, fresh);
                              found = doomed.read(shared_b, &Cell::other);
                              throw NoMore();
                            }),
                 NoMore);
    ASSERT_TRUE(static_cast<bool>(found)) << "an unchecked read sees it";
    held = reinterpret_cast<std::uintptr_t>(found.get());
    reuse();
    EXPECT_EQ(doomed.read(found, &Cell::number), 111u);
  });
  EXPECT_EQ(attempts, 2u) << "it was doomed";
  // Now nobody can hold it. The next abort's end finds it ripe.
  cancelled(a, 300);
  bool again = false;
  for (int i = 0; i < 2000 && !again; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(mutator_a.allocate<Cell>());
    again = at <= held && held < at + sizeof(Cell);
  }
  EXPECT_TRUE(again);
  EXPECT_EQ(heap.collections(), 0u);
}

TEST(TransactionNursery, AnOpaqueReadNeverReturnsSuchAReference) {
  Heap heap(roomy());
  Transactions all(heap, nursery(true));
  Mutator mutator_a(heap), mutator_b(heap);
  Transaction a(all, mutator_a), b(all, mutator_b);
  Local<Cell> shared_a(mutator_a, make_cell(mutator_a, 0));
  Local<Cell> shared_b(mutator_b, shared_a.get());
  unsigned attempts = 0;
  bool read = false;
  EXPECT_THROW(atomically(a,
                          [&](Transaction& t) {
                            Local<Cell> fresh(mutator_a, t.create<Cell>());
                            t.write(shared_a, &Cell::other, fresh);
                            atomically(b, [&](Transaction& other) {
                              if (++attempts == 2) return;
                              other.read(shared_b, &Cell::other);
                              read = true;
                            });
                            throw NoMore();
                          }),
               NoMore);
  EXPECT_FALSE(read);
  EXPECT_EQ(attempts, 2u);
}

}  // namespace
}  // namespace loam::tests
