// Object transactions under every placement of logs, with collections forced where they hurt.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::Transactions;
using gc::TxSettings;

struct Variant {
  const char* name;
  Placement placement;
  bool nursery = false;
  unsigned collect_every = 0;
  bool always_full = false;
  bool collect_at_enlistments = false;
  bool lock_free_chunks = false;
  bool locals = false;
  bool opaque = true;
  gc::Compaction compaction = gc::Compaction::full;
  bool short_reads = true;
};

constexpr Variant kVariants[] = {
    {.name = "heap", .placement = Placement::heap},
    {.name = "heap_collecting", .placement = Placement::heap, .collect_every = 1, .collect_at_enlistments = true},
    {.name = "heap_collecting_full",
     .placement = Placement::heap,
     .collect_every = 1,
     .always_full = true,
     .compaction = gc::Compaction::every},
    {.name = "dedicated", .placement = Placement::dedicated},
    {.name = "dedicated_collecting",
     .placement = Placement::dedicated,
     .collect_every = 1,
     .collect_at_enlistments = true,
     .lock_free_chunks = true},
    {.name = "dedicated_locals", .placement = Placement::dedicated, .collect_every = 3, .locals = true},
    {.name = "dedicated_unchecked",
     .placement = Placement::dedicated,
     .collect_every = 2,
     .opaque = false,
     .compaction = gc::Compaction::every},
    {.name = "dedicated_long_reads",
     .placement = Placement::dedicated,
     .collect_every = 1,
     .collect_at_enlistments = true,
     .short_reads = false},
    {.name = "arena_collecting",
     .placement = Placement::arena,
     .collect_every = 1,
     .always_full = true,
     .collect_at_enlistments = true},
    {.name = "nursery", .placement = Placement::arena, .nursery = true},
    {.name = "nursery_collecting", .placement = Placement::arena, .nursery = true, .collect_every = 4, .locals = true},
    {.name = "nursery_unchecked", .placement = Placement::arena, .nursery = true, .collect_every = 5, .opaque = false},
};

TxSettings settings_of(const Variant& variant) {
  return {.placement = variant.placement,
          .chunk_bytes = 256,
          .lock_free_chunks = variant.lock_free_chunks,
          .short_reads = variant.short_reads,
          .locals = variant.locals,
          .opaque = variant.opaque,
          .nursery = variant.nursery,
          .compaction = variant.compaction,
          .collect_at_enlistments = variant.collect_at_enlistments};
}

class ObjectTransactions : public testing::TestWithParam<Variant> {
 protected:
  static gc::Settings heap_settings() {
    gc::Settings settings = small_heap(GetParam().collect_every, GetParam().always_full);
    settings.memory_bytes = std::size_t{4} << 20;
    return settings;
  }

  Heap heap{heap_settings()};
  Transactions all{heap, settings_of(GetParam())};
  Mutator mutator{heap};
  Transaction tx{all, mutator};
};

// Appends cells to a list, inside of a transaction: reads every element, writes the last.
void append(Transaction& tx, const Local<Cell>& list, std::uint64_t number) {
  Local<Cell> at(tx.mutator(), list), next(tx.mutator());
  while ((next = tx.read(at, &Cell::next))) at = next;
  Cell* const cell = tx.create<Cell>();
  cell->number.init(number);
  next = cell;
  tx.write(at, &Cell::next, next);
}

TEST_P(ObjectTransactions, CommitsKeepWhatWasWritten) {
  Local<Cell> list(mutator, make_cell(mutator, 0));
  for (std::uint64_t i = 1; i <= 30; ++i) atomically(tx, [&](Transaction& t) { append(t, list, i); });
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 31));
  EXPECT_EQ(tx.statistics().commits, 30u);
  EXPECT_EQ(tx.entries(), 0u) << "T1";
  for (Local<Cell> cell(mutator, list); cell; cell = mutator.read(cell, &Cell::next))
    EXPECT_FALSE(gc::is_owned(cell->stm().load()));
}

TEST_P(ObjectTransactions, AnExceptionTakesEverythingBack) {
  Local<Cell> list(mutator, make_list(mutator, 0, 20));
  mutator.collect(false);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(atomically(tx,
                            [&](Transaction& t) {
                              Local<Cell> at(mutator, list), next(mutator), fresh(mutator);
                              for (; at; at = next) {
                                next = t.read(at, &Cell::next);
                                t.write(at, &Cell::number, 1000 + t.read(at, &Cell::number));
                                fresh = t.create<Cell>();
                                t.write(at, &Cell::other, fresh);
                                t.write(at, &Cell::next, nullptr);
                              }
                              throw std::runtime_error("no");
                            }),
                 std::runtime_error);
    EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 20));
    for (Local<Cell> cell(mutator, list); cell; cell = mutator.read(cell, &Cell::next))
      EXPECT_EQ(mutator.read(cell, &Cell::other), nullptr);
    heap.verify(mutator);
  }
  EXPECT_EQ(tx.statistics().aborts, 3u);
  churn(mutator, 2);
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 20));
}

TEST_P(ObjectTransactions, OldValuesLiveWhileATransactionMayTakeThemBack) {
  Local<Cell> root(mutator, make_cell(mutator, 0));
  mutator.write(root, &Cell::next, make_list(mutator, 1, 9));
  EXPECT_THROW(atomically(tx,
                          [&](Transaction& t) {
                            t.write(root, &Cell::next, nullptr);
                            mutator.collect(false);
                            churn(mutator, 1);
                            mutator.collect(true);
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  EXPECT_EQ(numbers_of(mutator, root.get()), counted(0, 10));
}

TEST_P(ObjectTransactions, NestedTransactionsTakeBackTheirOwnPart) {
  Local<Cell> list(mutator, make_list(mutator, 0, 5));
  atomically(tx, [&](Transaction& t) {
    append(t, list, 5);
    t.write(list, &Cell::number, 100);
    EXPECT_THROW(atomically(t,
                            [&](Transaction& inner) {
                              EXPECT_EQ(inner.depth(), 2u);
                              inner.write(list, &Cell::number, 200);
                              append(inner, list, 6);
                              mutator.collect(true);
                              throw std::runtime_error("inner");
                            }),
                 std::runtime_error);
    EXPECT_EQ(t.read(list, &Cell::number), 100u);
    atomically(t, [&](Transaction& inner) {
      inner.write(list, &Cell::number, 0);
      append(inner, list, 6);
    });
    mutator.collect(false);
  });
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 7));
}

TEST_P(ObjectTransactions, WhatAnInnerOneMadeAndCommittedIsUndoneByALaterInnerOne) {
  Local<Cell> list(mutator, make_cell(mutator, 0));
  atomically(tx, [&](Transaction& t) {
    Local<Cell> made(mutator);
    atomically(t, [&](Transaction& inner) {
      made = inner.create<Cell>();
      made->number.init(1);
    });
    EXPECT_THROW(atomically(t,
                            [&](Transaction& inner) {
                              inner.write(made, &Cell::number, 2);
                              throw std::runtime_error("inner");
                            }),
                 std::runtime_error);
    EXPECT_EQ(t.read(made, &Cell::number), 1u);
    t.write(list, &Cell::next, made);
  });
  EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 2));
}

TEST_P(ObjectTransactions, LogsOfManyChunksSurviveCollectionsInTheMiddle) {
  Local<Cell> list(mutator, make_list(mutator, 0, 600));
  for (const bool commits : {false, true}) {
    try {
      atomically(tx, [&](Transaction& t) {
        std::uint64_t count = 0;
        for (Local<Cell> at(mutator, list); at; at = t.read(at, &Cell::next)) {
          t.write(at, &Cell::number, t.read(at, &Cell::number) + 1000);
          if (++count % 150 == 0) mutator.collect(count % 300 == 0);
        }
        if (!commits) throw std::runtime_error("no");
      });
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(numbers_of(mutator, list.get()), counted(commits ? 1000 : 0, 600));
  }
}

TEST_P(ObjectTransactions, TwoThreadsIncrementWithoutALoss) {
  constexpr unsigned kTimes = 300;
  Global<Cell> shared(heap);
  shared.set(make_cell(mutator, 0));
  const auto work = [&](Mutator& own, Transaction& t) {
    Local<Cell> cell(own, shared.get());
    for (unsigned i = 0; i < kTimes; ++i)
      atomically(t, [&](Transaction& running) {
        running.write(cell, &Cell::number, running.read(cell, &Cell::number) + 1);
        if (i % 16 == 0) own.allocate<Cell>();
      });
  };
  std::optional<Mutator::Native> waiting;
  std::thread other([&] {
    Mutator own(heap);
    Transaction t(all, own);
    work(own, t);
  });
  work(mutator, tx);
  waiting.emplace(mutator);
  other.join();
  waiting.reset();
  EXPECT_EQ(shared.get()->number.slot().load(), 2 * kTimes);
}

TEST_P(ObjectTransactions, AnExceptionEndsRunningAlone) {
  TxSettings settings = settings_of(GetParam());
  settings.alone_after = 2;
  Transactions soon_alone(heap, settings);
  const auto in_thread = [&](auto body) {
    const Mutator::Native native(mutator);
    std::thread([&] {
      Mutator own(heap);
      Transaction t(soon_alone, own);
      body(t);
    }).join();
  };
  in_thread([](Transaction& t) {
    unsigned attempts = 0;
    EXPECT_THROW(atomically(t,
                            [&](Transaction& running) {
                              if (++attempts <= 2) running.retry();
                              throw std::runtime_error("no");
                            }),
                 std::runtime_error);
    EXPECT_EQ(attempts, 3u);
    EXPECT_EQ(t.statistics().alone, 1u);
    atomically(t, [](Transaction&) {});
  });
  in_thread([](Transaction& t) { atomically(t, [](Transaction&) {}); });
}

// Money moves between accounts; a reader must always see the same sum.
TEST_P(ObjectTransactions, ReadersSeeOneStateOfMemory) {
  constexpr std::size_t kAccounts = 8;
  Global<gc::RefArray<Cell>> bank(heap);
  bank.set(mutator.allocate_array<gc::RefArray<Cell>>(kAccounts));
  for (std::size_t i = 0; i < kAccounts; ++i) {
    Cell* const cell = make_cell(mutator, 100);
    mutator.store(bank.get(), bank.get()->at<gc::Ref<Cell>>(i), cell);
  }
  std::atomic<bool> done{false};
  std::uint64_t wrong = 0;
  std::thread other([&] {
    Mutator own(heap);
    Transaction t(all, own);
    Local<gc::RefArray<Cell>> accounts(own, bank.get());
    Local<Cell> from(own), to(own);
    for (unsigned i = 0; i < 400; ++i)
      atomically(t, [&](Transaction& running) {
        from = running.read_at(accounts, i % kAccounts);
        to = running.read_at(accounts, (i * 3 + 1) % kAccounts);
        running.write(from, &Cell::number, running.read(from, &Cell::number) - 5);
        running.write(to, &Cell::number, running.read(to, &Cell::number) + 5);
      });
    done = true;
  });
  Local<gc::RefArray<Cell>> accounts(mutator, bank.get());
  Local<Cell> cell(mutator);
  do {
    const auto sum = atomically(tx, [&](Transaction& t) {
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < kAccounts; ++i) {
        cell = t.read_at(accounts, i);
        total += t.read(cell, &Cell::number);
      }
      return total;
    });
    wrong += sum != kAccounts * 100;
  } while (!done);
  {
    Mutator::Native native(mutator);
    other.join();
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(ObjectTransactions, LogsOverTheirBoundAreAnError) {
  TxSettings settings = settings_of(GetParam());
  settings.log_bytes_max = 4096;  // seen where a log grows
  settings.hash = settings.bitmap = false;
  Transactions bounded(heap, settings);
  Mutator::Native native(mutator);
  std::thread([&] {
    Mutator own(heap);
    Transaction t(bounded, own);
    Local<Cell> cell(own, make_cell(own, 7));
    EXPECT_THROW(atomically(t,
                            [&](Transaction& running) {
                              for (std::uint64_t i = 0; i < 100000; ++i) running.write(cell, &Cell::number, i);
                            }),
                 gc::LogsTooLong);
    EXPECT_EQ(own.read(cell, &Cell::number), 7u);
    atomically(t, [&](Transaction& running) { running.write(cell, &Cell::number, 8); });
    EXPECT_EQ(own.read(cell, &Cell::number), 8u);
  }).join();
}

TEST(ObjectTransactionSettings, OutOfRangeEndTheProgramWithTheirLimits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Heap heap(small_heap());
  EXPECT_DEATH(Transactions(heap, {.chunk_bytes = 100}), "chunk_bytes=100: a multiple of 8 from 256 to below 16384");
  EXPECT_DEATH(Transactions(heap, {.chunk_bytes = 257}), "chunk_bytes=257: a multiple of 8");
  EXPECT_DEATH(Transactions(heap, {.placement = Placement::arena, .checked_allocation = true}),
               "checked_allocation: of logs in the dedicated heap only");
  gc::Settings buffers = small_heap();
  buffers.buffer_bytes = 100;
  EXPECT_DEATH(Heap{buffers}, "buffer_bytes=100: from 1024 to a quarter of the nursery");
}

TEST(ObjectTransactionSettings, LogsTooLongNamesTheirBytesAndTheirBound) {
  EXPECT_STREQ(gc::LogsTooLong(5000, 4096).what(),
               "a transaction's logs have 5000 bytes, at most 4096 (split it, or raise TxSettings::log_bytes_max)");
}

TEST(ObjectTransactionSettings, NestingTooDeepEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Heap heap(small_heap());
        Transactions all(heap, {});
        Mutator mutator(heap);
        Transaction tx(all, mutator);
        const auto nest = [](const auto& self, Transaction& t) -> void {
          atomically(t, [&](Transaction& inner) { self(self, inner); });
        };
        nest(nest, tx);
      },
      "transactions nested 65 deep: at most 64");
}

INSTANTIATE_TEST_SUITE_P(Each, ObjectTransactions, testing::ValuesIn(kVariants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace loam::tests
