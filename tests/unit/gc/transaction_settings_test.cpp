// Every combination of the settings of transactions: threads move money between accounts, and cancel transactions at one
// and at two levels that have made objects; readers, and everybody at the end, must see the same sum.
#include "runtime/gc/checking.hpp"
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdint>
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
using gc::Placement;
using gc::Transaction;
using gc::Transactions;
using gc::TxSettings;
using Cells = gc::RefArray<Cell>;

struct Cancelled {};

constexpr std::uint64_t kAccounts = 6, kEach = 100;
// Large enough to lie outside of the range of short reads.
constexpr std::size_t kLength = gc::kLargeBytes / sizeof(void*);

gc::Settings heap_settings(bool collects) {
  return {.memory_bytes = std::size_t{1} << 20,
          .nursery_bytes = std::size_t{64} << 10,
          .buffer_bytes = 2048,
          .collect_every = collects ? 61U : 0U};
}

class Bank {
 public:
  Bank(Heap& heap, Mutator& mutator) : accounts_(heap) {
    Local<Cells> accounts(mutator, mutator.allocate_array<Cells>(kLength));
    for (std::size_t i = 0; i < kAccounts; ++i) {
      Cell* const cell = make_cell(mutator, kEach);
      mutator.store(accounts.get(), accounts->at<gc::Ref<Cell>>(i), cell);
    }
    accounts_.set(accounts.get());
  }

  // returns how many committed transactions have seen a wrong sum
  template <class Thread, class Tx>
  std::uint64_t use(Thread& mutator, Tx& tx, unsigned seed, unsigned rounds) {
    Local<Cells> all(mutator, accounts_.get());
    Local<Cell> a(mutator), b(mutator), made(mutator);
    std::uint64_t wrong = 0;
    for (unsigned i = 0; i < rounds; ++i) {
      const std::size_t from = (i * 5 + seed) % kAccounts, to = (i * 3 + seed * 2 + 1) % kAccounts;
      const auto add = [&](Local<Cell>& cell, std::size_t index, std::uint64_t more) {
        cell = tx.read_at(all, index);
        tx.write(cell, &Cell::number, tx.read(cell, &Cell::number) + more);
      };
      const auto make = [&](unsigned count) {
        for (; count != 0; --count) {
          made = tx.template create<Cell>();
          made->next.init(a.get());
          tx.write(a, &Cell::other, made);
        }
      };
      const auto cancelled = [&](auto body) {
        try {
          atomically(tx, [&](Transaction&) {
            body();
            throw Cancelled();
          });
        } catch (const Cancelled&) {
        }
      };
      switch (i % 6) {
        case 0:
          wrong += atomically(tx, [&](Transaction&) {
                     std::uint64_t sum = 0;
                     for (std::size_t k = 0; k < kAccounts; ++k) {
                       a = tx.read_at(all, k);
                       sum += tx.read(a, &Cell::number);
                     }
                     return sum;
                   }) != kAccounts * kEach;
          break;
        case 1:
          cancelled([&] {
            add(a, from, 1000);
            make(100);
          });
          break;
        case 2:  // a part is cancelled, and so is what is around it: each has made more than a buffer
          cancelled([&] {
            add(a, from, 1000);
            make(40);
            cancelled([&] {
              add(a, to, 77);
              make(70);
            });
            make(40);
          });
          break;
        case 3:  // a cancelled part, a part that stays, then a cancelled one with a part of its own
          atomically(tx, [&](Transaction&) {
            add(a, from, ~std::uint64_t{0});
            make(3);
            cancelled([&] {
              add(b, to, 77);
              make(60);
            });
            atomically(tx, [&](Transaction&) { add(b, to, 1); });
            cancelled([&] {
              make(20);
              atomically(tx, [&](Transaction&) { make(60); });
              add(b, from, 77);
            });
          });
          break;
        case 4:  // an account becomes another object
          atomically(tx, [&](Transaction&) {
            a = tx.read_at(all, from);
            const std::uint64_t number = tx.read(a, &Cell::number);
            made = tx.template create<Cell>();
            made->number.init(number);
            tx.write_at(all, from, made);
          });
          break;
        default:
          atomically(tx, [&](Transaction&) {
            add(a, from, 3);
            add(b, to, ~std::uint64_t{0} - 2);
          });
      }
    }
    return wrong;
  }

  std::uint64_t sum(Mutator& mutator) {
    Local<Cells> all(mutator, accounts_.get());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kAccounts; ++i)
      sum += static_cast<Cell*>(all->at<gc::Ref<Cell>>(i).slot().load())->number.slot().load();
    return sum;
  }

 private:
  Global<Cells> accounts_;
};

std::string words_of(const TxSettings& s) {
  const auto word = [](const char* name, auto value) {
    return std::string(name) + "=" + std::to_string(static_cast<unsigned>(value)) + " ";
  };
  return word("placement", s.placement) + word("chunk_bytes", s.chunk_bytes) +
         word("lock_free_chunks", s.lock_free_chunks) + word("checked_allocation", s.checked_allocation) +
         word("short_reads", s.short_reads) + word("hash", s.hash) + word("bitmap", s.bitmap) +
         word("locals", s.locals) + word("opaque", s.opaque) + word("nursery", s.nursery) +
         word("compaction", s.compaction) + word("watermark", s.watermark) + word("contention", s.contention) +
         word("alone_after", s.alone_after);
}

template <class Thread, class Tx>
void expect_right_sums(const TxSettings& settings, unsigned threads, unsigned rounds, bool collects) {
  SCOPED_TRACE(words_of(settings));
  Heap heap(heap_settings(collects));
  Transactions all(heap, settings);
  Thread mutator(heap);
  Bank bank(heap, mutator);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      Thread own(heap);
      Tx tx(all, own);
      wrong += bank.use(own, tx, t, rounds);
    });
  {
    Tx tx(all, mutator);
    wrong += bank.use(mutator, tx, 0, rounds);
  }
  {
    const Mutator::Native native(mutator);
    for (auto& other : others) other.join();
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(bank.sum(mutator), kAccounts * kEach);
  heap.verify(mutator);
}

// visit(settings, number) for the product of all settings that a placement has. The two with three values, and how soon
// a transaction runs alone, follow the number.
template <class Visit>
void for_each_setting(Placement placement, bool checked, Visit visit) {
  constexpr unsigned kChoices = 7;
  for (unsigned number = 0; number < 1U << kChoices; ++number) {
    const auto is_on = [&](unsigned bit) { return (number >> bit & 1) != 0; };
    TxSettings settings{.placement = placement,
                        .chunk_bytes = 256,
                        .lock_free_chunks = number % 3 == 0,
                        .checked_allocation = checked,
                        .short_reads = is_on(0),
                        .hash = is_on(1),
                        .bitmap = is_on(2),
                        .locals = is_on(3),
                        .opaque = is_on(4),
                        .nursery = is_on(5)};
    settings.watermark = is_on(6);
    settings.compaction = static_cast<gc::Compaction>(number % 3);
    settings.contention = static_cast<gc::Contention>(number / 3 % 3);
    settings.alone_after = number % 5 == 0 ? 1 : 32;
    visit(settings, number);
  }
}

struct Where {
  const char* name;
  Placement placement;
  bool checked = false;
};

class TransactionSettings : public testing::TestWithParam<Where> {};

TEST_P(TransactionSettings, ThreadsSeeTheSameSum) {
  for_each_setting(GetParam().placement, GetParam().checked, [](const TxSettings& settings, unsigned number) {
    if (settings.checked_allocation)
      expect_right_sums<gc::CheckingMutator, gc::CheckingTransaction>(settings, 2, 36, number % 2 == 0);
    else
      expect_right_sums<Mutator, Transaction>(settings, 2, 36, number % 2 == 0);
  });
}

// The two settings of three values with each other and with all others, in one thread.
TEST_P(TransactionSettings, OneThreadSeesTheSameSumInTheWholeProduct) {
  for_each_setting(GetParam().placement, GetParam().checked, [](TxSettings settings, unsigned number) {
    for (unsigned both = 0; both < 9; ++both) {
      if (both % 3 == number % 3 && both / 3 == number / 3 % 3) continue;
      settings.compaction = static_cast<gc::Compaction>(both % 3);
      settings.contention = static_cast<gc::Contention>(both / 3);
      if (settings.checked_allocation)
        expect_right_sums<gc::CheckingMutator, gc::CheckingTransaction>(settings, 1, 6, both % 4 == 0);
      else
        expect_right_sums<Mutator, Transaction>(settings, 1, 6, both % 4 == 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Each, TransactionSettings,
                         testing::Values(Where{"heap", Placement::heap}, Where{"dedicated", Placement::dedicated},
                                         Where{"dedicated_checked", Placement::dedicated, true},
                                         Where{"arena", Placement::arena}),
                         [](const auto& info) { return std::string(info.param.name); });

// The control keeps no logs: nothing can be undone, so an abort ends the program, whatever else is set.
TEST(UnloggedSettings, CommitWhatOneThreadWrites) {
  for_each_setting(Placement::unlogged, false, [](const TxSettings& settings, unsigned number) {
    SCOPED_TRACE(words_of(settings));
    Heap heap(heap_settings(number % 2 == 0));
    Transactions all(heap, settings);
    Mutator mutator(heap);
    Transaction tx(all, mutator);
    Local<Cell> list(mutator), made(mutator);
    for (std::uint64_t i = 40; i-- != 0;)
      atomically(tx, [&](Transaction& t) {
        made = t.create<Cell>();
        t.write(made, &Cell::number, i);
        atomically(t, [&](Transaction& inner) { inner.write(made, &Cell::next, list); });
        list = made;
      });
    EXPECT_EQ(numbers_of(mutator, list.get()), counted(0, 40));
  });
}

}  // namespace
}  // namespace loam::tests
