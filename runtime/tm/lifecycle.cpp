#include "runtime/tm/lifecycle.hpp"

#include "runtime/base/points.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/serial.hpp"

namespace loam::tm::lifecycle {
namespace {

// Calls the handlers of one outcome and forgets all. They may run transactions, whose own handlers go behind these.
void call_handlers(Descriptor& d, Handler::Of outcome) noexcept {
  const std::size_t first = d.handler_first, end = d.handler_end;
  d.handler_first = end;
  for (std::size_t i = first; i < end; ++i) {
    Handler& handler = d.handlers.begin()[i];
    if (handler.of == outcome) handler.call(handler.argument);
  }
  d.handler_first = d.handler_end = first;
}

// Waits for the attempts of others that began before `version`; of readers only if they are waited for too.
void wait_for_older(const Descriptor& self, std::uint64_t version, bool readers_too) noexcept {
  domain.for_each_slot([&](unsigned slot) {
    const Descriptor* const other = Descriptor::of_slot(slot);
    if (other == nullptr || other == &self) return;
    sync::Backoff backoff;
    for (;;) {
      // lifecycle.B: seq_cst, with the exchange in enter_slowly(): either it is seen here, or that attempt sees what
      // this one has committed. acquire pairs with the release stores of 0: what that attempt did is over.
      const std::uint64_t published = other->published.load(std::memory_order_seq_cst);
      if (published == 0 || published / 2 >= version || (published % 2 == 0 && !readers_too)) return;
      backoff.wait();
    }
  });
}

void enter_slowly(Descriptor& d, bool update) noexcept {
  if (serial::closed()) serial::wait_until_open(d);
  if ((shared.slow_begin.load(std::memory_order_relaxed) & serial::kPublishes) == 0) return;  // relaxed: set once
  // The clock is looked at before this is published: the attempt is held for older than it is, never for younger.
  const std::uint64_t now = version_clock.now.load(std::memory_order_acquire);
  d.published.exchange(now * 2 + (update ? 1 : 0), std::memory_order_seq_cst);  // lifecycle.B
  d.special = true;
}

}  // namespace

void enter_reading_slowly(void* descriptor) noexcept { enter_slowly(*static_cast<Descriptor*>(descriptor), false); }
void enter_update_slowly(void* descriptor) noexcept { enter_slowly(*static_cast<Descriptor*>(descriptor), true); }

void committed_special(Descriptor& d, std::uint64_t version) noexcept {
  d.special = false;
  const bool releases = d.limbo.has_proposals();
  if (releases) domain.accept(d.limbo);
  const std::uint64_t published = d.published.load(std::memory_order_relaxed);  // relaxed: own
  committed(d);
  if (published != 0) {
    d.published.store(0, std::memory_order_release);  // lifecycle.B
    LOAM_POINT("tm.privatizing");
    wait_for_older(d, version, published % 2 == 1);
  }
  if (releases) domain.settle(d.participant, d.limbo);
  call_handlers(d, Handler::Of::commit);
}

void aborted(Descriptor& d, AbortCause cause) noexcept {
  memory::undo(d);
  d.special = false;
  ++d.statistics.aborts[static_cast<std::size_t>(cause)];
  d.mode = Mode::idle;
  if (d.published.load(std::memory_order_relaxed) != 0) d.published.store(0, std::memory_order_release);  // lifecycle.B
  domain.leave(d.participant);
  call_handlers(d, Handler::Of::abort);
  LOAM_POINT("tm.aborted");
}

void finished_alone(Descriptor& d) noexcept {
  ++d.statistics.commits;
  d.allocated_count = 0;
  d.special = false;
  if (d.limbo.has_proposals()) {
    domain.accept(d.limbo);
    domain.settle(d.participant, d.limbo);
  }
  call_handlers(d, Handler::Of::commit);
}

Mark mark(const Descriptor& d) noexcept { return {d.allocated_count, d.limbo.proposals(), d.handler_end}; }

void take_back(Descriptor& d, const Mark& mark) noexcept {
  memory::undo_to(d, mark.allocated);
  domain.withdraw_to(d.limbo, mark.proposals);
  d.handler_end = mark.handlers;
}

void restart(Descriptor& d, int code) noexcept {
  for (; d.part != nullptr; d.part = d.part->around) static_cast<platform::Checkpoint&>(d) = d.part->outer;
  platform::restart(d, code);
}

void add_handler(Descriptor& d, const Handler& handler) noexcept {
  if (d.handler_end == d.handlers.capacity()) d.handlers.full();
  d.handlers.begin()[d.handler_end++] = handler;
  d.special = true;
}

}  // namespace loam::tm::lifecycle
