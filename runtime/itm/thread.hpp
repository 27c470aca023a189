// thread: the data of a thread's transactions of the libitm interface, on top of the open form of runtime/tm/c.
//   Private memory is accessed in place, without the algorithm:
//     frames    the stack below where the transaction began: a clone's locals are written through barriers, and at
//               commit a redo log would write them over the library's own frames. And the frame of the function that
//               began it: GCC writes a local through a barrier and then passes it by value with a plain read
//     captured  blocks that the attempt has allocated: compiled code stores into them plainly as well, and the language's
//               runtime reads exceptions plainly
//   Invariants  T1  `depth` transactions are open, the outermost one included; `levels` has those inside it that can be
//                   cancelled by themselves, in their order.
//               T2  private memory that still exists after a cancelled level is saved in `undo` before it changes.
#pragma once

#include "runtime/itm/abi.hpp"
#include "runtime/itm/alone.hpp"
#include "runtime/itm/frames.hpp"
#include "runtime/itm/hardware.hpp"
#include "runtime/itm/locals.hpp"
#include "runtime/itm/undo.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/c/dispatch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::itm {

using tm::Descriptor;
using tm::Mode;
namespace open = tm::open;

// What there is of exceptions at one moment of the running attempt.
struct ExceptionsMark {
  void* in_flight = nullptr;  // the header of one that is thrown and not caught
  unsigned caught = 0;
  unsigned uncaught = 0;  // what the language's runtime counts, if `known`
  bool known = false;
};

// A transaction inside another one that can be cancelled by itself.
struct Level {
  platform::Caller caller;
  open::OpenPart part;
  std::size_t depth;  // of it
  std::size_t undo_mark, actions_mark;
  unsigned captured;
  ExceptionsMark exceptions;
};

struct CommitAction {
  void (*call)(void*);
  void* argument;
};

// Exceptions of the running attempt.
struct Exceptions {
  void* in_flight = nullptr;  // the header of one that is thrown and not caught
  unsigned caught = 0;
  unsigned uncaught_before = 0;  // what the language's runtime counted, once `known`
  bool known = false;
  std::ptrdiff_t to_object =
      0;  // from what the language's runtime keeps of one that is caught; from the first catch on
};

struct Thread {
  static constexpr unsigned kCapturedMax = 16, kExceptionsMax = 8;  // blocks, and exceptions beside them

  Descriptor* d = nullptr;                        // null outside of transactions, and while plain code runs
  const open::Operations* operations = nullptr;   // used by accesses: in_software, &unwritten, or a hardware attempt's
  const open::Operations* in_software = nullptr;  // the algorithm's functions
  std::uintptr_t stack = 0;      // where the stack of the function with the outermost transaction ended
  std::uintptr_t frame_top = 0;  // the other end of that function's frame
  std::size_t depth = 0;         // transactions that are begun and not ended
  bool is_alone = false;         // no other transaction runs until this one has committed (alone.hpp)
  unsigned captured_count = 0;
  bool notes_all = false;      // log all old values: an irrevocable transaction has a level that can be cancelled
  bool notes_private = false;  // an inner level can be cancelled

  struct Range {
    std::uintptr_t begin, bytes;

    bool holds(std::uintptr_t address) const noexcept { return address - begin < bytes; }
  };
  Range all_captured;  // around each of them
  std::array<Range, kCapturedMax + kExceptionsMax> captured;

  open::Frame frame;
  UndoLog undo;
  Locals locals;
  tm::Log<CommitAction> actions;
  // Those of the transaction; before them, of one whose actions run now.
  std::size_t actions_first = 0, actions_end = 0;
  Exceptions exceptions;
  TransactionId id = kNoTransactionId;
  std::uint64_t transactions = 0;
  std::uint64_t number = 0;  // of this object
  alone::Member member;
  Thread* next_free = nullptr;
  bool is_hybrid = false;  // tries hardware first
  hardware::Attempt attempt = hardware::Attempt::none;
  bool wrote_in_hardware = false;
  unsigned tries = 0;  // attempts in hardware, the one that runs included
  hardware::Place* place = nullptr;
  tm::Log<Level> levels;
  std::size_t levels_count = 0;
  hardware::Places places;
  FrameSizes frame_sizes;
  open::Operations unwritten;  // the functions of an update before its first write (unwritten.hpp)

  Level& level() noexcept { return levels.begin()[levels_count - 1]; }
  // Whether the innermost transaction can be cancelled by itself.
  bool is_level() noexcept { return levels_count != 0 && level().depth == depth; }

  bool in_frames(std::uintptr_t address, std::uintptr_t frame_address) const noexcept {
    // Most addresses lie below the stack, so the first comparison decides for them.
    return address >= frame_address && address < frame_top;
  }
  bool is_captured(std::uintptr_t address) const noexcept {
    if (captured_count == 0) [[likely]]
      return false;
    if (!all_captured.holds(address)) return false;
    for (unsigned i = 0; i < captured_count; ++i)
      if (captured[i].holds(address)) return true;
    return false;
  }
  // If `captured` is full, later blocks are accessed through the algorithm, which is correct but slower. Not exceptions,
  // which are freed before the commit: they have places of their own.
  void capture(const void* block, std::size_t bytes, unsigned most = kCapturedMax) noexcept;
  // The block is gone: its memory may be anybody's. What was noted of it is forgotten.
  void release(const void* block) noexcept;
  void forget_captured() noexcept {
    captured_count = 0;
    all_captured = {};
  }
};

// The calling thread's; null before its first transaction.
extern thread_local constinit Thread* current;

// The same; makes it if the thread has none yet.
Thread& attached() noexcept;

// Called in the child of a fork: releases the lock of this file if a thread of the parent held it.
void mend_threads_in_child() noexcept;

// The calling thread's while a transaction runs, else null.
inline Thread* running() noexcept {
  Thread* const t = current;
  return t != nullptr && t->depth != 0 ? t : nullptr;
}

// The same, but null while plain code runs: its accesses are not recorded.
inline Thread* running_with_barriers() noexcept {
  Thread* const t = running();
  return t != nullptr && t->d != nullptr ? t : nullptr;
}

// Ends the program outside of transactions.
Thread& running_or_die(const char* call) noexcept;

}  // namespace loam::itm
