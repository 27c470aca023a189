// What collections do with entries of logs, and what reads of 4 and of 16 bytes find.
#include "tests/harness/logs.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::TxSettings;

INSTANTIATE_TEST_SUITE_P(Both, ReadEntries, testing::Bool(), read_entries_name);

TEST(ObjectLogs, ObjectsThatOnlyLogsKnowDieWithTheirEntries) {
  for (const Placement placement : {Placement::heap, Placement::dedicated, Placement::arena}) {
    LogFixture f(plain_logs(placement));
    atomically(f.tx, [&](Transaction& t) {
      for (int i = 0; i < 100; ++i) {
        Local<Cell> cell(f.mutator, t.create<Cell>());
        t.read(cell, &Cell::number);
        t.write(cell, &Cell::number, 5);
      }
      EXPECT_EQ(t.entries(), 300u);
      f.mutator.collect(false);
      EXPECT_EQ(t.entries(), 0u);
    });
    EXPECT_EQ(f.heap.statistics().dropped_dead + f.heap.statistics().dropped_subsumed, 300u);
  }
}

// Entries of the outer transaction are removed while an inner one runs: the inner one's first entry moves down.
TEST(ObjectLogs, LevelsFollowWhenEntriesGo) {
  for (const bool full : {false, true}) {
    LogFixture f(plain_logs());
    Local<Cell> kept(f.mutator, make_cell(f.mutator, 1)), other(f.mutator, make_cell(f.mutator, 10));
    atomically(f.tx, [&](Transaction& t) {
      for (int i = 0; i < 30; ++i) {
        Local<Cell> dead(f.mutator, t.create<Cell>());
        t.write(dead, &Cell::number, 5);
        t.read(other, &Cell::number);
      }
      t.write(kept, &Cell::number, 2);
      EXPECT_THROW(atomically(t,
                              [&](Transaction& inner) {
                                f.mutator.collect(full);
                                inner.write(kept, &Cell::number, 3);
                                inner.write(other, &Cell::number, 11);
                                f.mutator.collect(full);
                                throw std::runtime_error("inner");
                              }),
                   std::runtime_error);
      EXPECT_EQ(t.read(kept, &Cell::number), 2u);
      EXPECT_EQ(t.read(other, &Cell::number), 10u);
    });
    EXPECT_EQ(f.mutator.read(kept, &Cell::number), 2u);
  }
}

TEST_P(ReadEntries, AMinorCollectionLooksAtNewEntriesOnly) {
  for (const bool watermark : {true, false}) {
    TxSettings settings = plain_reads();
    settings.watermark = watermark;
    settings.compaction = gc::Compaction::off;
    LogFixture f(settings);
    Local<Cell> list(f.mutator, make_list(f.mutator, 0, 200));
    atomically(f.tx, [&](Transaction& t) {
      for (Local<Cell> at(f.mutator, list); at; at = t.read(at, &Cell::next)) {
      }
      f.mutator.collect(false);
      const auto before = f.heap.statistics().visited_entries;
      EXPECT_EQ(before, 200u);
      Local<Cell> fresh(f.mutator, t.create<Cell>());
      t.read(fresh, &Cell::number);
      f.mutator.collect(false);
      EXPECT_EQ(f.heap.statistics().visited_entries - before, watermark ? 1u : 201u);
      EXPECT_EQ(t.entries(), 201u);
      EXPECT_TRUE(t.validate());
    });
  }
}

// Some entries are removed. Those that stay, before and behind them, still refer to their objects, which have moved.
TEST_P(ReadEntries, FollowBeforeAndBehindThoseThatGo) {
  for (const bool full : {false, true}) {
    TxSettings settings = plain_reads();
    settings.compaction = gc::Compaction::off;
    LogFixture f(settings);
    Local<Cell> kept(f.mutator), dead(f.mutator);
    Local<gc::RefArray<Cell>> all(f.mutator, f.mutator.allocate_array<gc::RefArray<Cell>>(40));
    atomically(f.tx, [&](Transaction& t) {
      for (unsigned i = 0; i < 40; ++i) {
        kept = make_cell(f.mutator, i);
        f.mutator.store(all.get(), all->at<gc::Ref<Cell>>(i), kept.get());
        t.read(kept, &Cell::number);
        if (i < 10 || i >= 30) continue;
        dead = make_cell(f.mutator, 0);
        t.read(dead, &Cell::number);
      }
      kept = dead = nullptr;
      EXPECT_EQ(t.entries(), 60u);
      f.mutator.collect(full);
      EXPECT_EQ(t.entries(), 40u);
      EXPECT_TRUE(t.validate());
      // An entry that was not updated would take what now lies at the old place for its object.
      for (unsigned i = 0; i < 2000; ++i) make_cell(f.mutator, i)->stm().store(1234 + 2, std::memory_order_relaxed);
      EXPECT_TRUE(t.validate());
      f.mutator.collect(true);
      EXPECT_EQ(t.entries(), 40u);
      EXPECT_TRUE(t.validate());
    });
  }
}

// A read takes 4 bytes for an object that moves, and 16 for a large one, which lies elsewhere.
TEST(ObjectLogs, LargeObjectsGetLongReadsAndOthersShortOnes) {
  LogFixture f(plain_logs());
  using Words = gc::ValueArray<std::uint64_t>;
  Local<Words> large(f.mutator, f.mutator.allocate_array<Words>(4000));
  Local<Cell> list(f.mutator, make_list(f.mutator, 0, 100));
  const std::size_t before = f.heap.log_bytes();
  atomically(f.tx, [&](Transaction& t) {
    for (Local<Cell> at(f.mutator, list); at; at = t.read(at, &Cell::next)) t.read_at(large, 7);
    EXPECT_EQ(t.entries(), 200u);
    f.mutator.collect(false);
    EXPECT_TRUE(t.validate());
    f.mutator.collect(true);
    EXPECT_EQ(t.entries(), 101u) << "the large one once";
    EXPECT_TRUE(t.validate());
    t.write_at(large, 7, std::uint64_t{1});
    f.mutator.collect(true);
    EXPECT_EQ(t.entries(), 100u + 2) << "its read is subsumed";
  });
  EXPECT_EQ(f.tx.statistics().reads, 200u);
  EXPECT_EQ(f.tx.statistics().long_reads, 100u);
  EXPECT_LE(f.heap.log_bytes() - before, 100 * sizeof(gc::ShortRead) + 100 * sizeof(gc::ReadEntry) + 3 * 256);
}

// A change by another transaction after a read is found, whichever kind of entry the read has.
TEST_P(ReadEntries, AChangeAfterAReadIsFound) {
  for (const bool opaque : {true, false}) {
    TxSettings settings = plain_reads();
    settings.opaque = opaque;
    LogFixture f(settings);
    Mutator other(f.heap);
    Transaction rival(f.all, other);
    Local<Cell> read(f.mutator, make_cell(f.mutator, 1)), written(f.mutator, make_cell(f.mutator, 1));
    Local<Cell> theirs(other, read.get());
    unsigned attempts = 0;
    atomically(f.tx, [&](Transaction& t) {
      const auto seen = t.read(read, &Cell::number);
      if (++attempts == 1) {
        EXPECT_TRUE(t.validate());
        atomically(rival, [&](Transaction& r) { r.write(theirs, &Cell::number, 5); });
        EXPECT_FALSE(t.validate());
      }
      t.write(written, &Cell::number, seen + 1);
    });
    EXPECT_EQ(attempts, 2u);
    EXPECT_EQ(f.mutator.read(written, &Cell::number), 6u);
  }
}

// An extension accepts what was read before it; later changes are still found.
TEST_P(ReadEntries, AnExtendedSnapshotStillFindsLaterChanges) {
  LogFixture f(plain_reads());
  Mutator other(f.heap);
  Transaction rival(f.all, other);
  Local<Cell> first(f.mutator, make_cell(f.mutator, 1)), second(f.mutator, make_cell(f.mutator, 1));
  Local<Cell> their_first(other, first.get()), their_second(other, second.get());
  unsigned attempts = 0;
  atomically(f.tx, [&](Transaction& t) {
    t.read(first, &Cell::number);
    if (++attempts != 1) return;
    atomically(rival, [&](Transaction& r) { r.write(their_second, &Cell::number, 2); });
    EXPECT_EQ(t.read(second, &Cell::number), 2u);
    EXPECT_TRUE(t.validate());
    atomically(rival, [&](Transaction& r) { r.write(their_first, &Cell::number, 2); });
    EXPECT_FALSE(t.validate());
  });
  EXPECT_EQ(f.tx.statistics().extensions, 1u);
}

}  // namespace
}  // namespace loam::tests
