// greedy: the two-phase contention manager of swisstm, for algorithms whose write locks have an owner.
//   An attempt with fewer than kTimidWrites writes aborts when it finds a lock: most attempts are short, and this costs
//   nothing. At that number of writes an attempt draws a ticket. Of two attempts, the one with the earlier ticket wins:
//   it asks the owner to abort, and checks the lock up to kRoundsMax times. The owner notices the request at its next
//   lock or wait. Each failure in a row makes a random pause longer. Source  Greedy: Guerraoui, Herlihy and Pochon,
//   PODC 2005; with timid beginners: SwissTM, PLDI 2009. Orders  relaxed throughout: requests and hints, which release
//   nothing by themselves.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/base/random.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/types.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

namespace loam::tm {

class Greedy {
 public:
  // How often an attempt with a ticket looks at the lock that it waits for.
  static constexpr unsigned kRoundsMax = 2000;
  static constexpr std::ptrdiff_t kTimidWrites = 10;

  void attach(const Descriptor& d) noexcept {
    random_ = base::Random(1, d.slot);
    be_timid(d);
  }

  void begin() noexcept { attempt_.store(attempt_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  bool has_ticket() const noexcept { return ticket_.load(std::memory_order_relaxed) != kNoTicket; }

  // After each lock that was taken.
  [[gnu::always_inline]] void locked(const Descriptor& d) noexcept {
    if (d.write_end >= greedy_at_) [[unlikely]]
      draw(d);
  }

  // Whether an earlier ticket has asked this attempt to abort, and with what cause.
  [[gnu::always_inline]] bool is_asked_to_abort() const noexcept {
    return asked_.load(std::memory_order_relaxed) / kAbortCausesMax == attempt_.load(std::memory_order_relaxed);
  }
  AbortCause asked_with() const noexcept {
    return static_cast<AbortCause>(asked_.load(std::memory_order_relaxed) % kAbortCausesMax);
  }

  // `lock` was `seen` taken by `owner`'s attempt. returns nothing once that has changed, else the cause to abort with
  std::optional<AbortCause> wait_for(Greedy& owner, const Orec& lock, std::uint64_t seen, AbortCause cause) noexcept {
    const std::uint64_t mine = ticket_.load(std::memory_order_relaxed);
    if (mine == kNoTicket) return cause;
    sync::Backoff backoff;
    for (unsigned round = 0; round < kRoundsMax; ++round) {
      // By number: a later attempt of the owner is not meant. That it has the lock is looked at after its number.
      const std::uint64_t attempt = owner.attempt_.load(std::memory_order_relaxed);
      if (lock.load(std::memory_order_acquire) != seen) return std::nullopt;
      if (owner.ticket_.load(std::memory_order_relaxed) < mine) return cause;
      owner.asked_.store(attempt * kAbortCausesMax + static_cast<std::uint64_t>(cause), std::memory_order_relaxed);
      if (is_asked_to_abort()) return asked_with();
      LOAM_POINT("tm.waiting");
      backoff.wait();
    }
    return cause;
  }

  // The attempt has committed.
  [[gnu::always_inline]] void committed(const Descriptor& d) noexcept {
    if (greedy_at_ == d.writes.end()) [[unlikely]]
      be_timid(d);
  }

  // The transaction begins anew without a ticket. One that is only tried again keeps its own.
  void be_timid(const Descriptor& d) noexcept {
    ticket_.store(kNoTicket, std::memory_order_relaxed);
    greedy_at_ = d.writes.begin() + kTimidWrites;
  }

  // Before the next try of an attempt that has failed.
  void pause(const Descriptor& d) noexcept {
    if (failed_after_ != d.statistics.commits) failures_ = 0;
    failed_after_ = d.statistics.commits;
    failures_ = std::min(failures_ + 1, kFailuresCounted);
    for (unsigned i = random_.below(failures_ * kPausesPerFailure); i > 0; --i) platform::pause();
  }

 private:
  static constexpr std::uint64_t kNoTicket = ~0ULL;
  // Pauses after a failure: at random below this for each failure in a row.
  static constexpr unsigned kPausesPerFailure = 64, kFailuresCounted = 64;

  [[gnu::noinline, gnu::cold]] void draw(const Descriptor& d) noexcept {
    ticket_.store(tickets_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    greedy_at_ = d.writes.end();
  }

  inline static constinit std::atomic<std::uint64_t> tickets_{0};

  WriteEntry* greedy_at_ = nullptr;  // where the write set ends when the ticket is drawn; beyond all once it is
  unsigned failures_ = 0;            // in a row,
  std::uint64_t failed_after_ = 0;   // while the thread has committed this often
  base::Random random_{0};

  // Others use these, on conflicts only.
  std::atomic<std::uint64_t> attempt_{0};
  std::atomic<std::uint64_t> ticket_{kNoTicket};
  std::atomic<std::uint64_t> asked_{0};  // the attempt that others ask to abort, times kAbortCausesMax, and the cause
};

}  // namespace loam::tm
