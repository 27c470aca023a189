// Which reads are removed from a log before a collection, and when this pays off.
#include "tests/harness/logs.hpp"

#include <gtest/gtest.h>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::TxSettings;

INSTANTIATE_TEST_SUITE_P(Both, ReadEntries, testing::Bool(), read_entries_name);

TEST_P(ReadEntries, DuplicatesAndSubsumedReadsLeaveBeforeACollection) {
  LogFixture f(plain_reads());
  Local<Cell> a(f.mutator, make_cell(f.mutator, 1)), b(f.mutator, make_cell(f.mutator, 2));
  f.mutator.collect();
  atomically(f.tx, [&](Transaction& t) {
    for (int i = 0; i < 10; ++i) {
      t.read(a, &Cell::number);
      t.read(b, &Cell::number);
    }
    t.write(b, &Cell::number, 3);
    EXPECT_EQ(t.entries(), 20u + 1 + 1);
    f.mutator.collect();
    EXPECT_EQ(t.entries(), 1u + 1 + 1) << "one read of a; b's are subsumed by its update";
    EXPECT_TRUE(t.validate());
  });
  const auto counts = f.heap.statistics();
  EXPECT_EQ(counts.dropped_duplicates, 9u);
  EXPECT_EQ(counts.dropped_subsumed, 10u);
  EXPECT_EQ(f.tx.statistics().reads, 20u) << "what was dropped was made all the same";
}

TEST_P(ReadEntries, ASnapshotThatIsOutdatedStaysInTheLog) {
  TxSettings settings = plain_reads();
  settings.opaque = false;
  LogFixture f(settings);
  Mutator other(f.heap);
  Transaction rival(f.all, other);
  Local<Cell> mine(f.mutator, make_cell(f.mutator, 1)), theirs(other, mine.get());
  unsigned attempts = 0;
  atomically(f.tx, [&](Transaction& t) {
    if (++attempts == 2) return;
    t.read(mine, &Cell::number);
    atomically(rival, [&](Transaction& r) { r.write(theirs, &Cell::number, 2); });
    // Enlisted for update at the newer version: the older read must not count as subsumed.
    t.write(mine, &Cell::number, 3);
    f.mutator.collect();
    EXPECT_FALSE(t.validate());
  });
  EXPECT_EQ(attempts, 2u);
  EXPECT_EQ(f.mutator.read(mine, &Cell::number), 2u);
}

// Without opacity an object can be in both logs: its short read is the older one. A compaction keeps the older read,
// because that read is the one that is outdated.
TEST(ObjectLogs, TheOlderOfTwoReadsStays) {
  TxSettings settings = plain_logs();
  settings.opaque = false;
  LogFixture f(settings);
  Mutator other(f.heap);
  Transaction rival(f.all, other);
  Local<Cell> mine(f.mutator, make_cell(f.mutator, 1)), theirs(other, mine.get());
  for (const bool twice : {true, false}) {
    unsigned attempts = 0;
    atomically(f.tx, [&](Transaction& t) {
      if (++attempts == 2) return;
      if (twice) t.read(mine, &Cell::number);
      atomically(rival, [&](Transaction& r) { r.write(theirs, &Cell::number, 2); });
      EXPECT_EQ(t.read(mine, &Cell::number), 2u);
      EXPECT_EQ(t.entries(), twice ? 2u : 1u);
      f.mutator.collect();
      EXPECT_EQ(t.entries(), 1u);
      EXPECT_EQ(t.validate(), !twice);
    });
    EXPECT_EQ(attempts, twice ? 2u : 1u);
  }
}

TEST(ObjectLogs, ACompactionThatDropsNothingSparesTheNextOnes) {
  TxSettings settings = plain_logs();
  settings.compaction = gc::Compaction::full;
  LogFixture f(settings);
  Local<Cell> a(f.mutator, make_cell(f.mutator, 1));
  const auto dropped = [&] { return f.heap.statistics().dropped_duplicates; };
  atomically(f.tx, [&](Transaction& t) {
    const auto read_twice = [&] {
      t.read(a, &Cell::number);
      t.read(a, &Cell::number);
    };
    read_twice();
    f.mutator.collect(true);
    EXPECT_EQ(dropped(), 1u);
    f.mutator.collect(true);  // drops nothing
    read_twice();
    for (unsigned i = 0; i < 15; ++i) f.mutator.collect(true);
    EXPECT_EQ(dropped(), 1u);
    f.mutator.collect(true);
    EXPECT_EQ(dropped(), 3u);
  });
}

// A long log is compacted if a sample of it says that this pays off.
TEST_P(ReadEntries, ALongLogIsCompactedByASample) {
  constexpr std::size_t kCells = 6000;
  TxSettings settings = plain_reads();
  settings.compaction = gc::Compaction::full;
  LogFixture f(settings);
  Local<Cell> list(f.mutator, make_list(f.mutator, 0, kCells));
  const auto read_first = [&](Transaction& t, std::size_t count) {
    for (Local<Cell> at(f.mutator, list); count-- != 0 && at; at = t.read(at, &Cell::next)) {
    }
  };
  atomically(f.tx, [&](Transaction& t) {
    read_first(t, kCells);
    read_first(t, kCells);
    f.mutator.collect();
    EXPECT_EQ(t.entries(), kCells) << "half of it is superfluous";
    read_first(t, kCells / 100);
    f.mutator.collect();
    EXPECT_EQ(t.entries(), kCells + kCells / 100) << "a hundredth of it";
    EXPECT_TRUE(t.validate());
  });
  // Reads of one object fill the log; that object may be in the sample or not. 64 other objects are read once each, and
  // some of them are in the sample.
  for (unsigned i = 0; i < 8; ++i) {
    LogFixture g(settings);
    for (unsigned k = 0; k < i; ++k) make_cell(g.mutator, k);
    Local<Cell> cell(g.mutator, make_cell(g.mutator, 1)), others(g.mutator, make_list(g.mutator, 0, 64));
    atomically(g.tx, [&](Transaction& t) {
      for (Local<Cell> at(g.mutator, others); at; at = t.read(at, &Cell::next)) {
      }
      for (std::size_t k = 0; k < kCells; ++k) t.read(cell, &Cell::number);
      g.mutator.collect();
      EXPECT_EQ(t.entries(), 1u + 64);
    });
  }
}

// No memory is left for another chunk. The only chunk is full of duplicates, so it is used again after a compaction.
TEST(ObjectLogs, ALogThatWasShortenedNeedsNoMemory) {
  TxSettings settings = plain_logs(Placement::dedicated, false);
  settings.chunk_bytes = 8192;
  settings.compaction = gc::Compaction::full;
  LogFixture f(settings, {.memory_bytes = std::size_t{1} << 20, .nursery_bytes = std::size_t{64} << 10});
  Local<Cell> a(f.mutator, make_cell(f.mutator, 1)), live(f.mutator);
  const auto fill = [&] {
    for (;;) {
      Cell* const cell = make_cell(f.mutator, 2);
      cell->next.init(live.get());
      live = cell;
    }
  };
  EXPECT_THROW(fill(), gc::OutOfMemory);
  const std::size_t before = f.heap.log_bytes();
  atomically(f.tx, [&](Transaction& t) {
    for (unsigned i = 0; i < 3000; ++i) t.read(a, &Cell::number);
    EXPECT_LT(t.entries(), 600u);
  });
  EXPECT_EQ(f.heap.log_bytes(), before);
  EXPECT_EQ(f.tx.statistics().reads, 3000u);
}

// Before memory is refused, compactions that were skipped are done: a log of duplicates alone never fills the heap.
TEST(ObjectLogs, NoMemoryIsRefusedBeforeDuplicatesHaveGone) {
  TxSettings settings = plain_logs(Placement::dedicated, false);
  settings.chunk_bytes = 8192;
  settings.compaction = gc::Compaction::full;
  LogFixture f(settings);
  Local<Cell> a(f.mutator, make_cell(f.mutator, 1));
  atomically(f.tx, [&](Transaction& t) {
    t.read(a, &Cell::number);
    f.mutator.collect(true);                                          // drops nothing
    for (unsigned i = 0; i < 1000000; ++i) t.read(a, &Cell::number);  // 16 MB
    EXPECT_LT(t.entries(), 600000u);
  });
}

}  // namespace
}  // namespace loam::tests
