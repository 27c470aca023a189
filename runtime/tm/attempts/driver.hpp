// driver: runs a body as attempts of an algorithm until one commits.
//   read_only(f)    f(tx) with a transaction that only reads and keeps no log. After kReadOnlyFailuresMax failed
//                   attempts, with one that can extend its snapshot.
//   update(f)       f(tx) with a transaction that reads and writes.
//   irrevocable(f)  f(tx) alone: it cannot abort, so it may do what cannot be undone.
//   closed(f)       within a transaction: a part that can be cancelled by itself. A conflict in it restarts only the
//                   part if the algorithm can show that the earlier reads are still valid (algorithm.hpp: resume).
//   or_else(f, g)   within a transaction: runs f; if f calls retry(), undoes it and runs g.
//   A body may be run with any of these transaction types, so it takes auto&. Nesting is flat unless closed() is used.
//   Aborts    An attempt that aborts or is cancelled returns to the driver by restoring registers, which is 50 to 150
//             times cheaper than an exception. No destructors run. So objects inside the body may own transactional
//             memory and nothing else, results must be trivially destructible, and no exception may be in flight or
//             caught when an attempt ends early. An exception that leaves the body cancels the transaction, unless
//             OnThrow::commit is chosen.
//   Alone     After Config::serialise_after aborts the transaction runs as an ordinary attempt behind the gate. It may
//             still cancel, retry and throw. A transaction that contains irrevocable(f) runs behind the gate from its
//             start, in place. Until f begins, cancel and exceptions undo it, and retry goes back to ordinary attempts,
//             which have a read set to wait with. After that it cannot be undone.
//   Source    retry and or_else: Harris, Marlow, Peyton Jones and Herlihy, PPoPP 2005; closed nesting with partial
//             abort: Moravan et al., ASPLOS 2006; irrevocable transactions: Welc, Saha and Adl-Tabatabai, SPAA 2008.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/call.hpp"
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/attempts/irrevocable.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"
#include "runtime/tm/types.hpp"

#include <type_traits>

namespace loam::tm {

inline constexpr unsigned kReadOnlyFailuresMax = 2;

template <Algorithm A>
class Driver {
  using ReadOnlyTx = typename A::ReadOnlyTx;
  using UpdateTx = typename A::UpdateTx;
  using NestedTx = typename A::NestedTx;
  static constexpr Hooks kHooks = hooks_of<A>();

 public:
  using Uses = A;

  template <class F>
  static auto read_only(F&& body) {
    Descriptor& d = Descriptor::current_or_detached();
    if (d.mode != Mode::idle) [[unlikely]]
      return not_idle<Kind::read_only, OnThrow::cancel>(d, body);
#ifdef LOAM_CHECKED
    check_algorithm();
#endif
    return run_read_only(d, body);
  }

  template <OnThrow kOnThrow = OnThrow::cancel, class F>
  static auto update(F&& body) {
    Descriptor& d = Descriptor::current_or_detached();
    if (d.mode != Mode::idle) [[unlikely]]
      return not_idle<Kind::update, kOnThrow>(d, body);
#ifdef LOAM_CHECKED
    check_algorithm();
#endif
    return run_update<kOnThrow>(d, body, 0);
  }

  template <class F>
  static auto irrevocable(F&& body) {
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode == Mode::detached) d = &Descriptor::attach_thread(kHooks);
    if (d->mode != Mode::idle) {
      lifecycle::check_nested(*d);
      if (d->mode != Mode::serial) restart(*d, kSerial);
      serial::irrevocable(*d);
      return as<IrrevocableTx>(*d, body);
    }
    Call<std::remove_reference_t<F>, IrrevocableTx, OnThrow::commit> call(body);
    Alone alone(*d);
    alone.begin();
    run_in_place(*d, call, false);
    alone.end();
    return call.result();
  }

  // Runs body(tx) as a part of the transaction that runs. returns whether it was kept, that is, not cancelled
  template <class F>
  static bool closed(F&& body) {
    const int code = run_part(body);
    if (code == kWait) wait_for_change();  // to retry is no outcome of the part alone
    return code == 0;
  }

  template <class F, class G>
  static void or_else(F&& first, G&& second) {
    const int code = run_part(first);
    if (code == kWait) {
      // What `first` has read stays in the read set: the transaction waits for a change of that as well.
      if (run_part(second) == kWait) wait_for_change();
    }
  }

  // Undoes the innermost part. If there is no part, undoes the whole transaction and throws Cancelled to its caller.
  [[noreturn, gnu::noinline, gnu::cold]] static void cancel() {
    Descriptor& d = running("cancel()");
    if (d.part != nullptr) platform::restart(d, kCancel);
    restart(d, kCancel);
  }

  // Ends the attempt, or the innermost part of or_else(), until something that it has read has changed.
  [[noreturn, gnu::noinline, gnu::cold]] static void wait_for_change() {
    Descriptor& d = running("retry()");
    if (d.part != nullptr) platform::restart(d, kWait);
    // Waiting needs a read set, which only an update transaction has.
    restart(d, d.mode == Mode::update ? kWait : kUpdate);
  }

  // Aborts the attempt with all its parts, and runs the transaction again at once, as after a conflict: it counts among
  // the aborts after which a transaction runs alone. If the attempt runs alone, the next one does not: otherwise the
  // event for which the body waits could never happen.
  [[noreturn, gnu::noinline, gnu::cold]] static void begin_again() {
    Descriptor& d = running("restart()");
    restart(d, serial::holds(d) ? kAgain : kRestart);
  }

  // Removes a read of the object's words from the read set, if the algorithm supports this: a later change of them is
  // then no conflict.
  static void release_read(const void* object, std::size_t bytes) noexcept {
    Descriptor& d = Descriptor::current_or_detached();
    LOAM_CHECK(d.mode != Mode::idle && d.mode != Mode::detached, "tm: release_read() outside of transactions");
    if constexpr (kReleasesReads)
      if (d.mode == Mode::update || d.mode == Mode::nested)
        for_each_word(object, bytes, [&](const Word* word, auto...) { A::release_read(d, word); });
  }
  static constexpr bool kReleasesReads = requires(Descriptor& d, const Word* word) { A::release_read(d, word); };
  // Whether a conflict within a part can restart the part alone.
  static constexpr bool kResumesParts =
      requires(Descriptor& d, const typename A::Savepoint& savepoint) { A::resume(d, savepoint); };

 private:
  // The descriptor of a transaction that can still be undone.
  static Descriptor& running(const char* call) noexcept {
    Descriptor& d = Descriptor::current_or_detached();
    LOAM_CHECK(d.mode != Mode::idle && d.mode != Mode::detached, "tm: {} outside of transactions", call);
    LOAM_CHECK(d.mode != Mode::serial || serial::revocable(),
               "tm: {} in an irrevocable transaction, which nothing can take back", call);
    return d;
  }

  // The gate, closed between begin() and end(). Work that was deferred until it is open again is done in end().
  class Alone {
   public:
    explicit Alone(Descriptor& d) noexcept : d_(d) {}
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    ~Alone() {
      if (alone_) end();
    }

    bool is_alone() const noexcept { return alone_; }
    void begin() noexcept {
      if (!alone_) serial::acquire(d_);
      alone_ = true;
    }
    void end() noexcept {
      open();
      lifecycle::after_alone(d_);
    }
    // Leaves the handlers to the caller.
    void open() noexcept {
      if (alone_) serial::release(d_);
      alone_ = false;
    }

   private:
    Descriptor& d_;
    bool alone_ = false;
  };

  template <class F, class Tx, OnThrow kOnThrow>
  using Call = tm::Call<A, F, Tx, kOnThrow>;

  enum class Kind { read_only, update };

  // A transaction inside another one, or a thread's first.
  template <Kind kKind, OnThrow kOnThrow, class F>
  [[gnu::noinline, gnu::cold]] static auto not_idle(Descriptor& d, F& body) {
    if (d.mode != Mode::detached) {
      if constexpr (kKind == Kind::read_only)
        return nested_read(d, body);
      else
        return nested_update(d, body);
    }
    Descriptor& attached = Descriptor::attach_thread(kHooks);
    if constexpr (kKind == Kind::read_only)
      return run_read_only(attached, body);
    else
      return run_update<kOnThrow>(attached, body, 0);
  }

  template <class F>
  [[gnu::always_inline]] static auto run_read_only(Descriptor& d, F& body) {
    using Reading = Call<F, ReadOnlyTx, OnThrow::cancel>;
    Reading call(body);
    const int code = platform::run_attempt(d, &Reading::run, &call);
    if (code == 0) [[likely]]
      return call.result();
    return read_only_slow(d, call, code);
  }

  // Called when the first attempt without a log has failed: perhaps tries another one, then attempts that can extend.
  template <class C>
  [[gnu::noinline]] static auto read_only_slow(Descriptor& d, C& call, int code) {
    unsigned aborts = 1;
    for (; code == kRestart; ++aborts) {
      contention::before_retry(d, aborts);
      if (aborts == kReadOnlyFailuresMax) break;
      code = platform::run_attempt(d, &C::run, &call);
      if (code == 0) {
        settle(d, aborts);
        return call.result();
      }
    }
    if (code == kRestart || code == kUpdate) return run_update<OnThrow::cancel>(d, call.body(), aborts);
    Call<typename C::Body, UpdateTx, OnThrow::cancel> updating(call.body());
    return again<OnThrow::cancel>(d, updating, code, aborts);
  }

  template <OnThrow kOnThrow, class F>
  static auto run_update(Descriptor& d, F& body, unsigned aborts) {
    Call<F, UpdateTx, kOnThrow> call(body);
    const int code = platform::run_attempt(d, &Call<F, UpdateTx, kOnThrow>::run, &call);
    if (code != 0) [[unlikely]]
      return again<kOnThrow>(d, call, code, aborts + 1);
    if (aborts != 0) [[unlikely]]
      settle(d, aborts);
    call.rethrow();
    return call.result();
  }

  static void settle(Descriptor& d, unsigned aborts) noexcept {
    contention::settled(d);
    d.statistics.count_commit_after(aborts);
  }

  // After `aborts` attempts, the last of which ended with `code`. The exception of an attempt that did not commit is
  // dropped; one that leaves here goes past `alone`, which opens the gate.
  template <OnThrow kOnThrow, class C>
  [[gnu::noinline, gnu::cold]] static auto again(Descriptor& d, C& call, int code, unsigned aborts) {
    Alone alone(d);
    for (; code != 0; ++aborts) {
      call.forget();
      const bool serialised = code == kRestart && contention::runs_alone(d, aborts);
      if (!serialised || d.handler_end != d.handler_first) alone.open();
      lifecycle::run_handlers_aside(d);
      if (code == kCancel) {
        contention::settled(d);
        throw Cancelled{};
      }
      if (code == kSerial) {
        Call<typename C::Body, IrrevocableTx, kOnThrow> in_place(call.body());
        alone.begin();
        code = run_in_place(d, in_place, true);
        if (code != 0) continue;
        alone.end();
        settle(d, aborts);
        return in_place.result();
      }
      if (serialised) {
        alone.begin();
      } else if (code == kWait) {
        waiting::wait(waiting::awaited_of<A>(d), d);
        contention::excuse(d);
      } else if (code == kProvide) {
        memory::provide(d);
        contention::excuse(d);
      } else {
        contention::before_retry(d, aborts);
      }
      code = platform::run_attempt(d, &C::run, &call);
    }
    if (alone.is_alone()) alone.end();
    settle(d, aborts - 1);
    call.rethrow();
    return call.result();
  }

  // The gate is closed. returns 0, or the code with which the body was taken back
  template <class C>
  static int run_in_place(Descriptor& d, C& call, bool revocable) {
    serial::begin_in_place(d, revocable);
    return platform::run_attempt(d, &C::run_in_place, &call);
  }

  template <class Tx, class F>
  static auto as(Descriptor& d, F& body) {
    return with_handle<Tx>(d, body);
  }

  template <class F>
  static auto nested_read(Descriptor& d, F& body) {
    check_algorithm();
    if (d.mode == Mode::read_only) {
      lifecycle::check_nested(d);
      return as<ReadOnlyTx>(d, body);
    }
    return nested_update(d, body);
  }

  template <class F>
  static auto nested_update(Descriptor& d, F& body) {
    lifecycle::check_nested(d);
    check_algorithm();
    if (d.mode == Mode::read_only) restart(d, kUpdate);
    if (d.mode == Mode::nested) return as<NestedTx>(d, body);
    if (d.mode == Mode::serial) return as<IrrevocableTx>(d, body);
    return as<UpdateTx>(d, body);
  }

  // Runs a body that can be undone. returns 0, or the code with which it came back, its writes undone
  template <class F>
  static int run_part(F& body) {
    Descriptor& d = Descriptor::current_or_detached();
    LOAM_CHECK(d.mode != Mode::idle && d.mode != Mode::detached, "tm: closed() or or_else() outside of transactions");
    lifecycle::check_nested(d);
    if (d.mode == Mode::read_only) restart(d, kUpdate);
    if (d.mode == Mode::serial) return run_part_in_place(d, body);
    const typename A::Savepoint savepoint = A::save(d);
    Part part{d, d.part, lifecycle::mark(d)};
    const Mode around = d.mode;
    const auto leave = [&] {
      lifecycle::leave_part(d, part);
      d.mode = around;
    };
    const auto undo = [&] {
      A::restore(d, savepoint);
      lifecycle::take_back(d, part.mark);
      leave();
    };
    for (;;) {
      lifecycle::enter_part(d, part);
      d.mode = Mode::nested;
      int code;
      try {
        code = run_as<NestedTx>(d, body);
      } catch (...) {
        undo();
        throw;
      }
      if (code == 0) {
        leave();
        return 0;
      }
      undo();
      if (code != kRestart) return code;
      if constexpr (kResumesParts) A::resume(d, savepoint);
      contention::before_retry(d, part.conflicts);
    }
  }

  // The same of a body that runs alone, in place. From its first irrevocable part on it stays, whatever leaves it.
  template <class F>
  static int run_part_in_place(Descriptor& d, F& body) {
    WriteEntry* const written = d.write_end;
    Part part{d, d.part, lifecycle::mark(d)};
    const auto leave = [&](bool undo) {
      if (undo && serial::revocable()) {
        serial::undo_to(d, written);
        lifecycle::take_back(d, part.mark);
      }
      lifecycle::leave_part(d, part);
    };
    lifecycle::enter_part(d, part);
    int code;
    try {
      code = run_as<IrrevocableTx>(d, body);
    } catch (...) {
      leave(true);
      throw;
    }
    leave(code != 0);
    return code;
  }

  template <class Tx, class F>
  static int run_as(Descriptor& d, F& body) {
    return platform::run_attempt(
        d,
        [](platform::Checkpoint& checkpoint, void* argument) {
          as<Tx>(static_cast<Descriptor&>(checkpoint), *static_cast<F*>(argument));
        },
        const_cast<std::remove_const_t<F>*>(&body));  // F again, on the other side
  }

  // The transaction around may be another driver's, or the C interface's.
  static void check_algorithm() noexcept {
    const Hooks* const hooks =
        shared.algorithm.load(std::memory_order_relaxed);  // relaxed: set once, before this thread
    if (hooks != &kHooks) [[unlikely]]
      check_same_algorithm(*hooks->description, A::kDescription);
  }

  // Ends the whole attempt; who runs it gets the code.
  [[noreturn, gnu::cold, gnu::noinline]] static void restart(Descriptor& d, int code) noexcept {
    if (d.mode == Mode::serial) {
      lifecycle::aborted_in_place(d);
    } else {
      d.generation = serial::generation();
      A::rollback(d, AbortCause::explicit_);
      if constexpr (requires { A::has_read(d); })
        LOAM_CHECK(code != kWait || A::has_read(d),
                   "tm: retry() in a transaction that has read nothing: nothing could ever wake it");
    }
    lifecycle::restart(d, code);
  }
};

}  // namespace loam::tm
