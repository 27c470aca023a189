// What logs keep, drop and skip, where their chunks lie, and what their filters filter.
#include "runtime/gc/logs/dedicated_store.hpp"
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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
  return {.memory_bytes = std::size_t{8} << 20, .nursery_bytes = std::size_t{512} << 10, .buffer_bytes = 4096};
}

struct Fixture {
  explicit Fixture(const TxSettings& settings) : all(heap, settings) {}
  Heap heap{roomy()};
  Transactions all;
  Mutator mutator{heap};
  Transaction tx{all, mutator};
};

TxSettings plain(Placement placement = Placement::dedicated, bool short_reads = true) {
  TxSettings settings;
  settings.short_reads = short_reads;
  settings.placement = placement;
  settings.chunk_bytes = 256;
  settings.hash = settings.bitmap = false;
  settings.compaction = gc::Compaction::every;
  return settings;
}

class ReadEntries : public testing::TestWithParam<bool> {
 protected:
  // Short reads, or 16 bytes for each.
  static TxSettings plain_reads() { return plain(Placement::dedicated, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Both, ReadEntries, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "short" : "long"); });

TEST_P(ReadEntries, DuplicatesAndSubsumedReadsLeaveBeforeACollection) {
  Fixture f(plain_reads());
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
  Fixture f(settings);
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
    Mutator::Native native(other);
    f.mutator.collect();
    EXPECT_FALSE(t.validate());
  });
  EXPECT_EQ(attempts, 2u);
  EXPECT_EQ(f.mutator.read(mine, &Cell::number), 2u);
}

TEST(ObjectLogs, ObjectsThatOnlyLogsKnowDieWithTheirEntries) {
  for (const Placement placement : {Placement::heap, Placement::dedicated, Placement::arena}) {
    Fixture f(plain(placement));
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

// Entries of the outer transaction go while an inner one runs: where the inner one's begin follows.
TEST(ObjectLogs, LevelsFollowWhenEntriesGo) {
  for (const bool full : {false, true}) {
    Fixture f(plain());
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
    Fixture f(settings);
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

// Some go, some stay, before and behind them: each of the others leads to its object, which has moved.
TEST_P(ReadEntries, FollowBeforeAndBehindThoseThatGo) {
  for (const bool full : {false, true}) {
    TxSettings settings = plain_reads();
    settings.compaction = gc::Compaction::off;
    Fixture f(settings);
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
      // An entry that stayed behind would take what lies at its old place now for its object.
      for (unsigned i = 0; i < 2000; ++i) make_cell(f.mutator, i)->stm().store(1234 + 2, std::memory_order_relaxed);
      EXPECT_TRUE(t.validate());
      f.mutator.collect(true);
      EXPECT_EQ(t.entries(), 40u);
      EXPECT_TRUE(t.validate());
    });
  }
}

// 4 bytes for an object that moves; 16 for a large one, which lies elsewhere.
TEST(ObjectLogs, LargeObjectsGetLongReadsAndOthersShortOnes) {
  Fixture f(plain());
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

// Without opacity an object can be in both logs: its short read is the older one. A compaction keeps that, because it is the
// one that is outdated.
TEST(ObjectLogs, TheOlderOfTwoReadsStays) {
  TxSettings settings = plain();
  settings.opaque = false;
  Fixture f(settings);
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
      Mutator::Native native(other);
      f.mutator.collect();
      EXPECT_EQ(t.entries(), 1u);
      EXPECT_EQ(t.validate(), !twice);
    });
    EXPECT_EQ(attempts, twice ? 2u : 1u);
  }
}

// What another transaction changes after a read is found, whichever entry the read has.
TEST_P(ReadEntries, AChangeAfterAReadIsFound) {
  for (const bool opaque : {true, false}) {
    TxSettings settings = plain_reads();
    settings.opaque = opaque;
    Fixture f(settings);
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

// An extension accepts what was read before; what changes after it is found all the same.
TEST_P(ReadEntries, AnExtendedSnapshotStillFindsLaterChanges) {
  Fixture f(plain_reads());
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

TEST(ObjectLogs, ACompactionThatDropsNothingSparesTheNextOnes) {
  TxSettings settings = plain();
  settings.compaction = gc::Compaction::full;
  Fixture f(settings);
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

// A long log is compacted where a sample of it says that this is worth while.
TEST_P(ReadEntries, ALongLogIsCompactedByASample) {
  constexpr std::size_t kCells = 6000;
  TxSettings settings = plain_reads();
  settings.compaction = gc::Compaction::full;
  Fixture f(settings);
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
  // One object that fills the log, and is in the sample or not.
  for (unsigned i = 0; i < 8; ++i) {
    Fixture g(settings);
    for (unsigned k = 0; k < i; ++k) make_cell(g.mutator, k);
    Local<Cell> cell(g.mutator, make_cell(g.mutator, 1));
    atomically(g.tx, [&](Transaction& t) {
      for (std::size_t k = 0; k < kCells; ++k) t.read(cell, &Cell::number);
      g.mutator.collect();
      EXPECT_EQ(t.entries(), 1u);
    });
  }
}

// Spared compactions are made up for before memory is refused: a log of duplicates alone never fills the heap.
TEST(ObjectLogs, NoMemoryIsRefusedBeforeDuplicatesHaveGone) {
  TxSettings settings = plain(Placement::dedicated, false);
  settings.chunk_bytes = 8192;
  settings.compaction = gc::Compaction::full;
  Fixture f(settings);
  Local<Cell> a(f.mutator, make_cell(f.mutator, 1));
  atomically(f.tx, [&](Transaction& t) {
    t.read(a, &Cell::number);
    f.mutator.collect(true);                                          // drops nothing
    for (unsigned i = 0; i < 1000000; ++i) t.read(a, &Cell::number);  // 16 MB
    EXPECT_LT(t.entries(), 600000u);
  });
}

TEST(ObjectLogs, FiltersKeepDuplicatesOut) {
  struct Row {
    bool hash, bitmap, locals;
    std::size_t entries;  // of ten reads, ten writes of an old object, ten writes of a new one
  };
  // Without a filter: reads come first, 10; 1 update and 10 undos; the same for the new object, which is made known
  // with an entry where local objects are.
  for (const Row row : {Row{false, false, false, 10 + 11 + 11}, Row{true, false, false, 1 + 2 + 2},
                        Row{false, true, false, 10 + 2 + 2}, Row{false, false, true, 10 + 11 + 1}}) {
    TxSettings settings = plain();
    settings.hash = row.hash;
    settings.bitmap = row.bitmap;
    settings.locals = row.locals;
    Fixture f(settings);
    Local<Cell> old(f.mutator, make_cell(f.mutator, 1));
    atomically(f.tx, [&](Transaction& t) {
      for (int i = 0; i < 10; ++i) t.read(old, &Cell::number);
      for (std::uint64_t i = 0; i < 10; ++i) t.write(old, &Cell::number, i);
      Local<Cell> fresh(f.mutator, t.create<Cell>());
      for (std::uint64_t i = 0; i < 10; ++i) t.write(fresh, &Cell::number, i);
      EXPECT_EQ(t.entries(), row.entries) << row.hash << row.bitmap << row.locals;
    });
  }
}

// The bitmap covers 128 words; further ones are logged each time.
TEST(ObjectLogs, WordsBeyondTheBitmapAreLoggedEachTime) {
  TxSettings settings = plain();
  settings.bitmap = true;
  Fixture f(settings);
  using Words = gc::ValueArray<std::uint64_t>;
  Local<Words> words(f.mutator, f.mutator.allocate_array<Words>(300));
  EXPECT_THROW(atomically(f.tx,
                          [&](Transaction& t) {
                            for (const std::size_t index : {0u, 124u, 125u, 299u})
                              for (std::uint64_t i = 1; i <= 5; ++i) t.write_at(words, index, i);
                            // 24 bytes of header and length: words 0 to 124 are among the first 128.
                            EXPECT_EQ(t.entries(), 1u + 1 + 1 + 5 + 5);
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(words->at<gc::Value<std::uint64_t>>(i).slot().load(), 0u);
}

TEST(ObjectLogs, SmallValuesAreUndoneWithoutTheirNeighboursOfOtherWords) {
  Fixture f(plain());
  using Bytes = gc::ValueArray<std::uint8_t>;
  Local<Bytes> bytes(f.mutator, f.mutator.allocate_array<Bytes>(20));
  for (std::size_t i = 0; i < 20; ++i) bytes->at<gc::Value<std::uint8_t>>(i).init(static_cast<std::uint8_t>(i));
  EXPECT_THROW(atomically(f.tx,
                          [&](Transaction& t) {
                            for (std::size_t i = 0; i < 20; i += 3) t.write_at(bytes, i, 200);
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(bytes->at<gc::Value<std::uint8_t>>(i).slot().load(), i);
}

TEST(ObjectLogs, ChunksGoBackWhenATransactionEnds) {
  TxSettings settings = plain();
  Fixture f(settings);
  Local<Cell> list(f.mutator, make_list(f.mutator, 0, 1000));
  const auto walk = [&](Transaction& t) {
    for (Local<Cell> at(f.mutator, list); at; at = t.read(at, &Cell::next)) {
    }
  };
  atomically(f.tx, walk);
  const std::size_t once = f.heap.log_bytes();
  EXPECT_GE(once, 1000 * sizeof(gc::ShortRead));
  for (int i = 0; i < 20; ++i) atomically(f.tx, walk);
  EXPECT_EQ(f.heap.log_bytes(), once) << "the same chunks serve again";
  for (int i = 0; i < 2000; ++i) atomically(f.tx, [](Transaction&) {});
  EXPECT_LT(f.heap.log_bytes(), once / 2) << "what is not needed goes back to the system";
}

TEST(ObjectLogs, AnArenaShrinksAfterShorterTransactions) {
  TxSettings settings = plain(Placement::arena, false);
  Fixture f(settings);
  Local<Cell> list(f.mutator, make_list(f.mutator, 0, 30000));
  atomically(f.tx, [&](Transaction& t) {
    for (Local<Cell> at(f.mutator, list); at; at = t.read(at, &Cell::next)) {
    }
  });
  const std::size_t large = f.heap.log_bytes();
  EXPECT_GE(large, 30000 * sizeof(gc::ReadEntry));
  for (int i = 0; i < 10; ++i) atomically(f.tx, [](Transaction&) {});
  EXPECT_LT(f.heap.log_bytes(), large);
  atomically(f.tx, [&](Transaction& t) {
    for (Local<Cell> at(f.mutator, list); at; at = t.read(at, &Cell::next)) t.write(at, &Cell::number, 1);
  });
}

TEST(ObjectLogs, FreeChunksUnderALockAndLockFree) {
  for (const bool lock_free : {false, true}) {
    constexpr std::uint32_t kChunks = 64;
    gc::FreeChunks free(kChunks, lock_free);
    for (std::uint32_t i = 0; i < kChunks; ++i) free.push(i);
    std::vector<std::atomic<int>> held(kChunks);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        std::uint32_t mine[4];
        for (int round = 0; round < 5000; ++round) {
          for (auto& chunk : mine) {
            chunk = free.pop();
            if (chunk == gc::FreeChunks::kNone || held[chunk].fetch_add(1) != 0) ++wrong;
          }
          for (const auto chunk : mine) {
            held[chunk].fetch_sub(1);
            free.push(chunk);
          }
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << lock_free;
    std::vector<bool> seen(kChunks);
    for (std::uint32_t i = 0; i < kChunks; ++i) seen[free.pop()] = true;
    EXPECT_EQ(free.pop(), gc::FreeChunks::kNone);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kChunks);
  }
}

TEST(ObjectLogs, UnloggedOnesTakeNoMemory) {
  Fixture f(plain(Placement::unlogged));
  Local<Cell> list(f.mutator, make_list(f.mutator, 0, 3000));
  const std::size_t before = f.heap.log_bytes();
  atomically(f.tx, [&](Transaction& t) {
    std::uint64_t count = 0;
    for (Local<Cell> at(f.mutator, list); at; at = t.read(at, &Cell::next))
      if (++count % 1000 == 0) f.mutator.collect(false);
  });
  EXPECT_EQ(f.heap.log_bytes(), before);
}

}  // namespace
}  // namespace loam::tests
