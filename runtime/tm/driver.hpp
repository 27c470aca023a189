// driver: runs a body as attempts of an algorithm until one commits.
//   read_only(f)  f(tx) with a transaction that only reads and keeps no log; after kReadOnlyFailuresMax attempts
//                 with one that can extend its snapshot.
//   update(f)     f(tx) with a transaction that reads and writes.
//   Nesting is flat: the inner body becomes part of the outer transaction.
//   An aborted attempt returns to the driver by restoring registers, 50 to 150 times cheaper than an exception, and
//   runs no destructors: an object that lives inside the body may own transactional memory and nothing else. Results
//   must be trivially destructible for the same reason. An exception that leaves the body cancels the transaction.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/types.hpp"

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace loam::tm {

struct AlgorithmDescription {
  std::string_view name;
  std::string_view summary;
  std::string_view paper;
  std::string_view guarantees;
};

// The code with which an aborted attempt comes back to the driver.
inline constexpr int kRestart = 1;

inline constexpr unsigned kReadOnlyFailuresMax = 2;
// Aborts in a row after which the core is given up now and then: the other side may not be running.
inline constexpr unsigned kEagerRetries = 8;

template <class Algorithm>
class Driver {
  using ReadOnlyTx = typename Algorithm::ReadOnlyTx;
  using UpdateTx = typename Algorithm::UpdateTx;

 public:
  template <class F>
  static auto read_only(F&& body) {
    using Reading = Call<std::remove_reference_t<F>, ReadOnlyTx>;
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode != Mode::idle) [[unlikely]] {
      if (d->mode != Mode::detached) return nested_read(*d, body);
      d = &Descriptor::attach_thread();
    }
    Reading call(body);
    if (platform::run_attempt(*d, &Reading::run, &call) == 0) [[likely]]
      return call.result();
    return read_only_slow(*d, body, call);
  }

  template <class F>
  static auto update(F&& body) {
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode != Mode::idle) [[unlikely]] {
      if (d->mode != Mode::detached) return nested_update(*d, body);
      d = &Descriptor::attach_thread();
    }
    return run_update(*d, body, 0);
  }

 private:
  // A body, its transaction type and room for its result.
  template <class F, class Tx>
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
        Algorithm::begin_read_only(d);
      else
        Algorithm::begin_update(d);
      try {
        Tx tx(d);
        if constexpr (kReturns)
          ::new (static_cast<void*>(storage_)) Result(body_(tx));
        else
          body_(tx);
      } catch (...) {
        Algorithm::rollback(d, AbortCause::explicit_);
        throw;
      }
      if constexpr (kReadOnly)
        Algorithm::commit_read_only(d);
      else
        Algorithm::commit_update(d);
    }

    struct Nothing {};
    using Stored = std::conditional_t<kReturns, Result, Nothing>;
    F& body_;
    alignas(Stored) std::byte storage_[sizeof(Stored)];
  };

  // After the first attempt without a log has failed: perhaps another one, then attempts that can extend.
  template <class F>
  [[gnu::noinline]] static auto read_only_slow(Descriptor& d, F& body, Call<F, ReadOnlyTx>& call) {
    unsigned aborts = 1;
    for (; aborts < kReadOnlyFailuresMax; ++aborts)
      if (platform::run_attempt(d, &Call<F, ReadOnlyTx>::run, &call) == 0) {
        d.statistics.count_commit_after(aborts);
        return call.result();
      }
    return run_update(d, body, aborts);
  }

  template <class F>
  static auto run_update(Descriptor& d, F& body, unsigned aborts) {
    Call<F, UpdateTx> call(body);
    if (platform::run_attempt(d, &Call<F, UpdateTx>::run, &call) != 0) [[unlikely]]
      retry(d, aborts + 1, &Call<F, UpdateTx>::run, &call);
    else if (aborts != 0) [[unlikely]]
      d.statistics.count_commit_after(aborts);
    return call.result();
  }

  // The suicide policy's second half: again, at once; the core is given up now and then.
  [[gnu::noinline, gnu::cold]] static void retry(Descriptor& d, unsigned aborts, platform::AttemptBody attempt,
                                                 void* call) {
    sync::Backoff backoff;
    for (; platform::run_attempt(d, attempt, call) != 0; ++aborts)
      if (aborts % kEagerRetries == 0) backoff.wait();
    d.statistics.count_commit_after(aborts);
  }

  template <class F>
  static auto nested_read(Descriptor& d, F& body) {
    if (d.mode == Mode::read_only) {
      ReadOnlyTx tx(d);
      return body(tx);
    }
    UpdateTx tx(d);
    return body(tx);
  }

  template <class F>
  static auto nested_update(Descriptor& d, F& body) {
    if (d.mode == Mode::read_only) restart_as_update(d);
    UpdateTx tx(d);
    return body(tx);
  }

  [[noreturn, gnu::cold, gnu::noinline]] static void restart_as_update(Descriptor& d) noexcept {
    Algorithm::rollback(d, AbortCause::explicit_);
    platform::restart(d, kRestart);
  }
};

}  // namespace loam::tm
