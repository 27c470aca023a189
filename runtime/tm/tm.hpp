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
//   tx.privatize(pointer)   what was unlinked may even be unmapped once the transaction has returned
//   tx.on_commit(f), tx.on_abort(f)   what follows the outcome
//   tm::retry(tx), tm::or_else(tx, f, g), tm::closed(tx, f), tm::cancel(tx)   waiting, and parts that can be taken back
//   tm::restart(tx)   gives the attempt up and runs the transaction again at once
//   tm::atomically(tm::read_only | tm::irrevocable | tm::commit_on_throw, f)
//   tm::release_read(tx, field)   early release: unsafe unless the program knows why it is right
//   Var<T>   a variable that can only be reached through a transaction
//
// Caveats   The body may run several times: it must have no effect except through tx. An attempt that aborts runs no
//           destructors. Nested transactions join the outer one, unless run by closed(). Shared data must be accessed
//           through tx by everybody. What a transaction has unlinked may be used plainly once it has returned
//           (Config::privatization), and unmapped after tx.privatize(). A body must not wait for another thread's
//           transaction. Full text: docs/transactions.md.
// Speed     A transaction is a handle of four words. A body that is too large for GCC to inline should take it by value
//           (auto tx): a copy stays in registers; a reference is loaded again at every access.
// When not  Long critical sections that nearly always conflict: a lock waits more cheaply. I/O.
// Threads   Any thread may run transactions, at any time before its exit; up to 1024 at once.
#pragma once

#include "runtime/tm/algorithms/etl_wb.hpp"
#include "runtime/tm/algorithms/norec.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm {

// The algorithm of programs that do not choose one: safe for privatization without waiting (docs/adr/0024).
using DefaultAlgorithm = Norec<false>;
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

// As above, but an exception that leaves the body passes on after what was done until then has committed.
template <class F>
auto atomically(CommitOnThrow, F&& body) {
  return Transactions::update<OnThrow::commit>(body);
}

// For a body that only reads: no log is kept, the common case is faster.
template <class F>
auto atomically(ReadOnly, F&& body) {
  return Transactions::read_only(body);
}

// For a body that does what cannot be undone (I/O, a call to code without tx). It runs once, and no other transaction
// runs meanwhile; one that runs already is waited for, so it must not wait for this thread. Inside another transaction
// that one is run again from its start, alone; from here on neither cancel() nor retry() can take it back, and calling
// them ends the program. An exception leaves what was done.
template <class F>
auto atomically(Irrevocable, F&& body) {
  return Transactions::irrevocable(body);
}

// Inside a transaction: gives up and runs it again once something that it has read has been changed by another one.
// Meanwhile the thread sleeps. Ends the program if the transaction has read nothing.
template <class Tx>
[[noreturn]] void retry(Tx&) {
  Transactions::wait_for_change();
}

// Inside a transaction: gives up, parts and all, and runs it again at once, as after a conflict. For a body that finds
// its own work out of date. To wait for a change take retry(), which sleeps.
template <class Tx>
[[noreturn]] void restart(Tx&) {
  Transactions::begin_again();
}

// Inside a transaction: runs first(tx); if that retries, takes its writes back and runs second(tx); if that retries as
// well, the whole transaction waits for a change of what either has read.
template <class Tx, class F, class G>
void or_else(Tx&, F&& first, G&& second) {
  Transactions::or_else(first, second);
}

// Inside a transaction: runs body(tx) as a part that cancel() or an exception takes back without the rest: writes,
// allocations, releases, handlers. returns false if it was cancelled
template <class Tx, class F>
bool closed(Tx&, F&& body) {
  return Transactions::closed(body);
}

// Takes back the innermost closed() part and goes on behind it. In none: takes back the whole transaction, and its
// caller gets the exception Cancelled.
template <class Tx>
[[noreturn]] void cancel(Tx&) {
  Transactions::cancel();
}

// Drops a read of `field` from what the transaction depends on: a later change of it by others is no conflict. Unsafe:
// the transaction is no longer atomic with respect to it. One call takes back one tx.read(field). For hand-over-hand
// walks whose author knows what still protects them; without effect under algorithms whose reads cannot be dropped
// singly (Driver<A>::kReleasesReads), and in read-only transactions, which keep no read set.
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
