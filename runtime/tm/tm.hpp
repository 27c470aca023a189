// tm: transactions for C++.
//
//   #include "runtime/tm/tm.hpp"
//   struct Account { std::int64_t balance; };
//   loam::tm::atomically([&](auto& tx) {
//     tx.write(from.balance, tx.read(from.balance) - amount);
//     tx.write(to.balance, tx.read(to.balance) + amount);
//   });
//
//   tx.read(field), tx.write(field, value)   any trivially copyable type
//   tx.create<T>(arguments...), tx.destroy(pointer)   memory that follows the outcome of the transaction
//   Var<T>   a variable that can only be reached through a transaction
//
// Caveats   The body may run several times: it must have no effect but through tx. An attempt that aborts runs no
//           destructors. Nested transactions join the outer one. Shared data is accessed through tx by everybody; data
//           unlinked in a transaction may be used plainly only after every attempt that was running has ended.
// Speed     a transaction is a handle of four words. A body too large for GCC to inline had better take it by value
//           (auto tx): a copy stays in registers, what lies behind a reference is loaded again at every access.
// When not  long critical sections that nearly always conflict: a lock waits more cheaply. I/O.
// Threads   any thread may run transactions, at any time before its exit; up to 1024 at once.
#pragma once

#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/blame.hpp"
#include "runtime/tm/driver.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm {

// The algorithm of programs that do not choose one.
using DefaultAlgorithm = EtlWb<false>;

// Runs body(tx) as one transaction and returns its result.
template <class F>
auto atomically(F&& body) {
  return Driver<DefaultAlgorithm>::update(body);
}

struct ReadOnly {};
inline constexpr ReadOnly read_only{};

// As above for a body that only reads: no log is kept, the common case is faster. body must accept any type of
// transaction (auto&).
template <class F>
auto atomically(ReadOnly, F&& body) {
  return Driver<DefaultAlgorithm>::read_only(body);
}

// A shared variable of a trivially copyable type.
template <class T>
class Var {
 public:
  constexpr Var() noexcept = default;
  constexpr explicit Var(T value) noexcept : value_(value) {}
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;

  template <class Tx>
  T get(Tx& tx) const {
    return tx.read(value_);
  }
  template <class Tx>
  void set(Tx& tx, T value) {
    tx.write(value_, value);
  }

 private:
  alignas(sizeof(T) <= kWordBytes ? std::bit_ceil(sizeof(T)) : alignof(T)) T value_{};
};

}  // namespace loam::tm
