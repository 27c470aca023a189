// transactional: what the programs of the schedule checker share whose pieces are whole transactions.
#pragma once

#include "tests/simulator/pieces.hpp"

#include <array>
#include <atomic>

namespace loam::tests {

// A word with an ownership record of its own.
struct alignas(64) Apart {
  long value = 0;
};

// Threads wait here for each other. A thread learns only that the others have come so far.
template <unsigned kThreads>
class Meeting {
 public:
  void wait() noexcept {
    const unsigned round = came_.fetch_add(1, std::memory_order_acq_rel) / kThreads + 1;
    while (came_.load(std::memory_order_acquire) < round * kThreads) {
    }
  }

 private:
  std::atomic<unsigned> came_{0};
};

// A thread's first transaction prepares its logs under a lock. Without this, the first thread would be done before the
// next one begins.
template <class Driver>
void prepare() {
  static thread_local Apart own;
  Driver::update([](auto& t) { t.write(own.value, t.read(own.value) + 1); });
}

// Two threads move money between accounts, and a third adds them up: each sum is the same.
//   before_sum(i): called before the third thread's i-th transaction
template <class Driver, class Before>
void bank(Before before_sum) {
  constexpr unsigned kAccounts = 4, kMoves = 24, kLooks = 24;
  constexpr long kEach = 10;
  static std::array<Apart, kAccounts> accounts;
  static Meeting<3> meeting;
  for (Apart& account : accounts) account.value = kEach;
  const auto mover = [] {
    prepare<Driver>();
    meeting.wait();
    for (unsigned i = 0; i < kMoves; ++i)
      Driver::update([i](auto& t) {
        long& from = accounts[i % kAccounts].value;
        long& to = accounts[(i + 1) % kAccounts].value;
        t.write(from, t.read(from) - 1);
        t.write(to, t.read(to) + 1);
      });
  };
  const auto adder = [before_sum] {
    prepare<Driver>();
    meeting.wait();
    for (unsigned i = 0; i < kLooks; ++i) {
      before_sum(i);
      const long sum = Driver::read_only([](auto& t) {
        long all = 0;
        for (Apart& account : accounts) all += t.read(account.value);
        return all;
      });
      check(sum == kEach * kAccounts, "the sum of the accounts, as a transaction sees it");
    }
  };
  together(mover, mover, adder);
  long sum = 0;
  for (const Apart& account : accounts) sum += account.value;
  check(sum == kEach * kAccounts, "the sum of the accounts in the end");
}

}  // namespace loam::tests
