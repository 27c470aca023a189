// A snapshot moves to a time that was read before its validation: a commit during the validation stays outside of it.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <thread>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;
using gc::Transaction;
using gc::Transactions;
using Cells = gc::RefArray<Cell>;

// The reader reads `left`, then many cells, and then a cell that the other thread has just changed: it validates all its
// reads, which takes long. Meanwhile the other thread moves 1 from `left` to `right`, after a pause of another length in
// each round; in some rounds only when the transaction has ended. Then the reader reads `right`.
TEST(SnapshotExtension, ACommitDuringTheValidationIsNotInTheSnapshot) {
  constexpr std::size_t kCells = 20000;
  constexpr unsigned kRounds = 96, kPauses = 16;
  Heap heap({.memory_bytes = std::size_t{32} << 20});
  gc::TxSettings settings;
  settings.hash = false;
  Transactions all(heap, settings);
  Global<Cells> shared(heap);
  Global<Cell> left(heap), right(heap), newer(heap);
  std::atomic<unsigned> asked{0}, changed{0}, seen{0}, ended{0}, settled{0};  // rounds; ~0: the end
  const auto wait_for = [](Mutator& own, auto condition) {
    for (unsigned spins = 0; !condition(); ++spins) {
      own.safepoint();
      if (spins % 10000 == 9999) std::this_thread::yield();
    }
  };
  Mutator mutator(heap);
  {
    Local<Cells> cells(mutator, mutator.allocate_array<Cells>(kCells));
    for (std::size_t i = 0; i < kCells; ++i) {
      Cell* const cell = make_cell(mutator, 0);
      mutator.store(cells.get(), cells->at<gc::Ref<Cell>>(i), cell);
    }
    shared.set(cells.get());
    left.set(make_cell(mutator, 1000));
    right.set(make_cell(mutator, 1000));
    newer.set(make_cell(mutator, 0));
    mutator.collect();
  }
  std::thread writer([&] {
    Mutator own(heap);
    Transaction tx(all, own);
    Local<Cell> from(own, left.get()), to(own, right.get()), changes(own, newer.get());
    for (unsigned done = 0;;) {
      wait_for(own, [&] { return asked != done; });
      done = asked;
      if (done == ~0U) return;
      atomically(tx, [&](Transaction& t) { t.write(changes, &Cell::number, done); });
      changed = done;
      const unsigned pause = done % kPauses;
      wait_for(own, [&] { return seen == done && (pause != 0 || ended == done); });
      for (std::atomic<unsigned> waited{0}; waited < pause * 200;) ++waited;
      atomically(tx, [&](Transaction& t) {
        t.write(from, &Cell::number, t.read(from, &Cell::number) - 1);
        t.write(to, &Cell::number, t.read(to, &Cell::number) + 1);
      });
      settled = done;
    }
  });
  {
    Transaction tx(all, mutator);
    Local<Cells> cells(mutator, shared.get());
    Local<Cell> from(mutator, left.get()), to(mutator, right.get()), changes(mutator, newer.get()), cell(mutator);
    for (unsigned round = 1; round <= kRounds; ++round) {
      const auto sum = atomically(tx, [&](Transaction& t) {
        const std::uint64_t before = t.read(from, &Cell::number);
        for (std::size_t i = 0; i < kCells; ++i) {
          cell = t.read_at(cells, i);
          t.read(cell, &Cell::number);
        }
        asked = round;
        wait_for(mutator, [&] { return changed == round; });
        seen = round;
        t.read(changes, &Cell::number);
        return before + t.read(to, &Cell::number);
      });
      ended = round;
      // A move of this round within the next one would abort its attempt, which then has nothing to extend.
      wait_for(mutator, [&] { return settled == round; });
      EXPECT_EQ(sum, 2000u) << "round " << round;
    }
    EXPECT_GE(tx.statistics().extensions, kRounds / kPauses);
  }
  asked = ~0U;
  {
    const Mutator::Native native(mutator);
    writer.join();
  }
}

}  // namespace
}  // namespace loam::tests
