// flat-combining: the client that gets a lock executes the operations that all other clients have published.
//   Source      Hendler, Incze, Shavit, Tzafrir: "Flat combining and the synchronization-parallelism tradeoff", SPAA
//               2010.
//   How         A client that finds the lock free executes its operation at once. Otherwise it publishes the operation
//               in its own record, and waits for the answer or for the lock. The holder goes over all records, up to
//               `passes` times while it finds work. Records lie in a roster, not in a list with ages: a thread that
//               ends frees its place, and an idle thread costs a read of a cache line that does not change.
//   Guarantees  a record is served in the next pass; the lock is not fair; D1 to D3.
//   Cost        alone an exchange; waiting, one line there and back.
//   When not    many threads that rest: every pass looks at each place ever taken at the same time.
// Orders
//   fc.A  the lock: acquire when taken, release when given: what the holders before did.
//   fc.B  state, posted: release by the client, acquire by the holder.  Without it an old operation could be run.
//   fc.C  a thread that goes to sleep sets its mark, then checks the lock; the holder releases the lock, then checks
//         for marks. At least one must see the other (StoreLoad): announce_light() and announce_heavy(), paid by
//         sleepers.
//   waiting.A  state, done: results.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/parts/roster.hpp"
#include "runtime/delegation/waiting.hpp"
#include "runtime/sync/backoff.hpp"

#include <atomic>

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class FlatCombining {
 public:
  static constexpr Description kDescription{.name = "flat-combining",
                                            .summary = "the holder of a lock executes what others have published",
                                            .paper = "Flat combining, SPAA 2010",
                                            .guarantees = "mutual exclusion",
                                            .means = Means::combining,
                                            .has_passes = true};
  static constexpr bool kSleeps = W::kSleeps;

  explicit FlatCombining(const Settings& settings = {})
      : waiting_(settings.waiting), turn_max_(settings.turn_max), passes_(settings.passes) {}
  FlatCombining(const FlatCombining&) = delete;
  FlatCombining& operator=(const FlatCombining&) = delete;

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    if constexpr (!kIsOnBehalf<F>) {
      if (Executing::anything()) [[unlikely]]
        return apply_on_behalf(*this, f);
    }
    if (try_lock()) {
      const Turn turn{*this};
      return f();
    }
    Call<std::remove_reference_t<F>> call(f);
    Cell& cell = roster_.take();
    const GiveBack give_back{roster_, cell};
    call.write(cell.operation);
    cell.state.store(kPosted, std::memory_order_release);  // fc.B
    const std::uint32_t state = wait_for_answer_or_lock(cell);
    if (state == kExecutor) {
      const Turn turn{*this};
      return f();
    }
    return call.take(state == kThrew, cell.operation.payload);
  }

 private:
  // kAgain: posted, and its client was woken to try the lock.
  enum State : std::uint32_t { kIdle, kPosted, kAgain, kDone, kThrew, kExecutor };

  static bool is_posted(std::uint32_t state) noexcept { return state == kPosted || state == kAgain; }

  struct GiveBack {
    ~GiveBack() { roster.give(cell); }
    Roster& roster;
    Cell& cell;
  };

  struct Turn {
    explicit Turn(FlatCombining& scheme) noexcept : scheme_(scheme), executing_(&scheme) {}
    ~Turn() {
      scheme_.serve();
      LOAM_POINT("flat-combining: served");
      scheme_.unlock();
    }
    FlatCombining& scheme_;
    const Executing executing_;
  };

  bool try_lock() noexcept {
    return lock_.load(std::memory_order_relaxed) == 0 &&       // relaxed: decides only whether to try
           lock_.exchange(1, std::memory_order_acquire) == 0;  // fc.A
  }

  void unlock() noexcept {
    platform::announce_light(lock_, 0);                               // fc.A, fc.C
    if (sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]]  // relaxed: ordered by fc.C
      wake_one();
  }

  // Somebody may have gone to sleep after this thread's last look at its record: it shall try the lock.
  void wake_one() noexcept {
    for (std::uint32_t place = 0; place < roster_.high(); ++place) {
      Cell& cell = roster_.at(place);
      if (cell.sleeping.load(std::memory_order_relaxed) == 0) continue;  // relaxed: ordered by fc.C
      std::uint32_t posted = kPosted;
      // relaxed: says nothing but that it is to look. From another state it is woken by who changed that.
      if (!cell.state.compare_exchange_strong(posted, kAgain, std::memory_order_relaxed)) continue;
      wake(cell.state);
      return;
    }
  }

  std::uint32_t wait_for_answer_or_lock(Cell& cell) noexcept {
    for (std::uint32_t look = 0;; ++look) {
      const std::uint32_t state = cell.state.load(std::memory_order_acquire);  // waiting.A
      if (!is_posted(state)) return state;
      LOAM_POINT("flat-combining: no answer yet");
      if (try_lock()) return own_turn(cell);
      if (look < waiting_.looks() || waiting_.looks() == ~0u) {
        waiting_.pause();
      } else {
        sleep(cell);
      }
    }
  }

  // With the lock: nobody executes the operation of this cell any more, unless it is done.
  std::uint32_t own_turn(Cell& cell) noexcept {
    const std::uint32_t state = cell.state.load(std::memory_order_relaxed);  // relaxed: ordered by fc.A
    if (is_posted(state)) {
      cell.state.store(kIdle, std::memory_order_relaxed);  // relaxed: seen by holders to come (fc.A)
      return kExecutor;
    }
    unlock();
    return state;
  }

  void sleep(Cell& cell) noexcept {
    std::uint32_t again = kAgain;
    // relaxed: from "woken" back to "posted"; an answer stays.
    cell.state.compare_exchange_strong(again, kPosted, std::memory_order_relaxed);
    cell.sleeping.store(1, std::memory_order_relaxed);  // relaxed: ordered by fc.C
    sleepers_.fetch_add(1, std::memory_order_relaxed);  // relaxed: ordered by fc.C
    platform::announce_heavy();                         // fc.C, waiting.B
    // relaxed: decide only whether to sleep.
    if (lock_.load(std::memory_order_relaxed) != 0 && cell.state.load(std::memory_order_relaxed) == kPosted) {
      LOAM_POINT("flat-combining: goes to sleep");
      platform::futex_wait(cell.state, kPosted);
      LOAM_POINT("flat-combining: slept");
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: a look too many costs time only
    cell.sleeping.store(0, std::memory_order_relaxed);  // relaxed: whoever still sees the mark wakes in vain
  }

  void serve() noexcept {
    unsigned served = 0;
    for (unsigned pass = 0; pass < passes_; ++pass) {
      const unsigned before = served;
      const std::uint32_t end = roster_.high();
      for (std::uint32_t place = 0; place < end && served < turn_max_; ++place) {
        Cell& cell = roster_.at(place);
        if (!is_posted(cell.state.load(std::memory_order_acquire))) continue;  // fc.B
        const Outcome outcome = cell.operation.execute();
        LOAM_POINT("flat-combining: before an answer");
        waiting_.tell(cell, outcome.threw ? kThrew : kDone);
        ++served;
      }
      if (served == before) return;
    }
  }

  alignas(platform::kApartBytes) std::atomic<std::uint32_t> lock_{0};
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> sleepers_{0};
  alignas(platform::kApartBytes) const W waiting_;
  const unsigned turn_max_, passes_;
  Roster roster_;
};

}  // namespace loam::delegation
