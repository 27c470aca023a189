// Hardware transactions beside software ones on a simulated machine.
//   histories right|untold COUNT SEED   short random histories of two or three threads: some transactions in hardware, some in
//                                       software. Transfers keep the sum of two to four numbers; whoever reads all of them
//                                       checks it, in attempts that abort as well. untold: hardware commits do not move the
//                                       sequence word, a fault that must show.
//       prints histories= torn= (attempts that saw another sum) lost= (histories with a wrong end) hardware= software=
//   disjoint THREADS TIMES              critical sections that share nothing, elided; prints commits= hardware=
//   alone|turns|freed|inside            hardware beside transactions that run alone, in place; threads that take turns, of
//                                       which one waits for a change (retry) that the other makes in hardware; blocks that
//                                       hardware frees beside readers in software; transactions inside of one another.
//                                       Each prints "done" if all was right and hardware took part. Mutants run them too.
#include "runtime/tm/hardware/hybrid.hpp"
#include "runtime/base/random.hpp"
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine_simulated.hpp"
#include "runtime/sync/barrier.hpp"
#include "runtime/tm/hardware/elision.hpp"
#include "runtime/tm/tm.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace loam;
using tm::hardware::Hybrid;

constexpr unsigned kThreads = 3, kNumbers = 4, kWordsPerLine = 8;
constexpr long kEach = 100;

// The hybrid without its notice to software.
struct Untold {
  template <bool kUpdates, class F>
  static auto run(F& f) {
    tm::Descriptor& d = tm::Descriptor::current_or_detached();
    if (d.mode == tm::Mode::idle && platform::transaction_begin() == platform::kTransactionStarted) {
      if (tm::norec_sequence.now.load() % 2 != 0) platform::transaction_abort<1>();
      tm::hardware::Attempt attempt(d);
      const auto result = f(tm::hardware::PlainTx(d, attempt));
      platform::transaction_commit();
      ++d.statistics.hardware;
      ++d.statistics.commits;
      return result;
    }
    return Hybrid::in_software<kUpdates>(f);
  }
  template <class F>
  static auto update(F&& f) {
    return run<true>(f);
  }
  template <class F>
  static auto read_only(F&& f) {
    return run<false>(f);
  }
};

struct History {
  unsigned threads, numbers, apart, software_percent;

  explicit History(base::Random random)
      : threads(2 + random.below(2)),
        numbers(2 + random.below(kNumbers - 1)),
        apart(random.below(2) == 0 ? 1 : kWordsPerLine),
        software_percent(20 + random.below(60)) {}
};

alignas(64) long memory[kNumbers * kWordsPerLine];

struct alignas(128) Worker {
  long change[kNumbers] = {};  // of the running history
  std::uint64_t torn = 0, hardware = 0, software = 0;
};
Worker workers[kThreads];

// Drawn before the transaction begins, so that each attempt of it does the same.
struct Plan {
  unsigned first, step, from, to, pause;
  bool updates, looks_twice;

  Plan(base::Random& random, unsigned numbers)
      : first(random.below(numbers)),
        step(random.below(2) == 0 ? 1 : numbers - 1),
        from(random.below(numbers)),
        to((from + 1 + random.below(numbers - 1)) % numbers),
        pause(random.below(8)),
        updates(random.below(3) != 0),
        looks_twice(random.below(4) == 0) {}
};

// Some cycles of the machine for each step. A local variable would take none: it is in no memory that the compiler
// instruments. The line is nobody else's, and nobody writes it.
alignas(128) volatile long passed = 0;
void spend(unsigned steps) {
  for (; steps > 0; --steps) static_cast<void>(passed);
}

template <class Way>
void transact(const History& history, base::Random& random, Worker& worker) {
  const Plan plan(random, history.numbers);
  const auto at = [&history](unsigned number) -> long& { return memory[number * history.apart]; };
  const auto look = [&](auto& tx) {
    long sum = 0;
    for (unsigned i = 0; i < history.numbers; ++i) {
      sum += tx.read(at((plan.first + i * plan.step) % history.numbers));
      spend(plan.pause);
    }
    if (sum != static_cast<long>(history.numbers) * kEach) ++worker.torn;
  };
  const auto read = [&](auto tx) {
    look(tx);
    return 0;
  };
  const auto transfer = [&](auto tx) {
    look(tx);
    tx.write(at(plan.from), tx.read(at(plan.from)) - 1);
    spend(plan.pause);
    tx.write(at(plan.to), tx.read(at(plan.to)) + 1);
    if (plan.looks_twice) look(tx);
    return 0;
  };
  const bool software = random.below(100) < history.software_percent;
  if (plan.updates) {
    software ? Hybrid::in_software<true>(transfer) : Way::update(transfer);
    --worker.change[plan.from];
    ++worker.change[plan.to];
  } else {
    software ? Hybrid::in_software<false>(read) : Way::read_only(read);
  }
}

// Whether all numbers are what the transfers make of them; puts them back for the next history.
bool ended_right(const History& history) {
  bool right = true;
  for (unsigned number = 0; number < history.numbers; ++number) {
    long expected = kEach;
    for (Worker& worker : workers) {
      expected += worker.change[number];
      worker.change[number] = 0;
    }
    right &= memory[number * history.apart] == expected;
  }
  for (long& word : memory) word = kEach;
  return right;
}

template <class Way>
void histories(std::uint64_t count, std::uint64_t seed) {
  for (long& word : memory) word = kEach;
  std::uint64_t lost = 0;
  sync::Barrier begin(kThreads), end(kThreads);
  std::vector<std::thread> threads;
  for (unsigned own = 0; own < kThreads; ++own)
    threads.emplace_back([&, own] {
      platform::pin_this_thread(own);
      Worker& worker = workers[own];
      for (std::uint64_t index = 0; index < count; ++index) {
        const History history(base::Random(seed, index * (kThreads + 1)));
        base::Random random(seed, index * (kThreads + 1) + 1 + own);
        begin.arrive_and_wait();
        if (own < history.threads)
          for (unsigned left = 2 + random.below(3); left > 0; --left) {
            spend(random.below(16));
            transact<Way>(history, random, worker);
          }
        end.arrive_and_wait();
        // The others are at the next barrier meanwhile, or on their way.
        if (own == 0 && !ended_right(history)) ++lost;
      }
      const tm::Statistics counted = tm::statistics();
      worker.hardware = counted.hardware;
      worker.software = counted.commits - counted.hardware;
      tm::thread_exit();
    });
  for (auto& thread : threads) thread.join();
  Worker all;
  for (const Worker& worker : workers) {
    all.torn += worker.torn;
    all.hardware += worker.hardware;
    all.software += worker.software;
  }
  const auto shown = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("histories=%llu torn=%llu lost=%llu hardware=%llu software=%llu\n", shown(count), shown(all.torn),
              shown(lost), shown(all.hardware), shown(all.software));
}

constexpr unsigned kRounds = 200;

// Ends the program if what must hold does not.
void must(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  std::exit(1);
}

// Of two threads. The second does its part in transactions that each have a try in hardware; how many committed there.
template <class First, class Second>
std::uint64_t beside(First first, Second second) {
  std::uint64_t hardware = 0;
  std::thread one([&] {
    platform::pin_this_thread(0);
    first();
    tm::thread_exit();
  });
  std::thread other([&] {
    platform::pin_this_thread(1);
    second();
    hardware = tm::statistics().hardware;
    tm::thread_exit();
  });
  one.join();
  other.join();
  return hardware;
}

// What runs alone writes in place, and nobody may see the first of its writes without the second. It ends after some
// rounds of hardware commits beside it, so that both have run.
void alone() {
  std::atomic<bool> over{false};
  std::uint64_t torn = 0, rounds = 0;
  long &first = memory[0], &second = memory[kWordsPerLine];
  const auto changes = [&](auto tx) {
    tx.write(first, tx.read(first) + 1);
    spend(20);
    tx.write(second, tx.read(second) + 1);
    return 0;
  };
  const std::uint64_t hardware = beside(
      [&] {
        for (; rounds < kRounds; ++rounds) {
          tm::Driver<tm::Norec<false>>::irrevocable(changes);
          spend(static_cast<unsigned>(rounds % 32));
        }
        over = true;
      },
      [&] {
        while (!over)
          Hybrid::update([&](auto tx) {
            const long sees = tx.read(first);
            if (sees != tx.read(second)) ++torn;
            return 0;
          });
      });
  must(torn == 0, "a hardware attempt ran beside a transaction that runs alone");
  must(first == static_cast<long>(kRounds) && second == first, "an update was lost");
  must(hardware > 0, "hardware took part");
}

// The first one waits in software until it is its turn. A commit in hardware that wakes nobody is a deadlock, which the
// simulator names.
void turns() {
  long& turn = memory[0];
  const auto waits = [&](auto tx) {
    const long now = tx.read(turn);
    if (now % 2 == 0) tm::Driver<tm::Norec<false>>::wait_for_change();
    tx.write(turn, now + 1);
    return 0;
  };
  const std::uint64_t hardware = beside(
      [&] {
        for (unsigned round = 0; round < kRounds; ++round) Hybrid::in_software<true>(waits);
      },
      [&] {
        for (unsigned round = 0; round < kRounds;) {
          spend(200 + round % 32);
          const bool mine = Hybrid::update([&](auto tx) {
            const long now = tx.read(turn);
            if (now % 2 == 0) tx.write(turn, now + 1);
            return now % 2 == 0;
          });
          if (mine) ++round;
        }
      });
  must(turn == 2 * static_cast<long>(kRounds), "a turn was lost");
  must(hardware >= kRounds / 2, "hardware took part");
}

struct Node {
  long value;
};

// What hardware frees is not used again while software may look at it.
void freed() {
  static Node* shared = nullptr;
  std::atomic<bool> over{false};
  std::uint64_t looks = 0, wrong = 0;
  const std::uint64_t hardware = beside(
      [&] {
        const auto look = [&](auto tx) {
          Node* const seen = tx.read(shared);
          spend(static_cast<unsigned>(looks % 4 * 400));
          return seen == nullptr ? 7 : tx.read(seen->value);
        };
        for (; !over; ++looks) {
          if (Hybrid::in_software<false>(look) != 7) ++wrong;
          spend(static_cast<unsigned>(looks % 8 * 200));  // an attempt in hardware that meets each look never commits
        }
      },
      [&] {
        for (unsigned round = 0; round < kRounds; ++round) {
          Hybrid::update([](auto tx) {
            Node* const old = tx.read(shared);
            tx.write(shared, tx.template create<Node>(7L));
            if (old != nullptr) tx.destroy(old);
            return 0;
          });
          Node* const block = static_cast<Node*>(std::malloc(sizeof(Node)));  // as soon as it is free
          block->value = 8;
          std::free(block);
        }
        over = true;
      });
  tm::quiesce();
  must(wrong == 0, "a reader saw a block that was in use again");
  must(looks > 0 && hardware > 0, "both took part");
  const tm::Statistics all = tm::statistics_of_all();
  must(all.blocks_allocated - all.blocks_freed == 1, "a block was lost");
}

// A transaction inside is a part of the one around it, wherever that runs.
void inside() {
  static long outer = 0, inner = 0;
  const auto both = [](auto tx) {
    tx.write(outer, tx.read(outer) + 1);
    return Hybrid::update([](auto within) {
      within.write(inner, within.read(inner) + 1);
      return within.read(outer);
    });
  };
  for (long i = 0; i < static_cast<long>(kRounds); ++i)
    must((i % 2 == 0 ? Hybrid::update(both) : Hybrid::in_software<true>(both)) == i + 1,
         "a transaction inside is flat");
  must(outer == static_cast<long>(kRounds) && inner == outer, "each ran once");
  must(tm::statistics().hardware >= kRounds / 2 - 1, "hardware took part");
}

void disjoint(unsigned count, std::uint64_t times) {
  static tm::hardware::FallbackLock lock;
  struct alignas(128) Own {
    std::uint64_t value = 0;
    tm::Statistics counted;
  };
  std::vector<Own> all(count);
  std::vector<std::thread> threads;
  for (Own& own : all)
    threads.emplace_back([&own, place = static_cast<unsigned>(&own - all.data()), times] {
      platform::pin_this_thread(place);
      for (std::uint64_t i = 0; i < times; ++i) tm::hardware::elide(lock, own.counted, [&own] { return ++own.value; });
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t commits = 0, hardware = 0;
  for (const Own& own : all) {
    if (own.value != times) std::exit(1);
    commits += own.counted.commits;
    hardware += own.counted.hardware;
  }
  std::printf("commits=%llu hardware=%llu\n", static_cast<unsigned long long>(commits),
              static_cast<unsigned long long>(hardware));
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int place) -> std::string_view { return argc > place ? argv[place] : ""; };
  const auto number = [&](int place) { return argc > place ? std::strtoull(argv[place], nullptr, 10) : 0; };
  tm::configure_once();
  if (word(1) == "histories" && word(2) == "right") {
    histories<Hybrid>(number(3), number(4));
  } else if (word(1) == "histories" && word(2) == "untold") {
    histories<Untold>(number(3), number(4));
  } else if (word(1) == "disjoint") {
    disjoint(static_cast<unsigned>(number(2)), number(3));
  } else if (word(1) == "alone") {
    alone();
    std::puts("done");
  } else if (word(1) == "turns") {
    turns();
    std::puts("done");
  } else if (word(1) == "freed") {
    freed();
    std::puts("done");
  } else if (word(1) == "inside") {
    inside();
    std::puts("done");
  } else {
    return 2;
  }
  return 0;
}
