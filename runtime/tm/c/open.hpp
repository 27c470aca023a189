// open: transactions of the C interface, under any algorithm. There are two forms:
//   a body      atomically(): as Driver's, with a function and a pointer
//   open        begin() returns to its caller, which runs the transaction and calls commit(). If the attempt aborts,
//               begin() returns again (platform::Caller)
//   In both a cancelled transaction ends with a code, not with an exception.
//   Nesting is flat. Parts, or_else and retry are Driver's. Transactions of both forms, and those of C++, may contain
//   one another.
//   Checks  A frame knows whether it has begun; the outermost one counts the frames inside it. A call with a stack
//           above that of the outermost frame proves that a function returned, or jumped, out of its transaction.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/driver.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

namespace loam::tm {
// Hidden: the shared library exports the functions of loam/tm.h instead.
namespace [[gnu::visibility("hidden")]] open {

// In the order of the flags of loam/tm.h: those without one, LOAM_READ_ONLY, LOAM_IRREVOCABLE.
enum class Kind : std::uint8_t { update, read_only, serial };

// The outermost transaction of a thread, from its first attempt to its end.
struct Transaction {
  std::uintptr_t stack;  // where the stack of the function that began it ended
  unsigned aborts = 0;   // in a row
  Kind kind;
  bool is_open;  // the open form
};

// The contents of a loam_tx_frame.
struct Frame {
  static constexpr std::uint64_t kBegun = 0x6265'6775'6e21'6c6d;  // unlikely on a stack that nobody has written

  platform::Caller caller;  // first: the assembly that saves it gets the frame's address
  Transaction transaction;  // of the outermost frame
  std::uint64_t mark;       // kBegun or something else
  bool outermost;
  bool counted;  // in begun_inside

  bool is_begun() const noexcept { return mark == kBegun; }
};

// This thread's outermost transaction, while its body runs, if it was begun by this interface. The data for the checks
// is copied here, because the transaction lies on the stack of a function that may have returned.
struct Running {
  const Transaction* transaction = nullptr;
  std::uintptr_t stack = 0;
  unsigned begun_inside = 0;  // frames inside it that are begun and not committed
  bool is_open = false;
};
extern thread_local constinit Running running;

using Body = void (*)(Descriptor& tx, void* argument);

// A part of an open transaction that can be undone alone. A conflict in it ends the whole attempt.
struct OpenPart {
  Part part;
  Mode around;
  WriteEntry* written;  // of a part that runs alone
  alignas(std::max_align_t) std::byte savepoint[64];
};

// Ends the program if the code at `stack` is not inside the transaction that seems to run.
void check_stack(std::uintptr_t stack, const char* call) noexcept;

// Whether the thread is in a transaction of GCC's transactional memory: its function, where the program has that library.
extern int (*const foreign_transaction)();
// Ends the program inside such a transaction, which does not notice Loam's.
void check_foreign() noexcept;

// Ends the program unless `frame` is begun and no frame inside it is. `stack` is that of the caller of commit
void check_commit(const Descriptor& d, const Frame& frame, std::uintptr_t stack) noexcept;
// Whether it is, and is that of the transaction: the common case of check_commit().
[[gnu::always_inline]] inline bool commits_all(const Descriptor& d, const Frame& frame, std::uintptr_t stack) noexcept {
  return running.transaction == &frame.transaction && frame.is_begun() && running.begun_inside == 0 &&
         stack <= running.stack && d.part == nullptr;
}

template <Algorithm A>
class OpenDriver {
  static constexpr Hooks kHooks = hooks_of<A>();

 public:
  // returns the number of the attempt
  static int begin(Frame& frame, Descriptor** tx, Kind kind, std::uintptr_t stack) {
    Descriptor& d = Descriptor::current_or_detached();
    // What is rare is handed over whole, so that no register has to be kept for it. relaxed: see attached()
    if (d.mode != Mode::idle || shared.algorithm.load(std::memory_order_relaxed) != &kHooks || kind == Kind::serial ||
        foreign_transaction != nullptr) [[unlikely]]
      return begin_slowly(frame, tx, kind, stack);
    *tx = &d;
    return begin_outermost(d, frame, kind, stack);
  }

  // begin() again, after an attempt has come back with `code`. returns the number of the next attempt, or 0: cancelled
  static int again(platform::Caller* caller, int code) {
    Frame& frame = *reinterpret_cast<Frame*>(caller);
    Descriptor& d = Descriptor::current_or_detached();
    if (!prepare(d, frame.transaction, code)) {
      frame.mark = 0;
      return 0;
    }
    frame.mark = Frame::kBegun;
    return start(d, frame);
  }

  static void commit(Frame& frame, std::uintptr_t stack) {
    Descriptor& d = Descriptor::current_or_detached();
    // A transaction that has not aborted does not run alone, unless it was begun so.
    if (!commits_all(d, frame, stack) || frame.transaction.kind == Kind::serial || frame.transaction.aborts != 0)
        [[unlikely]]
      return commit_slowly(d, frame, stack);
    running.transaction = nullptr;
    frame.mark = 0;  // again() marks the frame of an attempt that fails
    if (frame.transaction.kind == Kind::read_only)
      A::commit_read_only(d);
    else
      A::commit_update(d);
  }

  // returns whether it was kept, that is, not cancelled
  static bool atomically(Body body, void* argument, Kind kind, std::uintptr_t stack) {
    Descriptor& d = attached();
    if (d.mode != Mode::idle) {
      check_stack(stack, "loam_atomically()");
      if (kind == Kind::serial) become_irrevocable();
      body(d, argument);
      return true;
    }
    check_foreign();
    Transaction transaction{.stack = stack, .kind = kind, .is_open = false};
    const auto run = [&](auto& tx) {
      enter(transaction);
      body(tx.descriptor(), argument);
      LOAM_CHECK(running.begun_inside == 0,
                 "tm: a body of loam_atomically() returned between loam_tx_begin() and loam_tx_commit()");
      running.transaction = nullptr;
    };
    try {
      if (kind == Kind::serial)
        Driver<A>::irrevocable(run);
      else if (kind == Kind::read_only)
        Driver<A>::read_only(run);
      else
        Driver<A>::update(run);
    } catch (const Cancelled&) {
      running.transaction = nullptr;
      return false;
    } catch (...) {  // from a body in C++
      running.transaction = nullptr;
      throw;
    }
    return true;
  }

  // In a read-only transaction; does not return: the attempt becomes an update.
  static void write_in_read_only() {
    Driver<A>::update([](auto&) {});
  }

  static void become_irrevocable() {
    Driver<A>::irrevocable([](auto&) {});
  }

  [[noreturn]] static void cancel(Descriptor& d) {
    if (d.mode == Mode::read_only) write_in_read_only();  // what can be cancelled is an update
    Driver<A>::cancel();
  }

  static bool closed(Body body, void* argument) {
    return Driver<A>::closed([&](auto& tx) { body(tx.descriptor(), argument); });
  }

  static void begin_part(Descriptor& d, OpenPart& open) {
    if (d.mode == Mode::read_only) write_in_read_only();
    open.part = {d, d.part, lifecycle::mark(d), kNoRestartOfItsOwn};
    open.around = d.mode;
    open.written = d.write_end;
    lifecycle::enter_part(d, open.part);
    if (d.mode == Mode::serial) return;
    using Savepoint = typename A::Savepoint;
    static_assert(sizeof(Savepoint) <= sizeof open.savepoint && std::is_trivially_destructible_v<Savepoint>);
    ::new (static_cast<void*>(open.savepoint)) Savepoint(A::save(d));
    d.mode = Mode::nested;
  }
  static void end_part(Descriptor& d, OpenPart& open) noexcept {
    d.part = open.part.around;
    d.stocks = open.part.mark.stocks;
    d.mode = open.around;
  }
  static void cancel_part(Descriptor& d, OpenPart& open) {
    if (open.around != Mode::serial)
      A::restore(d, *std::launder(reinterpret_cast<typename A::Savepoint*>(open.savepoint)));
    else if (serial::revocable())
      serial::undo_to(d, open.written);
    lifecycle::take_back(d, open.part.mark);
    end_part(d, open);
  }

  static void or_else(Body first, Body second, void* argument) {
    Driver<A>::or_else([&](auto& tx) { first(tx.descriptor(), argument); },
                       [&](auto& tx) { second(tx.descriptor(), argument); });
  }

  [[noreturn]] static void retry() { Driver<A>::wait_for_change(); }
  [[noreturn]] static void restart() { Driver<A>::begin_again(); }
  static void release_read(const void* address, std::size_t bytes) { Driver<A>::release_read(address, bytes); }

 private:
  // More than any part may have (lifecycle::restarts_part).
  static constexpr unsigned kNoRestartOfItsOwn = 1U << 30;

  static Descriptor& attached() noexcept {
    Descriptor* d = &Descriptor::current_or_detached();
    if (d->mode == Mode::detached) d = &Descriptor::attach_thread(kHooks);
    // relaxed: set once, before this thread was attached
    const Hooks* const hooks = shared.algorithm.load(std::memory_order_relaxed);
    if (hooks != &kHooks) check_same_algorithm(*hooks->description, A::kDescription);
    return *d;
  }

  // In a thread's first transaction, inside another one, and in one that runs alone.
  [[gnu::noinline]] static int begin_slowly(Frame& frame, Descriptor** tx, Kind kind, std::uintptr_t stack) {
    Descriptor& d = attached();
    *tx = &d;
    if (d.mode != Mode::idle) return begin_inside(d, frame, kind, stack);
    check_foreign();
    return begin_outermost(d, frame, kind, stack);
  }

  [[gnu::always_inline]] static int begin_outermost(Descriptor& d, Frame& frame, Kind kind, std::uintptr_t stack) {
    frame.transaction = {.stack = stack, .kind = kind, .is_open = true};
    frame.mark = Frame::kBegun;
    frame.outermost = true;
    return start(d, frame);
  }

  static int begin_inside(Descriptor& d, Frame& frame, Kind kind, std::uintptr_t stack) {
    check_stack(stack, "loam_tx_begin()");
    LOAM_CHECK(running.transaction != &frame.transaction,
               "tm: loam_tx_begin() twice with one frame, without loam_tx_commit()");
    if (kind == Kind::serial) become_irrevocable();
    frame.mark = Frame::kBegun;
    frame.outermost = false;
    // One inside a part may vanish with it.
    frame.counted = running.transaction != nullptr && d.part == nullptr;
    if (frame.counted) ++running.begun_inside;
    return 1;
  }

  static void enter(const Transaction& transaction) noexcept {
    running = {.transaction = &transaction, .stack = transaction.stack, .is_open = transaction.is_open};
  }

  [[gnu::always_inline]] static int start(Descriptor& d, Frame& frame) {
    platform::return_again(d, frame.caller, &OpenDriver::again);
    enter(d, frame.transaction);
    return static_cast<int>(frame.transaction.aborts) + 1;
  }

  // Begins an attempt.
  [[gnu::always_inline]] static void enter(Descriptor& d, Transaction& transaction) {
    enter(transaction);
    if (transaction.kind == Kind::update)
      A::begin_update(d);
    else if (transaction.kind == Kind::read_only)
      A::begin_read_only(d);
    else
      enter_alone(d, transaction.aborts != 0);
  }

  // revocable: it was upgraded, and can be undone until its first irrevocable part
  [[gnu::noinline]] static void enter_alone(Descriptor& d, bool revocable) {
    serial::acquire(d);
    serial::begin_in_place(d, revocable);
  }

  [[gnu::noinline]] static void commit_slowly(Descriptor& d, Frame& frame, std::uintptr_t stack) {
    check_commit(d, frame, stack);
    frame.mark = 0;
    if (frame.outermost) return finish(d, frame.transaction);
    if (frame.counted && running.transaction != nullptr) --running.begun_inside;
  }

  // Commits. Restarts the attempt if it cannot. Handlers may run transactions of their own.
  static void finish(Descriptor& d, Transaction& transaction) {
    running.transaction = nullptr;
    if (transaction.kind == Kind::serial)
      lifecycle::committed_in_place(d);
    else if (transaction.kind == Kind::read_only)
      A::commit_read_only(d);
    else
      A::commit_update(d);
    if (serial::holds(d)) {
      serial::release(d);
      lifecycle::after_alone(d);
    }
    settle(d, transaction);
  }

  static void settle(Descriptor& d, const Transaction& transaction) noexcept {
    if (transaction.aborts == 0) return;
    contention::settled(d);
    d.statistics.count_commit_after(transaction.aborts);
  }

  // Between two attempts, the first of which came back with `code`. returns false if there is to be no other
  static bool prepare(Descriptor& d, Transaction& transaction, int code) {
    running.transaction = nullptr;
    const unsigned aborts = ++transaction.aborts;
    const bool serialised = code == kRestart && contention::runs_alone(d, aborts);
    if (serial::holds(d) && (!serialised || d.handler_end != d.handler_first)) serial::release(d);
    lifecycle::run_handlers_aside(d);
    if (code == kCancel) {
      contention::settled(d);
      return false;
    }
    if (code == kSerial)
      transaction.kind = Kind::serial;
    else if (code == kUpdate || transaction.kind == Kind::serial || aborts >= kReadOnlyFailuresMax)
      transaction.kind = Kind::update;
    if (serialised) {
      if (!serial::holds(d)) serial::acquire(d);
    } else if (code == kWait) {
      waiting::wait(waiting::awaited_of<A>(d), d);
      contention::excuse(d);
    } else if (code == kProvide) {
      memory::provide(d);
      contention::excuse(d);
    } else if (code == kRestart || code == kAgain) {
      contention::before_retry(d, aborts);
    }
    return true;
  }
};

}  // namespace open
}  // namespace loam::tm
