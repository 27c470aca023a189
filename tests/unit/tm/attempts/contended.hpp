// What the tests of contention managers share: words on records of their own, transactions that hold them, a process
// with a manager. On etl-wb, which asks the manager at every lock that it meets.
#pragma once

#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/stepper.hpp"
#include "tests/harness/trace.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace loam::tm {

using Txs = Driver<EtlWb<false>>;
using Holder = tests::Stepper<Txs>;
// Those that end every conflict; under pure-suicide it may go on without end.
inline constexpr Manager kManagers[] = {Manager::suicide, Manager::delay, Manager::backoff, Manager::karma,
                                        Manager::timestamp};
inline constexpr std::uint64_t kForEver = 20'000'000'000;

// Words on records of their own.
struct alignas(64) Apart {
  Word word = 0;
};
inline Apart words[64];
inline Word &x = words[0].word, &y = words[1].word;

// Calls body() in a process of its own under `manager`.
template <class Body>
void under(Manager manager, unsigned serialise_after, Body&& body, contention::Waits waits = {}) {
  tests::in_child([&] {
    contention::waits = waits;
    SCOPED_TRACE(contention::kManagerNames[static_cast<std::size_t>(manager)]);
    configure({.manager = manager, .privatization = Privatization::none, .serialise_after = serialise_after});
    body();
  });
}

inline void hold(Holder& holder, Word& word) {
  holder.begin();
  holder.write(word, 1);
}

inline Contention& owner_state(const Word& word) {
  return Descriptor::of_slot(owner_of(shared.map.record(&word).load()))->contention;
}

// A body that finds what it has read changed at each of its first `failures` tries.
template <class Tx>
void fail_until(Tx& tx, unsigned attempt, unsigned failures) {
  const Word before = tx.read(x);
  if (attempt <= failures)
    std::thread([] {
      Txs::update([](auto& other) {
        other.write(x, other.read(x) + 1);
        other.write(y, other.read(y) + 1);
      });
    }).join();
  EXPECT_EQ(tx.read(y), before);
}

// Adds one to `word`. returns the attempts
inline unsigned attempts_to_add(Word& word, unsigned reads_before = 0) {
  unsigned attempts = 0;
  Txs::update([&](auto& tx) {
    ++attempts;
    for (unsigned i = 0; i < reads_before; ++i) tx.read(words[32 + i].word);
    tx.write(word, tx.read(word) + 1);
  });
  return attempts;
}

}  // namespace loam::tm
