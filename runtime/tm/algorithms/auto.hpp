// auto: norec as long as few threads meet, a deferred clock (dctl) beyond. It changes while the program runs.
//   Which one runs is a word that changes behind the gate of serial transactions, while no attempt runs (switching.hpp,
//   which also says what decides). An attempt reads it within its announcement, so all attempts that run at one time are
//   of one algorithm. A body is compiled for both; through the C interface an access has a branch.
//   Source      the choice by measuring: Wang, Kulkarni, Cavazos and Spear, "A transactional memory with automatic
//               performance tuning", TACO 2012; stopping all to change: Lev, Moir and Nussbaum, "PhTM", TRANSACT 2007.
//               The parts: norec.hpp, dctl.hpp, grace.hpp.
//   Guarantees  opacity. Publication safe. Privatization safe unless Config::privatization is none: norec is by itself, and
//               dctl's commits share their wait, whether the configuration says commit or shared.
//   Conflicts   as those of the algorithm that runs, of which a conflict within a part is one of the whole attempt under norec.
//   Cost        a few instructions at begin and commit; under dctl a count at commit. Bodies are compiled twice. Nothing is
//               counted under norec but validations, which only happen where threads meet.
//   When not    programs whose threads always meet or never do, and for which a few percent matter: name the algorithm.
// Why a change is right
//   A1 (attempts) No attempt is of two algorithms, or runs beside one of the other: the gate. A thread that finds the gate
//      open sees the word as it was set behind it (serial.C).
//   A2 (norec to dctl) All records are free. Memory has changed without their versions, so a version of at most the
//      snapshot says: unchanged by dctl's commits. An attempt needs that of those alone that run beside it, and these all
//      are dctl's. A body that runs in place leaves records in the same state.
//   A3 (snapshots) The descriptor has one snapshot: norec's is a sequence number, dctl's a value of the clock. norec
//      takes a new one at each begin. dctl keeps that of the thread's last attempt, so after an attempt of norec it takes
//      one from the clock. (A sequence number may be ahead of the clock: such an attempt would take versions of later
//      commits for old ones.)
//   A4 (dctl to norec) The sequence number is even and has not moved. An attempt compares values that it has read itself
//      since its begin, when norec ran already.
//   A5 (privatization) A commit of dctl that waits for others has left its announcement: the algorithm may change
//      meanwhile. It waits for attempts of dctl, which have all ended then. Attempts of norec have begun after it, and see
//      what it has unlinked. A commit of norec need not wait, for the attempts of dctl have ended before it began. *Settled*
//      (grace.hpp) speaks of dctl's attempts alone, and stays true.
//   A6 (sleepers) A transaction that sleeps in retry() looks at what it has read under the algorithm that it ran under. Commits
//      of the other do not change that, so a change of algorithms wakes all sleepers, as a change of the table does.
#pragma once

#include "runtime/tm/algorithms/dctl.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/attempts/switching.hpp"

#include <new>

namespace loam::tm {

// Counts validations, and lets one attempt in some look at what they say, after its commit.
struct Watched {
  static void validates(Descriptor& d) noexcept {
    const std::uint64_t count = d.validations.load(std::memory_order_relaxed) + 1;  // relaxed: own
    d.validations.store(count, std::memory_order_relaxed);                          // relaxed: a count
    // An attempt that aborts leaves it to a later one.
    if (d.looks || count % switching::kValidationsPerLook == 0) d.looks = d.special = true;
  }
};

template <bool kBlame>
struct Auto {
 private:
  using Few = NorecWith<kBlame, Watched>;
  using Many = EtlWbWith<kBlame, DeferredClock>;

 public:
  static constexpr AlgorithmDescription kDescription{
      .name = "auto",
      .summary = "norec while few threads meet, dctl with shared waits beyond, changed as the program runs",
      .paper = "NOrec, PPoPP 2010; DCTL, PPoPP 2024",
      .guarantees = "opacity; publication safe; privatization safe"};
  static constexpr bool kPrivatizesSafely = true, kSwitches = true;

  class ReadOnlyTx : public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    explicit ReadOnlyTx(Descriptor& d) noexcept : many_(d), scales_(d.scales) {}
    Descriptor& descriptor() const noexcept { return many_.descriptor(); }

    template <class F>
    [[gnu::always_inline]] static auto with(Descriptor& d, F& body) {
      return with_one<typename Few::ReadOnlyTx, typename Many::ReadOnlyTx>(d, body);
    }

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      if (scales_) return many_.load(address);
      return typename Few::ReadOnlyTx(descriptor()).load(address);
    }

   private:
    typename Many::ReadOnlyTx many_;
    bool scales_;
  };

  template <bool kNested>
  class Writing : public UpdateAccess<Writing<kNested>, kBlame> {
   public:
    explicit Writing(Descriptor& d) noexcept : many_(d), scales_(d.scales) {}
    Descriptor& descriptor() const noexcept { return many_.descriptor(); }

    template <class F>
    [[gnu::always_inline]] static auto with(Descriptor& d, F& body) {
      return with_one<typename Few::template Writing<kNested>, typename Many::template Writing<kNested>>(d, body);
    }

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      if (scales_) return many_.load(address);
      return typename Few::template Writing<kNested>(descriptor()).load(address);
    }
    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      if (scales_) return many_.store(address, value, mask);
      typename Few::template Writing<kNested>(descriptor()).store(address, value, mask);
    }

   private:
    typename Many::template Writing<kNested> many_;
    bool scales_;
  };
  using UpdateTx = Writing<false>;
  using NestedTx = Writing<true>;

  // Of the algorithm that runs.
  union Savepoint {
    typename Few::Savepoint few;
    typename Many::Savepoint many;
  };

  static void attach(Descriptor& d) noexcept {
    Few::attach(d);
    Many::attach(d);
  }

  static void begin_read_only(Descriptor& d) noexcept {
    const bool has_snapshot = lifecycle::enter_reading_at_snapshot(d);
    if (choose(d)) [[likely]]
      return Few::entered(d, Mode::read_only);
    if (!has_snapshot) switching::renew_snapshot(d);
    LOAM_POINT("tm.began");
    d.mode = Mode::read_only;
  }

  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    if (choose(d)) [[likely]]
      return Few::entered(d, Mode::update);
    Many::entered_update(d);
  }

  static void commit_read_only(Descriptor& d) noexcept {
    if (d.scales) {
      Many::commit_read_only(d);
      return committed_many(d);
    }
    if (d.special && d.looks) [[unlikely]]
      return commit_and_look<&Few::commit_read_only>(d);
    Few::commit_read_only(d);
  }

  static void commit_update(Descriptor& d) noexcept {
    if (d.scales) {
      Many::commit_update(d);
      return committed_many(d);
    }
    if (d.special && d.looks) [[unlikely]]
      return commit_and_look<&Few::commit_update>(d);
    Few::commit_update(d);
  }

  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    if (d.scales)
      Many::rollback(d, cause);
    else
      Few::rollback(d, cause);
  }

  static Savepoint save(Descriptor& d) noexcept {
    if (d.scales) return {.many = Many::save(d)};
    return {.few = Few::save(d)};
  }
  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    if (d.scales)
      Many::restore(d, savepoint.many);
    else
      Few::restore(d, savepoint.few);
  }
  // Conflicts of norec end the whole attempt.
  static void resume(Descriptor& d, const Savepoint& savepoint) noexcept {
    if (d.scales) Many::resume(d, savepoint.many);
  }

  // A6. After rollback(): by what the attempt was.
  static const waiting::Awaited& awaits(const Descriptor& d) noexcept {
    return d.scales ? waiting::kAwaited<Many> : waiting::kAwaited<Few>;
  }
  static bool unchanged(Descriptor& d) noexcept { return d.scales ? Many::unchanged(d) : Few::unchanged(d); }
  static bool has_read(Descriptor& d) noexcept { return d.scales ? Many::has_read(d) : Few::has_read(d); }

 private:
  // The body is compiled for both: an access has no branch.
  template <class FewTx, class ManyTx, class F>
  [[gnu::always_inline]] static auto with_one(Descriptor& d, F& body) {
    if (d.scales) {
      ManyTx tx(d);
      return body(tx);
    }
    FewTx tx(d);
    return body(tx);
  }

  // Within the announcement: what the attempt is from here on. returns whether it is norec's
  [[gnu::always_inline]] static bool choose(Descriptor& d) noexcept {
    const bool scales = switching::scales();
    if (scales != d.scales) [[unlikely]]
      switching::change_attempts(d, scales);
    return !scales;
  }

  [[gnu::always_inline]] static void committed_many(Descriptor& d) noexcept {
    if (++d.statistics.scalable % switching::kCommitsPerLook == 0) [[unlikely]]
      switching::look(d);
  }

  // commit does not return if the attempt fails.
  template <void (*commit)(Descriptor&) noexcept>
  [[gnu::noinline]] static void commit_and_look(Descriptor& d) noexcept {
    commit(d);
    d.looks = false;
    switching::look(d);
  }
};

}  // namespace loam::tm
