// Where chunks of logs lie, and when their memory is returned.
#include "runtime/gc/logs/dedicated_store.hpp"
#include "tests/harness/logs.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::TxSettings;

// Reads of 16 bytes each; duplicates are logged too.
void read_list(Transaction& t, const Local<Cell>& list, unsigned times) {
  for (; times != 0; --times)
    for (Local<Cell> at(t.mutator(), list); at; at = t.read(at, &Cell::next)) {
    }
}

TxSettings long_logs(Placement placement) {
  TxSettings settings = plain_logs(placement, false);
  settings.chunk_bytes = 8192;
  settings.compaction = gc::Compaction::off;
  return settings;
}

constexpr gc::Settings kFourMegabytes{
    .memory_bytes = std::size_t{4} << 20, .nursery_bytes = std::size_t{256} << 10, .buffer_bytes = 4096};

TEST(ObjectLogs, ChunksGoBackWhenATransactionEnds) {
  TxSettings settings = plain_logs();
  LogFixture f(settings);
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
  TxSettings settings = plain_logs(Placement::arena, false);
  LogFixture f(settings);
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

// Live objects fill the memory that a long transaction's logs no longer use, without a full collection.
TEST(ObjectLogs, MemoryWithoutEntriesGoesBeforeAFullCollection) {
  for (const Placement placement : {Placement::dedicated, Placement::arena}) {
    LogFixture f(long_logs(placement), kFourMegabytes);
    Local<Cell> list(f.mutator, make_list(f.mutator, 0, 1000));
    const auto walk = [&](Transaction& t) { read_list(t, list, 60); };
    atomically(f.tx, walk);
    const std::size_t once = f.heap.log_bytes();
    EXPECT_GE(once, 60000 * sizeof(gc::ReadEntry));
    // 1.45 MiB: a half has at most 1.4 MiB while the logs keep their memory, and 1.7 MiB after they returned it.
    constexpr std::uint64_t kLive = 38000;
    Local<Cell> live(f.mutator, make_list(f.mutator, 0, kLive));
    const auto counts = f.heap.statistics();
    EXPECT_EQ(counts.full, 0u);
    EXPECT_LE(f.heap.log_bytes(), std::size_t{256} << 10);
    EXPECT_EQ(counts.returned_log_bytes, once - f.heap.log_bytes());
    EXPECT_EQ(numbers_of(f.mutator, live.get()), counted(0, kLive));
    live = nullptr;
    atomically(f.tx, walk);
    EXPECT_GE(f.heap.log_bytes(), 60000 * sizeof(gc::ReadEntry));
  }
}

TEST(ObjectLogs, MemoryWithEntriesStaysWhenTheRestGoes) {
  for (const Placement placement : {Placement::dedicated, Placement::arena}) {
    LogFixture f(long_logs(placement));
    Mutator other(f.heap);
    Transaction rival(f.all, other);
    Local<Cell> list(f.mutator, make_list(f.mutator, 0, 1000));
    Local<Cell> last(f.mutator, make_cell(f.mutator, 7)), theirs(other, last.get());
    atomically(f.tx, [&](Transaction& t) { read_list(t, list, 30); });
    const std::size_t once = f.heap.log_bytes();
    atomically(f.tx, [&](Transaction& t) {
      read_list(t, list, 6);
      t.read(last, &Cell::number);
      f.mutator.collect();
      EXPECT_LT(f.heap.log_bytes(), once * 3 / 4);
      EXPECT_GE(f.heap.log_bytes(), t.entries() * sizeof(gc::ReadEntry));
      EXPECT_EQ(t.entries(), 6001u);
      EXPECT_TRUE(t.validate());
      read_list(t, list, 10);
      EXPECT_EQ(t.entries(), 16001u);
      EXPECT_TRUE(t.validate());
      atomically(rival, [&](Transaction& r) { r.write(theirs, &Cell::number, 8); });
      EXPECT_FALSE(t.validate());
    });
  }
}

// The last entry ends where a step of 64 KiB ends, so the next entry needs another step.
TEST(ObjectLogs, AnArenaKeepsRoomForTheNextEntry) {
  TxSettings settings = plain_logs(Placement::arena);
  settings.compaction = gc::Compaction::off;
  LogFixture f(settings);
  constexpr std::size_t kInAStep = ((std::size_t{64} << 10) - sizeof(gc::LogChunk)) / sizeof(gc::ShortRead);
  Local<Cell> cell(f.mutator, make_cell(f.mutator, 1));
  const std::size_t empty = f.heap.log_bytes();
  atomically(f.tx, [&](Transaction& t) {
    for (std::size_t i = 0; i < kInAStep; ++i) t.read(cell, &Cell::number);
    EXPECT_EQ(f.heap.log_bytes(), empty + (std::size_t{64} << 10));
    f.mutator.collect();
    EXPECT_EQ(f.heap.log_bytes(), empty + (std::size_t{64} << 10));
    t.read(cell, &Cell::number);
    EXPECT_EQ(t.entries(), kInAStep + 1);
  });
}

// A full collection that removes duplicates returns their memory, so that objects can use it at once.
TEST(ObjectLogs, MemoryOfDuplicatesServesObjects) {
  TxSettings settings = long_logs(Placement::dedicated);
  settings.compaction = gc::Compaction::full;
  LogFixture f(settings, kFourMegabytes);
  Local<Cell> cell(f.mutator, make_cell(f.mutator, 1));
  atomically(f.tx, [&](Transaction& t) {
    for (unsigned i = 0; i < 100000; ++i) t.read(cell, &Cell::number);
    EXPECT_GE(f.heap.log_bytes(), 100000 * sizeof(gc::ReadEntry));
    // Beside logs of 1.6 MB each half would have only 1.1 MB.
    f.mutator.allocate_array<gc::ValueArray<std::uint64_t>>(300000);
    EXPECT_EQ(f.heap.statistics().full, 1u);
    EXPECT_LE(f.heap.log_bytes(), std::size_t{64} << 10);
    EXPECT_EQ(t.entries(), 1u);
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
  LogFixture f(plain_logs(Placement::unlogged));
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
