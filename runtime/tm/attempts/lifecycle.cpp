// Memory orders; in brackets the failure without the pair
//   lifecycle.B  an attempt stores published, full_fence(), then reads / an update commits, full_fence(), then loads
//                others' published [the update does not see the attempt, and the attempt does not see the commit]. A
//                read-only transaction needs no fence when it ends: the update whose values it read has waited already,
//                or the read-only transaction waits for that update
//   lifecycle.C  published is stored with release / loaded with acquire by the thread that waits [this thread does not
//                see what an ended attempt has written back or undone, or what that attempt has waited for]
#include "runtime/tm/attempts/lifecycle.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/machine_fence.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/attempts/grace.hpp"
#include "runtime/tm/attempts/kept.hpp"
#include "runtime/tm/attempts/serial.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace loam::tm::lifecycle {
namespace {

constexpr unsigned kPartRestartsMax = 4;

// The outcome is known: drops the handlers of the other outcome.
void keep_handlers(Descriptor& d, Handler::Of outcome) noexcept {
  Handler* const log = d.handlers.begin();
  std::size_t kept = d.handler_first;
  for (std::size_t i = d.handler_first; i < d.handler_end; ++i)
    if (log[i].of == outcome) {
      if (kept != i) log[kept] = log[i];
      ++kept;
    }
  d.handler_end = kept;
}

void settle_limbo(Descriptor& d) noexcept {
  domain.settle(d.participant, d.limbo);
  memory::count_held(d);
}

// Whether a commit at `version`, of an update or of a read-only transaction, waits for who has published this.
bool waits_for(std::uint64_t published, std::uint64_t version, bool update) noexcept {
  if (published == 0) return false;
  if ((published & kWaits) != 0) return !update && (published & ~kWaits) <= version;
  return published / 2 < version && (update || published % 2 == 1);
}

void wait_for_older(const Descriptor& self, std::uint64_t version, bool update) noexcept {
  domain.for_each_slot([&](unsigned slot) {
    const Descriptor* const other = Descriptor::of_slot(slot);
    if (other == nullptr || other == &self) return;
    sync::Backoff backoff;
    // lifecycle.B, lifecycle.C
    while (waits_for(other->published.load(std::memory_order_acquire), version, update)) backoff.wait();
  });
}

void enter_slowly(Descriptor& d, bool update) noexcept {
  if (serial::closed() && !serial::holds(d)) serial::wait_until_open(d);
  if ((shared.slow_begin.load(std::memory_order_relaxed) & serial::kPublishes) == 0)
    return;  // relaxed: changes behind the gate
  if (shared.config.privatization == Privatization::shared) {
    grace::enter(d);
    d.special = d.awaited = true;
    return;
  }
  // The clock is read before the attempt is published. So others may take the attempt for older than it is, never for
  // younger.
  const std::uint64_t now = version_clock.now.load(std::memory_order_acquire);
  d.published.store(now * 2 + (update ? 1 : 0), std::memory_order_release);  // lifecycle.C
  platform::full_fence();                                                    // lifecycle.B
  d.special = d.awaited = true;
}

// An attempt that others might await has committed at `version`: it waits for those that are older.
void wait_after_commit(Descriptor& d, std::uint64_t version) noexcept {
  d.awaited = false;
  if (grace::is_inside(d)) {
    d.reads_now = false;
    grace::leave(d);
    grace::wait(d, version);
    return;
  }
  const bool update = d.published.load(std::memory_order_relaxed) % 2 == 1;  // relaxed: own
  // One store ends the attempt and announces the wait. So a read-only transaction that sees this commit also sees that
  // this update still waits, and waits too.
  d.published.store(update ? kWaits | version : 0, std::memory_order_release);  // lifecycle.C
  if (update) platform::full_fence();                                           // lifecycle.B
  LOAM_POINT("tm.privatizing");
  wait_for_older(d, version, update);
  if (update) d.published.store(0, std::memory_order_release);  // lifecycle.C
}

// The same of an attempt that has been undone.
void leave_awaited(Descriptor& d) noexcept {
  d.awaited = false;
  if (grace::is_inside(d)) {
    d.reads_now = true;
    grace::leave(d);
    return;
  }
  d.published.store(0, std::memory_order_release);  // lifecycle.C
}

}  // namespace

void enter_reading_slowly(void* descriptor) noexcept { enter_slowly(*static_cast<Descriptor*>(descriptor), false); }

// With grace periods: a snapshot that is settled if possible, for then the commit need not wait. An attempt after one that
// failed needs a newer one.
void enter_update_slowly(void* descriptor) noexcept {
  Descriptor& d = *static_cast<Descriptor*>(descriptor);
  enter_slowly(d, true);
  if (grace::is_inside(d) && !d.reads_now) d.snapshot = std::min(d.snapshot, grace::settled(d));
}
void enter_reading_at_snapshot_slowly(void* descriptor) noexcept {
  Descriptor& d = *static_cast<Descriptor*>(descriptor);
  enter_slowly(d, false);
  d.snapshot = grace::is_inside(d) && !d.reads_now ? grace::settled(d)
                                                   : version_clock.now.load(std::memory_order_acquire);  // P4
}

void committed_special(Descriptor& d, std::uint64_t version) noexcept {
  d.special = false;
  const bool releases = d.limbo.has_proposals();
  if (releases) domain.accept(d.limbo);
  committed(d);
  if (d.awaited) wait_after_commit(d, version);
  if (std::exchange(d.quiesces, false)) domain.wait_for_older(d.participant);
  if (releases) settle_limbo(d);
  if (d.handler_end == d.handler_first) return;
  keep_handlers(d, Handler::Of::commit);
  if (!serial::holds(d)) run_handlers(d);
}

void aborted(Descriptor& d, AbortCause cause) noexcept {
  memory::undo(d);
  restore_kept(d, d.handler_first, outermost(d));
  d.special = d.quiesces = false;
  ++d.statistics.aborts[static_cast<std::size_t>(cause)];
  d.mode = Mode::idle;
  if (d.awaited) leave_awaited(d);
  domain.leave(d.participant);
  keep_handlers(d, Handler::Of::abort);
  LOAM_POINT("tm.aborted");
}

void committed_in_place(Descriptor& d) noexcept {
  serial::end_in_place(d);
  ++d.statistics.commits;
  d.allocated_count = 0;
  d.special = d.quiesces = false;  // it has run alone
  domain.accept(d.limbo);
  d.mode = Mode::idle;
  keep_handlers(d, Handler::Of::commit);
}

void aborted_in_place(Descriptor& d) noexcept {
  serial::undo_to(d, d.writes.begin());
  serial::end_in_place(d);
  memory::undo(d);
  restore_kept(d, d.handler_first, outermost(d));
  d.special = d.quiesces = false;
  ++d.statistics.aborts[static_cast<std::size_t>(AbortCause::explicit_)];
  d.mode = Mode::idle;
  keep_handlers(d, Handler::Of::abort);
}

void after_alone(Descriptor& d) noexcept {
  settle_limbo(d);
  run_handlers(d);
}

void run_handlers(Descriptor& d) noexcept {
  if (d.handler_end == d.handler_first) return;
  const std::size_t first = d.handler_first, end = d.handler_end;
  d.handler_first = end;  // the handlers of their transactions go behind
  for (std::size_t i = first; i < end; ++i) {
    Handler& handler = d.handlers.begin()[i];
    try {
      handler.call(handler.argument);
    } catch (const std::exception& error) {
      LOAM_FATAL("tm: a handler threw an exception ({}); the transaction is over, so nobody can catch it",
                 error.what());
    } catch (...) {
      // What unwinds a thread that ends is no exception of C++.
      LOAM_CHECK(std::current_exception() != nullptr,
                 "tm: a thread ended within a handler; let it end after the transaction");
      LOAM_FATAL("tm: a handler threw an exception; the transaction is over, so nobody can catch it");
    }
  }
  d.handler_first = d.handler_end = first;
}

void run_handlers_aside(Descriptor& d) noexcept {
  if (d.handler_end != d.handler_first) Descriptor::set_aside(run_handlers);
}

bool restarts_part(Descriptor& d) noexcept { return d.mode == Mode::nested && d.part->conflicts++ < kPartRestartsMax; }

[[gnu::noinline]] void check_nested(const Descriptor& d) noexcept {
  LOAM_CHECK(platform::encloses(d, __builtin_frame_address(0)),
             "tm: a transaction begins inside one whose body is not on this stack any more: it was left by longjmp, or "
             "this is a signal handler or a coroutine; leave a body by returning, by an exception or by cancel()");
#ifdef LOAM_CHECKED
  LOAM_CHECK(!platform::in_signal_handler(d),
             "tm: a signal handler begins a transaction inside the one that the signal interrupted; let it set a flag");
#endif
}

Mark mark(const Descriptor& d) noexcept { return {d.allocated_count, d.stocks, d.limbo.proposals(), d.handler_end}; }

void take_back(Descriptor& d, const Mark& mark) noexcept {
  memory::undo_to(d, mark.allocated);
  domain.withdraw_to(d.limbo, mark.proposals);
  restore_kept(d, mark.handlers, d);
  d.handler_end = mark.handlers;
}

void privatize(Descriptor& d) noexcept { d.special = d.quiesces = true; }

void restart(Descriptor& d, int code) noexcept {
  while (d.part != nullptr) leave_part(d, *d.part);
  platform::restart(d, code);
}

void add_handler(Descriptor& d, const Handler& handler) noexcept {
  if (d.handler_end == d.handlers.capacity()) d.handlers.full();
  d.handlers.begin()[d.handler_end++] = handler;
  d.special = true;
}

}  // namespace loam::tm::lifecycle
