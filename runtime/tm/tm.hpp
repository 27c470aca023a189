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
//   tx.create<T>(arguments...), tx.destroy(pointer)   an abort frees what was created; only a commit frees what was
//                                                     destroyed
//   tx.privatize(pointer)   after the commit, unlinked data may even be unmapped
//   tx.on_commit(f), tx.on_abort(f)   functions that run after a commit, or after each abort
//   tm::retry(tx), tm::or_else(tx, f, g)   waiting until something that was read has changed
//   tm::closed(tx, f), tm::cancel(tx)   closed nesting: parts that can be undone alone
//   tm::restart(tx)   aborts the attempt and runs the transaction again at once
//   tm::atomically(tm::read_only | tm::irrevocable | tm::commit_on_throw, f)
//   tm::release_read(tx, field)   early release: unsafe unless the program knows why it is right
//   Var<T>   a variable that can only be reached through a transaction
//
// Caveats   The body may run several times: it must have no effect except through tx. An attempt that aborts runs no
//           destructors. Nested transactions join the outer one, unless run by closed(). All threads must access shared
//           data through tx. After a transaction has returned, plain code may use the data that it has unlinked
//           (Config::privatization), and may unmap it after tx.privatize(). A body must not wait for another thread's
//           transaction. Full text: docs/transactions.md.
// Speed     A transaction is a handle of four words. A body that is too large for GCC to inline should take it by value
//           (auto tx): a copy stays in registers; a reference is loaded again at every access.
// When not  Long critical sections that nearly always conflict: a lock waits more cheaply. I/O.
// Threads   Any thread may run transactions, at any time before its exit; up to 16384 at once.
#pragma once

#include "runtime/tm/algorithms/auto.hpp"
#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm {

// The algorithm of programs that do not choose one: safe for privatization without waiting (docs/adr/0024), and chosen anew as
// the program runs (docs/adr/0037). Driver<Norec<false>> and so on have the same functions for one that is fixed.
using DefaultAlgorithm = Auto<false>;
using Transactions = Driver<DefaultAlgorithm>;

struct ReadOnly {};
struct Irrevocable {};
struct CommitOnThrow {};
inline constexpr ReadOnly read_only{};
inline constexpr Irrevocable irrevocable{};
inline constexpr CommitOnThrow commit_on_throw{};

// Runs body(tx) as one transaction and returns its result. An exception that leaves the body cancels the transaction
// and passes on.
template <class F>
auto atomically(F&& body) {
  return Transactions::update(body);
}

// As above, but if an exception leaves the body, the transaction commits first, and then the exception passes on.
template <class F>
auto atomically(CommitOnThrow, F&& body) {
  return Transactions::update<OnThrow::commit>(body);
}

// For a body that only reads. It keeps no log, so the common case is faster.
template <class F>
auto atomically(ReadOnly, F&& body) {
  return Transactions::read_only(body);
}

// For a body that cannot be undone (I/O, a call to code without tx). It runs once, while no other transaction runs. It
// first waits for the transactions that run already, so these must not wait for this thread. Inside another
// transaction, the outer one restarts from its beginning and runs alone. After that, cancel() and retry() cannot undo
// the outer transaction: calling them ends the program. An exception does not undo what was done.
template <class F>
auto atomically(Irrevocable, F&& body) {
  return Transactions::irrevocable(body);
}

// Inside a transaction: aborts the attempt, sleeps until another transaction changes something that it has read, and
// runs it again. Ends the program if the transaction has read nothing.
template <class Tx>
[[noreturn]] void retry(Tx&) {
  Transactions::wait_for_change();
}

// Inside a transaction: aborts the attempt with all its parts, and runs the transaction again at once, as after a
// conflict. For a body that finds its own work out of date. To wait for a change use retry(), which sleeps.
template <class Tx>
[[noreturn]] void restart(Tx&) {
  Transactions::begin_again();
}

// Inside a transaction: runs first(tx). If it calls retry(), undoes its writes and runs second(tx). If second calls
// retry() too, the whole transaction waits for a change of anything that either of them has read.
template <class Tx, class F, class G>
void or_else(Tx&, F&& first, G&& second) {
  Transactions::or_else(first, second);
}

// Inside a transaction: runs body(tx) as a part. cancel() or an exception undoes the part alone: its writes,
// allocations, releases and handlers. returns false if it was cancelled
template <class Tx, class F>
bool closed(Tx&, F&& body) {
  return Transactions::closed(body);
}

// Undoes the innermost closed() part and continues after it. Outside of all parts: undoes the whole transaction, and
// its caller gets the exception Cancelled.
template <class Tx>
[[noreturn]] void cancel(Tx&) {
  Transactions::cancel();
}

// Early release: removes one read of `field` from the read set, so a later change of it by others is no conflict.
// Unsafe: the transaction is no longer atomic with respect to it. One call removes one tx.read(field). For
// hand-over-hand walks whose author knows what else protects them. It has no effect under algorithms that cannot drop
// single reads (Driver<A>::kReleasesReads), and in read-only transactions, which keep no read set.
template <class Tx, class T>
void release_read(Tx&, const T& field) {
  Transactions::release_read(&field, sizeof(T));
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
