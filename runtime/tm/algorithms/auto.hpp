// auto: norec as long as few threads meet, two-phase locking (two_phase.hpp) beyond. It changes while the program runs.
//   Which one runs is a bit beside that of the gate of serial transactions. It changes behind the gate, while no attempt
//   runs (switching.hpp, which also says what decides). An attempt reads the word of both within its announcement, so all
//   attempts that run at one time are of one algorithm. A body is compiled for both; through the C interface an access has a branch.
//   Source      the choice by measuring: Wang, Kulkarni, Cavazos and Spear, "A transactional memory with automatic
//               performance tuning", TACO 2012; stopping all to change: Lev, Moir and Nussbaum, "PhTM", TRANSACT 2007.
//               The parts: norec.hpp, two_phase.hpp.
//   Guarantees  opacity. Publication and privatization safe: both algorithms are by themselves, and nobody waits for that.
//   Conflicts   as those of the algorithm that runs. A conflict within a part is one of the whole attempt.
//   Cost        a comparison at begin; under two-phase a count at commit. Bodies are compiled twice.
//               Nothing is counted under norec but validations, which only happen where threads meet. A thread maps what
//               two-phase needs at its first attempt of it.
//   When not    programs whose threads always meet or never do, and for which a few percent matter: name the algorithm.
// Why a change is right
//   A1 (attempts) No attempt is of two algorithms, or runs beside one of the other: the gate. A thread that finds the gate
//      open sees the bit as it was set behind it (serial.C).
//   A2 (norec to two-phase) No record is locked and no read is shown: an attempt of two-phase lets go of all that
//      it holds before it leaves its announcement, whether it has committed or is undone. A body that runs in place has
//      none. Memory has changed without the records' versions, which no attempt compares (A5).
//   A3 (two-phase to norec) Memory holds no uncommitted value, for the same reason. The sequence number is even and has
//      not moved. An attempt compares values that it has read itself since its begin, when norec ran already.
//   A4 (tickets) One that a transaction drew under two-phase is dropped when its thread next runs norec: nobody waits for
//      it. Under two-phase again the transaction draws a new one. So its place in the queue is kept between two changes
//      alone, and so is the bound on its restarts.
//   A5 (sleepers) A transaction that sleeps in retry() looks at what it has read under the algorithm that it ran under: at
//      versions, or at the sequence number. Commits of the other do not change that, so a change of algorithms wakes all
//      sleepers, as a change of the table does.
#pragma once

#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/algorithms/two_phase.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/attempts/serial.hpp"
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
  using Norec = NorecWith<kBlame, Watched>;
  using Visible = TwoPhase<kBlame>;
  static_assert(Norec::template has_room_beside<two_phase::State>());

 public:
  static constexpr AlgorithmDescription kDescription{
      .name = "auto",
      .summary = "norec while few threads meet, two-phase beyond, changed as the program runs",
      .paper = "NOrec, PPoPP 2010; 2PLSF, PPoPP 2023",
      .guarantees = "opacity; publication safe; privatization safe"};
  static constexpr bool kWritesInPlace = true, kReadersBlockWriters = true, kPrivatizesSafely = true, kSwitches = true;

  // The two, with what commits have to do here: for who knows which one runs (call.hpp).
  struct Few : Norec {
    static void commit_read_only(Descriptor& d) noexcept {
      if (d.special && d.looks) [[unlikely]]
        return commit_and_look<&Norec::commit_read_only>(d);
      Norec::commit_read_only(d);
    }
    static void commit_update(Descriptor& d) noexcept {
      if (d.special && d.looks) [[unlikely]]
        return commit_and_look<&Norec::commit_update>(d);
      Norec::commit_update(d);
    }
  };
  struct Many : Visible {
    static void commit_read_only(Descriptor& d) noexcept {
      Visible::commit_read_only(d);
      committed_many(d);
    }
    static void commit_update(Descriptor& d) noexcept {
      Visible::commit_update(d);
      committed_many(d);
    }
  };

  class ReadOnlyTx : public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    explicit ReadOnlyTx(Descriptor& d) noexcept : d_(&d), scales_(d.scales) {}
    Descriptor& descriptor() const noexcept { return *d_; }

    template <class F>
    [[gnu::always_inline]] static auto with(Descriptor& d, F& body) {
      return with_one<typename Few::ReadOnlyTx, typename Many::ReadOnlyTx>(d, body);
    }

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      if (scales_) return typename Many::ReadOnlyTx(*d_).load(address);
      return typename Few::ReadOnlyTx(*d_).load(address);
    }

   private:
    Descriptor* d_;
    bool scales_;
  };

  template <bool kNested>
  class Writing : public UpdateAccess<Writing<kNested>, kBlame> {
    using FewTx = typename Few::template Writing<kNested>;
    using ManyTx = typename Many::template Writing<kNested>;

   public:
    explicit Writing(Descriptor& d) noexcept : d_(&d), scales_(d.scales) {}
    Descriptor& descriptor() const noexcept { return *d_; }

    template <class F>
    [[gnu::always_inline]] static auto with(Descriptor& d, F& body) {
      return with_one<FewTx, ManyTx>(d, body);
    }

    template <class U>
    [[gnu::always_inline]] U load(const U* address) {
      if (scales_) return ManyTx(*d_).load(address);
      return FewTx(*d_).load(address);
    }
    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) {
      if (scales_) return ManyTx(*d_).store(address, value, mask);
      FewTx(*d_).store(address, value, mask);
    }

   private:
    Descriptor* d_;
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
    Many::make_state(d);
  }

  // returns whether the attempt is norec's
  template <bool kUpdate>
  [[gnu::always_inline]] static bool begin(Descriptor& d) noexcept {
    constexpr Mode kMode = kUpdate ? Mode::update : Mode::read_only;
    domain.enter(d.participant);
    // One word says whether the gate is closed (lifecycle.A) and what runs: two comparisons with memory in all.
    if (!platform::is_set(shared.slow_begin) && !d.scales) [[likely]] {
      Norec::entered(d, kMode);
      return true;
    }
    if (shared.slow_begin.load(std::memory_order_seq_cst) != serial::kScales || !d.scales)
      platform::call_preserving(enter_slowly<kUpdate>, &d);
    if (!d.scales) {
      Norec::entered(d, kMode);
      return true;
    }
    Visible::entered(d, kMode);
    return false;
  }

  static void begin_read_only(Descriptor& d) noexcept { begin<false>(d); }
  static void begin_update(Descriptor& d) noexcept { begin<true>(d); }

  static void commit_read_only(Descriptor& d) noexcept {
    if (d.scales) return Many::commit_read_only(d);
    Few::commit_read_only(d);
  }

  static void commit_update(Descriptor& d) noexcept {
    if (d.scales) return Many::commit_update(d);
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

  // A5. After rollback(): by what the attempt was.
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

  // Within the announcement: waits at a closed gate. What the attempt is from here on may be another algorithm than that of
  // the thread's last one.
  template <bool kUpdate>
  static void enter_slowly(void* descriptor) noexcept {
    if constexpr (kUpdate)
      lifecycle::enter_update_slowly(descriptor);
    else
      lifecycle::enter_reading_slowly(descriptor);
    Descriptor& d = *static_cast<Descriptor*>(descriptor);
    const bool scales = switching::scales();
    if (scales == d.scales) return;
    d.scales = scales;
    if (scales)
      Many::map_logs(d);
    else
      two_phase::drop_ticket(d);  // A4
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
