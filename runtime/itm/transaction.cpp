// transaction: begin, commit, cancel.
//   An attempt that aborts continues in again(), on the stack of the function that began it. again() then returns from
//   the begin once more.
#include "runtime/base/check.hpp"
#include "runtime/itm/exceptions.hpp"
#include "runtime/itm/interface.hpp"
#include "runtime/itm/thread.hpp"
#include "runtime/tm/attempts/serial.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace loam::itm {
namespace {

bool is_irrevocable(const Thread& t) noexcept {
  return t.is_alone || (t.d != nullptr && t.d->mode == Mode::serial && !tm::serial::revocable());
}

void forget_attempt(Thread& t) {
  t.forget_captured();
  t.exceptions = {};
  t.actions_end = t.actions_first;
  t.levels_count = 0;
  t.notes_all = t.notes_private = false;
}

// Calls an undo action between two attempts. It may run transactions, which use the thread's data.
void act_between_attempts(Thread& t, void (*call)(void*), void* argument) {
  const open::Frame frame = t.frame;
  Descriptor* const d = t.d;
  const std::uintptr_t stack = t.stack, frame_top = t.frame_top;
  const TransactionId id = t.id;
  const std::size_t undo_first = t.undo.set_aside();
  call(argument);
  t.undo.resume(undo_first);
  alone::announce_again(t.member);
  t.frame = frame;
  t.d = d;
  t.stack = stack;
  t.frame_top = frame_top;
  t.id = id;
}

int again(platform::Caller*, int code) {
  Thread& t = *current;
  t.undo.take_back_values(t.undo.first(), t.stack);  // while exceptions that it has changed are there
  revert_exceptions(t, {});
  t.depth = 0;
  t.locals.settle();
  forget_attempt(t);
  t.undo.take_back(t.undo.first(), true, [&t](auto call, void* argument) { act_between_attempts(t, call, argument); });
  t.operations = &t.unwritten;
  const int attempt = t.operations->again(&t.frame.caller, code);
  if (attempt == 0) {
    t.d = nullptr;
    if (t.is_hybrid) hardware::ended_in_software();
    alone::leave(t.member);
    return static_cast<int>(kSkipBody | kRestoreVariables);
  }
  t.frame.caller.resume = &again;
  t.depth = 1;
  return static_cast<int>(kRunInstrumented | kRestoreVariables);
}

TransactionId next_id(Thread& t) noexcept { return (++t.transactions << 12 | t.number) + kNoTransactionId + 1; }

// Whether plain code may run the transaction. Plain code cannot be undone.
bool can_be_plain(std::uint32_t properties) noexcept {
  constexpr std::uint32_t kPlain = kHasUninstrumentedCode | kHasNoAbort;
  return (properties & kPlain) == kPlain;
}

std::uint32_t begin_alone(Thread& t, const platform::Caller& caller) noexcept {
  t.frame.caller = caller;
  t.stack = caller.stack_pointer;
  t.id = next_id(t);
  t.depth = 1;
  t.is_alone = true;
  return kRunUninstrumented;
}

// Called if a transaction that can be cancelled begins inside one that runs plain code. The outer one becomes a
// transaction of the algorithm that runs alone, in place. It need not wait, because no other transaction runs.
void meet_algorithm(Thread& t) {
  t.frame_top = t.stack + t.frame_sizes.at(t.frame.caller.return_address, t.stack);
  // For the algorithm it begins now, as an outermost transaction.
  const std::size_t depth = std::exchange(t.depth, 0);
  t.operations->begin(t.frame, &t.d, open::Kind::serial, t.stack);
  t.depth = depth;
}

std::uint32_t begin_outermost(Thread& t, std::uint32_t properties, const platform::Caller& caller) {
  if (can_be_plain(properties)) {
    if (alone::enter(t.member)) return begin_alone(t, caller);
    if (alone::is_time_to_ask(t.member) && alone::ask(t.member) && alone::enter(t.member))
      return begin_alone(t, caller);
  }
  alone::announce(t.member);
  bool alone = (properties & kHasInstrumentedCode) == 0 || (properties & kGoesIrrevocable) != 0;
  if (t.is_hybrid) {
    t.stack = t.frame_top = caller.stack_pointer;
    t.id = next_id(t);
    const hardware::Begun begun = hardware::begin(t, properties, caller.return_address);
    if (begun == hardware::Begun::in_hardware)
      return t.attempt == hardware::Attempt::plain ? kRunUninstrumented : kRunInstrumented;
    alone |= begun == hardware::Begun::alone;
  }
  const open::Kind kind = alone                           ? open::Kind::serial
                          : (properties & kReadOnly) != 0 ? open::Kind::read_only
                                                          : open::Kind::update;
  t.frame.caller = caller;
  t.stack = caller.stack_pointer;
  t.frame_top = t.stack + t.frame_sizes.at(caller.return_address, t.stack);
  t.operations = &t.unwritten;
  t.operations->begin(t.frame, &t.d, kind, t.stack);
  t.frame.caller.resume = &again;
  t.id = next_id(t);
  t.depth = 1;
  if (alone && (properties & kHasUninstrumentedCode) != 0) return kRunUninstrumented;
  return kRunInstrumented | kSaveVariables;
}

std::uint32_t begin_inside(Thread& t, std::uint32_t properties, const platform::Caller& caller) {
  if (t.attempt != hardware::Attempt::none) return hardware::begin_inside(t, properties);
  const bool instrumented = (properties & kHasInstrumentedCode) != 0;
  if (!instrumented || (properties & kGoesIrrevocable) != 0)
    if (!is_irrevocable(t)) t.operations->become_irrevocable();
  const bool cancels = instrumented && (properties & kHasNoAbort) == 0;
  if (t.d == nullptr && (cancels || (properties & kHasUninstrumentedCode) == 0)) meet_algorithm(t);
  ++t.depth;
  if (cancels) {
    if (t.levels_count == t.levels.capacity())
      t.levels.reserve_or_die(std::size_t{1} << 20, "log of nested transactions that can be cancelled");
    Level& level = t.levels.begin()[t.levels_count++];
    level.depth = t.depth;
    level.undo_mark = t.undo.size();
    level.actions_mark = t.actions_end;
    level.captured = t.captured_count;
    level.exceptions = exceptions_now(t);
    level.caller = caller;
    t.operations = t.in_software;  // reads must find what the part wrote, also after it
    t.operations->begin_part(*t.d, level.part);
    t.notes_private = true;
    if (is_irrevocable(t)) t.notes_all = true;
    return kRunInstrumented | kSaveVariables;
  }
  const bool plainly = is_irrevocable(t) && !t.notes_all && (properties & kHasUninstrumentedCode) != 0;
  return plainly || !instrumented ? kRunUninstrumented : kRunInstrumented;
}

// Closes the innermost level, and what is open in it.
void leave_level(Thread& t) noexcept {
  t.depth = t.level().depth - 1;
  t.notes_private = --t.levels_count != 0;
  t.notes_all = t.notes_all && t.notes_private;
}

// Calls the actions of the transaction that has committed. They may run transactions themselves, whose actions go
// behind.
void run_actions(Thread& t) {
  struct Running {
    explicit Running(Thread& thread) noexcept : t(thread), first(t.actions_first) { t.actions_first = t.actions_end; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { t.actions_first = t.actions_end = first; }

    Thread& t;
    const std::size_t first;
  };
  const std::size_t end = t.actions_end;
  const Running running(t);
  for (std::size_t i = running.first; i < end; ++i) {
    const CommitAction action = t.actions.begin()[i];
    action.call(action.argument);
  }
}

void commit_outermost(Thread& t) {
  // Private frames and captured blocks have their final values already. Their old values are dropped after the commit.
  if (t.attempt != hardware::Attempt::none) {
    hardware::commit(t);
  } else if (t.d != nullptr) {
    t.operations->commit(t.frame, t.stack);
    if (t.is_hybrid && !t.is_alone) hardware::ended_in_software();
  }
  t.depth = 0;
  t.d = nullptr;
  t.is_alone = false;
  alone::leave(t.member);
  t.locals.settle();
  t.undo.clear();
  const std::size_t end = t.actions_end;
  forget_attempt(t);
  if (end == t.actions_first) [[likely]]
    return;
  t.actions_end = end;
  run_actions(t);
}

int cancelled(platform::Caller*, int) { return static_cast<int>(kSkipBody | kRestoreVariables); }

// Undoes the innermost level, which can be cancelled. Its undo actions come last: their transactions belong to those around
// it.
void take_level_back(Thread& t) {
  Level& level = t.level();
  const std::size_t undo_mark = level.undo_mark;
  t.undo.take_back_values(undo_mark, level.caller.stack_pointer);  // as in again()
  revert_exceptions(t, level.exceptions);
  t.captured_count = std::min(t.captured_count, level.captured);
  t.actions_end = level.actions_mark;
  t.operations->cancel_part(*t.d, level.part);
  leave_level(t);
  t.undo.take_back(undo_mark, false, [](auto call, void* argument) { call(argument); });
}

}  // namespace

extern "C" [[gnu::used, gnu::visibility("hidden")]] std::uint32_t loam_itm_begin(std::uint32_t properties,
                                                                                 const platform::Caller* caller) {
  Thread& t = attached();
  return t.depth == 0 ? begin_outermost(t, properties, *caller) : begin_inside(t, properties, *caller);
}
LOAM_DEFINE_ENTRY_THAT_PASSES_ITS_CALLER(_ITM_beginTransaction, loam_itm_begin);

LOAM_ITM_EXPORTED void _ITM_commitTransaction() {
  Thread& t = running_or_die("_ITM_commitTransaction()");
  if (t.depth == 1) return commit_outermost(t);
  if (!t.is_level()) return void(--t.depth);
  t.operations->end_part(*t.d, t.level().part);
  leave_level(t);
}

// Commits when an exception leaves the transaction. If the commit fails, the next attempt begins without the exception.
LOAM_ITM_EXPORTED void _ITM_commitTransactionEH(void* exception) {
  Thread& t = running_or_die("_ITM_commitTransactionEH()");
  if (t.depth == 1) note_in_flight(t, exception);
  _ITM_commitTransaction();
}

LOAM_ITM_EXPORTED [[noreturn]] void _ITM_abortTransaction(std::uint32_t reason) {
  Thread& t = running_or_die("_ITM_abortTransaction()");
  hardware::leave(t);
  LOAM_CHECK((reason & ~kOuterAbort) == kUserAbort,
             "libitm: _ITM_abortTransaction() with reason {}: there is {}, and {} more", reason, kUserAbort,
             kOuterAbort);
  const bool outermost = (reason & kOuterAbort) != 0;
  // One that was begun without a way to cancel it belongs to the level around it.
  while (t.levels_count != 0) {
    const platform::Caller caller = t.level().caller;
    take_level_back(t);
    if (outermost) continue;
    platform::Checkpoint checkpoint{};
    platform::Caller back = caller;
    platform::return_again(checkpoint, back, &cancelled);
    platform::restart(checkpoint, 1);
  }
  LOAM_CHECK(!is_irrevocable(t), "libitm: a transaction that is irrevocable is cancelled: it cannot be taken back");
  t.operations->cancel(*t.d);
  __builtin_unreachable();
}

LOAM_ITM_EXPORTED void _ITM_changeTransactionMode(int mode) {
  Thread& t = running_or_die("_ITM_changeTransactionMode()");
  LOAM_CHECK(mode == 0, "libitm: _ITM_changeTransactionMode({}): 0, serial and irrevocable, is all there is", mode);
  hardware::leave(t);
  if (!is_irrevocable(t)) t.operations->become_irrevocable();
}

LOAM_ITM_EXPORTED std::uint32_t _ITM_inTransaction() {
  const Thread* const t = running();
  if (t == nullptr) return outsideTransaction;
  return is_irrevocable(*t) ? inIrrevocableTransaction : inRetryableTransaction;
}

LOAM_ITM_EXPORTED TransactionId _ITM_getTransactionId() {
  const Thread* const t = running();
  return t == nullptr ? kNoTransactionId : t->id;
}

}  // namespace loam::itm
