// call: one call of a body by an attempt, with its transaction, its result, and an exception that leaves it.
//   An attempt runs within platform::run_attempt(): it begins, runs the body and commits; an abort leaves through
//   platform::restart().
#pragma once

#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/blame/explain.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/types.hpp"

#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace loam::tm {

// What an exception that leaves a body does to its transaction.
enum class OnThrow { cancel, commit };

// Whether an algorithm is a blame instantiation.
template <class A>
inline constexpr bool kBlames = false;
template <template <bool> class Of>
inline constexpr bool kBlames<Of<true>> = true;

// body(tx) with a handle of the running attempt. A transaction type may have handles of other types for that (Auto).
template <class Tx, class F>
[[gnu::always_inline]] inline auto with_handle(Descriptor& d, F& body) {
  if constexpr (requires { Tx::with(d, body); }) {
    return Tx::with(d, body);
  } else {
    Tx tx(d);
    return body(tx);
  }
}

// A body, its transaction type and room for its result.
template <Algorithm A, class F, class Tx, OnThrow kOnThrow>
struct Call {
  using Result = std::invoke_result_t<F&, Tx&>;
  static constexpr bool kReturns = !std::is_void_v<Result>;
  static_assert(!kReturns || std::is_trivially_destructible_v<Result>,
                "a transaction's result is dropped without its destructor when the attempt aborts");
  static_assert(!std::is_reference_v<Result>, "a transaction returns a value or a pointer");

  explicit Call(F& body) noexcept : body_(body) {}

  static void run(platform::Checkpoint& checkpoint, void* self) {
    static_cast<Call*>(self)->attempt(static_cast<Descriptor&>(checkpoint));
  }
  static void run_in_place(platform::Checkpoint& checkpoint, void* self) {
    static_cast<Call*>(self)->in_place(static_cast<Descriptor&>(checkpoint));
  }

  using Body = F;
  F& body() noexcept { return body_; }
  auto result() noexcept {
    if constexpr (kReturns) return std::move(*std::launder(reinterpret_cast<Result*>(storage_)));
  }

 private:
  static constexpr bool kReadOnly = std::is_same_v<Tx, typename A::ReadOnlyTx>;

  // Of an algorithm that changes between two (Auto) each half has code of its own from begin to commit, so only the begin
  // asks which one runs.
  void attempt(Descriptor& d) {
    if constexpr (requires { typename A::Few; }) {
      if (A::template begin<!kReadOnly>(d)) [[likely]]
        return begun<typename A::Few>(d);
      begun_many(d);
    } else {
      if constexpr (kReadOnly)
        A::begin_read_only(d);
      else
        A::begin_update(d);
      begun<A>(d);
    }
  }

  [[gnu::noinline]] void begun_many(Descriptor& d) { begun<typename A::Many>(d); }

  template <class Half>
  [[gnu::always_inline]] void begun(Descriptor& d) {
    if constexpr (kBlames<A>) explain::began(d);
    try {
      call_body<std::conditional_t<kReadOnly, typename Half::ReadOnlyTx, typename Half::UpdateTx>>(d);
    } catch (...) {
      // A commit that fails restores registers past the handler, which would leave the exception alive.
      if constexpr (kOnThrow == OnThrow::commit && !kReadOnly) thrown_ = std::current_exception();
      if (!has_thrown()) {  // to cancel; or the thread ends, and what unwinds it is no exception of C++
        cancel(d);
        throw;
      }
    }
    if constexpr (kReadOnly)
      Half::commit_read_only(d);
    else
      Half::commit_update(d);
    if constexpr (kBlames<A>) explain::committed(d);
  }

  // The body runs alone, with plain accesses. After its first irrevocable part nothing is undone, even if an exception
  // leaves the body.
  void in_place(Descriptor& d) {
    try {
      call_body<Tx>(d);
    } catch (...) {
      if (kOnThrow == OnThrow::cancel && serial::revocable())
        lifecycle::aborted_in_place(d);
      else
        lifecycle::committed_in_place(d);
      throw;
    }
    lifecycle::committed_in_place(d);
  }

  template <class Handle>
  [[gnu::always_inline]] void call_body(Descriptor& d) {
    if constexpr (kReturns)
      ::new (static_cast<void*>(storage_)) Result(with_handle<Handle>(d, body_));
    else
      with_handle<Handle>(d, body_);
  }

  bool has_thrown() const noexcept {
    if constexpr (kOnThrow == OnThrow::commit) return thrown_ != nullptr;
    return false;
  }

  // An exception leaves the body, and the transaction with it.
  [[gnu::noinline, gnu::cold]] static void cancel(Descriptor& d) noexcept {
    A::rollback(d, AbortCause::explicit_);
    contention::settled(d);
    if (!serial::holds(d)) lifecycle::run_handlers(d);  // else once the gate is open
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

}  // namespace loam::tm
