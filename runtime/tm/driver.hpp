// driver: runs a body as attempts of an algorithm until one commits.
//   read_only(f)    f(tx) with a transaction that only reads and keeps no log; after kReadOnlyFailuresMax attempts with
//                   one that can extend its snapshot.
//   update(f)       f(tx) with a transaction that reads and writes.
//   irrevocable(f)  f(tx) alone: it cannot abort, so it may do what cannot be undone.
//   closed(f)       within an update: a part that can be cancelled by itself.
//   or_else(f, g)   within an update: f; if it retries, g in its place.
//   A body is run with any of these transactions, so it accepts all (auto&). Nesting is flat unless closed() is used.
//   An aborted attempt returns to the driver by restoring registers, 50 to 150 times cheaper than an exception, and
//   runs no destructors: an object that lives inside the body may own transactional memory and nothing else. Results
//   must be trivially destructible for the same reason. An exception that leaves the body cancels the transaction,
//   unless OnThrow::commit is chosen.
//   Source  retry and or_else: Harris, Marlow, Peyton Jones and Herlihy, PPoPP 2005.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/contention.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/irrevocable.hpp"
#include "runtime/tm/lifecycle.hpp"
#include "runtime/tm/runtime.hpp"
#include "runtime/tm/serial.hpp"
#include "runtime/tm/types.hpp"
#include "runtime/tm/waiting.hpp"

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace loam::tm {

// What an exception that leaves a body does to its transaction.
enum class OnThrow { cancel, commit };

inline constexpr unsigned kReadOnlyFailuresMax = 2;

template <Algorithm A>
class Driver {
  using ReadOnlyTx = typename A::ReadOnlyTx;
  using UpdateTx = typename A::UpdateTx;
  using NestedTx = typename A::NestedTx;
  static constexpr Hooks kHooks{&A::kDescription, &A::attach};

 public:
  template <class F>
  static auto read_only(F&& body) {
    using Reading = Call<std::remove_reference_t<F>, ReadOnlyTx, OnThrow::cancel>;
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode != Mode::idle) [[unlikely]] {
      if (d->mode != Mode::detached) return nested_read(*d, body);
      d = &Descriptor::attach_thread(kHooks);
    }
#ifdef LOAM_CHECKED
    check_algorithm();
#endif
    Reading call(body);
    const int code = platform::run_attempt(*d, &Reading::run, &call);
    if (code == 0) [[likely]]
      return call.result();
    return read_only_slow(*d, body, call, code);
  }

  template <OnThrow kOnThrow = OnThrow::cancel, class F>
  static auto update(F&& body) {
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode != Mode::idle) [[unlikely]] {
      if (d->mode != Mode::detached) return nested_update(*d, body);
      d = &Descriptor::attach_thread(kHooks);
    }
#ifdef LOAM_CHECKED
    check_algorithm();
#endif
    return run_update<kOnThrow>(*d, body, 0);
  }

  template <class F>
  static auto irrevocable(F&& body) {
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode == Mode::serial) return as<IrrevocableTx>(*d, body);
    if (d->mode == Mode::detached) d = &Descriptor::attach_thread(kHooks);
    if (d->mode != Mode::idle) restart(*d, kSerial);
    return run_serial(*d, body);
  }

  // Runs body(tx) as a part of the update that runs. returns whether it was kept, that is, not cancelled
  template <class F>
  static bool closed(F&& body) {
    return run_part(body) == 0;
  }

  template <class F, class G>
  static void or_else(F&& first, G&& second) {
    const int code = run_part(first);
    if (code == kWait) {
      // What `first` has read stays in the read set: the transaction waits for a change of that as well.
      if (run_part(second) == kWait) wait_for_change();
    }
  }

  // Ends the innermost part without effect; the whole transaction where there is none, with Cancelled thrown.
  [[noreturn]] static void cancel() {
    Descriptor& d = Descriptor::current_or_detached();
    LOAM_CHECK(d.mode == Mode::update || d.mode == Mode::nested, "tm: cancel() {}", complaint(d.mode));
    if (d.mode == Mode::nested) platform::restart(d, kCancel);
    throw Cancelled{};
  }

  // Ends the attempt, or the innermost part of or_else(), until something that it has read has changed.
  [[noreturn, gnu::noinline, gnu::cold]] static void wait_for_change() {
    Descriptor& d = Descriptor::current_or_detached();
    LOAM_CHECK(d.mode != Mode::serial && d.mode != Mode::idle && d.mode != Mode::detached, "tm: retry() {}",
               complaint(d.mode));
    if (d.mode == Mode::nested) platform::restart(d, kWait);
    restart(d, d.mode == Mode::read_only ? kUpdate : kWait);  // to wait takes a read set
  }

 private:
  static const char* complaint(Mode mode) noexcept {
    return mode == Mode::serial      ? "in an irrevocable transaction, which nothing can take back"
           : mode == Mode::read_only ? "in a read-only transaction"
                                     : "outside of transactions";
  }

  // A body, its transaction type and room for its result.
  template <class F, class Tx, OnThrow kOnThrow>
  struct Call {
    using Result = std::invoke_result_t<F&, Tx&>;
    static constexpr bool kReturns = !std::is_void_v<Result>;
    static_assert(!kReturns || std::is_trivially_destructible_v<Result>,
                  "a transaction's result is dropped without its destructor when the attempt aborts");
    static_assert(!std::is_reference_v<Result>, "a transaction returns a value or a pointer");

    explicit Call(F& body) noexcept : body_(body) {}

    static void run(void* self, platform::AttemptSelf, platform::Checkpoint& checkpoint) {
      static_cast<Call*>(self)->attempt(static_cast<Descriptor&>(checkpoint));
    }

    auto result() noexcept {
      if constexpr (kReturns) return std::move(*std::launder(reinterpret_cast<Result*>(storage_)));
    }

   private:
    void attempt(Descriptor& d) {
      constexpr bool kReadOnly = std::is_same_v<Tx, ReadOnlyTx>;
      if constexpr (kReadOnly)
        A::begin_read_only(d);
      else
        A::begin_update(d);
      try {
        Tx tx(d);
        if constexpr (kReturns)
          ::new (static_cast<void*>(storage_)) Result(body_(tx));
        else
          body_(tx);
      } catch (...) {
        // A commit that fails restores registers past the handler, which would leave the exception alive.
        if constexpr (kOnThrow == OnThrow::commit && !kReadOnly) {
          thrown_ = std::current_exception();
        } else {
          A::rollback(d, AbortCause::explicit_);
          throw;
        }
      }
      if constexpr (kReadOnly)
        A::commit_read_only(d);
      else
        A::commit_update(d);
    }

   public:
    // Of the attempt that committed.
    void rethrow() {
      if constexpr (kOnThrow == OnThrow::commit)
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }
    void forget() noexcept {
      if constexpr (kOnThrow == OnThrow::commit) thrown_ = nullptr;
    }

   private:
    struct Nothing {};
    using Stored = std::conditional_t<kReturns, Result, Nothing>;
    F& body_;
    [[no_unique_address]] std::conditional_t<kOnThrow == OnThrow::commit, std::exception_ptr, Nothing> thrown_;
    alignas(Stored) std::byte storage_[sizeof(Stored)];
  };

  // After the first attempt without a log has failed: perhaps another one, then attempts that can extend.
  template <class F, class C>
  [[gnu::noinline]] static auto read_only_slow(Descriptor& d, F& body, C& call, int code) {
    unsigned aborts = 1;
    for (; aborts < kReadOnlyFailuresMax && code == kRestart; ++aborts) {
      code = platform::run_attempt(d, &C::run, &call);
      if (code == 0) {
        settle(d, aborts);
        return call.result();
      }
    }
    if (code == kSerial) return run_serial(d, body);
    return run_update<OnThrow::cancel>(d, body, aborts);
  }

  template <OnThrow kOnThrow, class F>
  static auto run_update(Descriptor& d, F& body, unsigned aborts) {
    Call<F, UpdateTx, kOnThrow> call(body);
    const int code = platform::run_attempt(d, &Call<F, UpdateTx, kOnThrow>::run, &call);
    if (code != 0) [[unlikely]]
      return again(d, body, call, code, aborts + 1);
    if (aborts != 0) [[unlikely]]
      settle(d, aborts);
    call.rethrow();
    return call.result();
  }

  static void settle(Descriptor& d, unsigned aborts) noexcept {
    contention::settled(d);
    d.statistics.count_commit_after(aborts);
  }

  // After `aborts` attempts, the last of which ended with `code`.
  template <class F, class C>
  [[gnu::noinline, gnu::cold]] static auto again(Descriptor& d, F& body, C& call, int code, unsigned aborts) {
    for (; code != 0; ++aborts) {
      call.forget();
      const unsigned limit = shared.config.serialise_after;
      if (code == kSerial || (limit != 0 && aborts >= limit && code == kRestart)) {
        settle(d, aborts);
        return run_serial(d, body);
      }
      if (code == kWait)
        waiting::wait(&A::unchanged, d, d.generation);
      else
        contention::before_retry(d, aborts);
      code = platform::run_attempt(d, &C::run, &call);
    }
    settle(d, aborts - 1);
    call.rethrow();
    return call.result();
  }

  // Alone. An exception leaves what was done.
  template <class F>
  [[gnu::noinline, gnu::cold]] static auto run_serial(Descriptor& d, F& body) {
    struct Alone {
      Descriptor& d;
      explicit Alone(Descriptor& descriptor) : d(descriptor) { serial::acquire(d); }
      ~Alone() {
        serial::release(d);
        lifecycle::finished_alone(d);
      }
    } const alone(d);
    return as<IrrevocableTx>(d, body);
  }

  template <class Tx, class F>
  static auto as(Descriptor& d, F& body) {
    Tx tx(d);
    return body(tx);
  }

  template <class F>
  static auto nested_read(Descriptor& d, F& body) {
    check_algorithm();
    if (d.mode == Mode::read_only) return as<ReadOnlyTx>(d, body);
    return nested_update(d, body);
  }

  template <class F>
  static auto nested_update(Descriptor& d, F& body) {
    check_algorithm();
    if (d.mode == Mode::read_only) restart(d, kUpdate);
    if (d.mode == Mode::nested) return as<NestedTx>(d, body);
    if (d.mode == Mode::serial) return as<IrrevocableTx>(d, body);
    return as<UpdateTx>(d, body);
  }

  // Runs a body that can be taken back. returns 0, or the code with which it came back, its writes undone
  template <class F>
  [[gnu::noinline]] static int run_part(F& body) {
    Descriptor& d = Descriptor::current_or_detached();
    if (d.mode == Mode::read_only) restart(d, kUpdate);
    if (d.mode == Mode::serial) {
      as<IrrevocableTx>(d, body);
      return 0;
    }
    LOAM_CHECK(d.mode == Mode::update || d.mode == Mode::nested, "tm: closed() or or_else() outside of transactions");
    const typename A::Savepoint savepoint = A::save(d);
    Part part{d, d.part, lifecycle::mark(d)};
    const Mode around = d.mode;
    const auto leave = [&] {
      static_cast<platform::Checkpoint&>(d) = part.outer;
      d.part = part.around;
      d.mode = around;
    };
    const auto undo = [&] {
      A::restore(d, savepoint);
      lifecycle::take_back(d, part.mark);
      leave();
    };
    d.part = &part;
    d.mode = Mode::nested;
    int code;
    try {
      code = platform::run_attempt(
          d,
          [](void* argument, platform::AttemptSelf, platform::Checkpoint& checkpoint) {
            as<NestedTx>(static_cast<Descriptor&>(checkpoint), *static_cast<std::remove_reference_t<F>*>(argument));
          },
          &body);
    } catch (...) {
      undo();
      throw;
    }
    if (code == 0)
      leave();
    else
      undo();
    return code;
  }

  // The transaction around may be another driver's, or the C interface's.
  static void check_algorithm() noexcept {
    const Hooks* const hooks =
        shared.algorithm.load(std::memory_order_relaxed);  // relaxed: set once, before this thread
    if (hooks != &kHooks) [[unlikely]]
      check_same_algorithm(*hooks->description, A::kDescription);
  }

  // Ends the whole attempt; run_update() and the like get the code.
  [[noreturn, gnu::cold, gnu::noinline]] static void restart(Descriptor& d, int code) noexcept {
    d.generation = serial::generation();
    A::rollback(d, AbortCause::explicit_);
    lifecycle::restart(d, code);
  }
};

}  // namespace loam::tm
