#include "runtime/tm/records/tuning.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/records/mapping.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <pthread.h>
#include <signal.h>

namespace loam::tm::tuning {
namespace {

// A candidate must be faster than the best pair so far by more than what windows differ by themselves.
constexpr double kGain = 1.05;
// Two windows with rates this close say that the program is in one phase; a rate further off than kMoved is another's.
constexpr double kSteady = 0.15, kMoved = 0.3;
constexpr unsigned kMovedWindows = 5;
constexpr double kLeastRate = 1000;

constinit std::atomic<unsigned> changes_made{0};
// Zeroes: not changed yet. Others may ask at any time, while the map is the gate's.
constinit std::atomic<Pair> changed_to{};
static_assert(std::atomic<Pair>::is_always_lock_free);

bool differ(double rate, double other, double share) noexcept { return std::abs(rate - other) > share * other; }

[[noreturn]] void* watch(void*) noexcept {
  Search search(pair());
  std::uint64_t commits = commits_so_far(), then = platform::monotonic_ns();
  for (;;) {
    platform::sleep_ns(kWindowNs);
    const std::uint64_t sum = commits_so_far(), now = platform::monotonic_ns();
    const Pair wanted = search.next(static_cast<double>(sum - commits) * 1e9 / static_cast<double>(now - then), now);
    if (wanted != pair()) change_to(wanted);
    commits = commits_so_far();
    then = platform::monotonic_ns();
  }
}

}  // namespace

Pair Search::use(Pair pair) noexcept {
  windows_ = 0;
  window_rate_ = 0;
  return used_ = pair;
}

Pair Search::next_candidate(std::uint64_t now_ns) noexcept {
  while (tried_ < kCandidates.size())
    if (const Pair candidate = kCandidates[tried_++]; candidate != best_) return use(candidate);
  stage_ = Stage::resting;
  rested_since_ns_ = now_ns;
  moved_ = 0;
  return use(best_);
}

Pair Search::next(double rate, std::uint64_t now_ns) noexcept {
  const double last = last_rate_;
  last_rate_ = rate;
  switch (stage_) {
    case Stage::settling:
      if (rate < kLeastRate || last < kLeastRate || differ(rate, last, kSteady)) return used_;
      best_ = used_;
      best_rate_ = std::max(rate, last);
      tried_ = 0;
      stage_ = Stage::trying;
      return next_candidate(now_ns);
    case Stage::trying:
      window_rate_ = std::max(window_rate_, rate);
      if (++windows_ < kWindows) return used_;
      if (window_rate_ > best_rate_ * kGain) {
        best_ = used_;
        best_rate_ = window_rate_;
      }
      return next_candidate(now_ns);
    case Stage::resting:
      moved_ = differ(rate, best_rate_, kMoved) ? moved_ + 1 : 0;
      if (moved_ >= kMovedWindows && now_ns - rested_since_ns_ >= kRestNs) stage_ = Stage::settling;
      return used_;
  }
  return used_;
}

Pair pair() noexcept {
  const Pair changed = changed_to.load(std::memory_order_relaxed);  // relaxed: no more than a moment old
  return changed != Pair{} ? changed : Pair{shared.config.shift, shared.config.records_log2};
}
unsigned changes() noexcept { return changes_made.load(std::memory_order_relaxed); }  // relaxed: a count

void change_to(Pair wanted) noexcept {
  LOAM_CHECK(!shared.map.is_sparse() && (sizeof(Orec) << wanted.records_log2) <= shared.map.bytes,
             "tm: no room for 2^{} ownership records in {} bytes of {}", wanted.records_log2, shared.map.bytes,
             shared.map.kind);
  serial::acquire_for_change();
  shared.map.use(shared.config.mapping, wanted.shift, wanted.records_log2);
  changed_to.store(wanted, std::memory_order_relaxed);  // relaxed: see pair()
  serial::release_after_change();
  changes_made.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
}

void start() noexcept {
  // The thread is nobody's: no handler of the program's signals may run in it.
  sigset_t all, before;
  sigfillset(&all);
  LOAM_CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0, "tm: the signal mask cannot be set");
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, watch, nullptr);
  LOAM_CHECK(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0, "tm: the signal mask cannot be set");
  LOAM_CHECK(error == 0, "tm: adaptive: no thread to tune with (error {}); raise `ulimit -u`, or do without", error);
  pthread_detach(thread);
}

}  // namespace loam::tm::tuning
