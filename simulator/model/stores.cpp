// Writes that wait in the store buffer for a line that comes from another core.
//
//   A write asks for its line when it enters the buffer, and drains when the line is there and all older writes have
//   drained. Meanwhile the next core may have asked already: then the directory names that core as the owner, although the
//   line will be here first. The core's further writes to the line drain then too, one a cycle, for as long as the line
//   stays (machine.stay_cycles). Whether another core will ask is not known when a write enters, so a further one waits
//   until the line is there in any case. Then it is a hit, or asks again: a core asks for one line once at a time.
#include "simulator/model/state.hpp"

#include <algorithm>

namespace loam::simulator {

// How long the core must wait before the access may be tried; 0: it may be now. Only lines of several cores make it wait
// here: what it does later happens at its later time, in order with the other cores. An atomic waits for the whole buffer.
std::uint64_t State::waits_first(const Access& access, std::uint64_t line, int at) noexcept {
  Core& core = cores[access.core];
  if (access.kind == Access::Kind::read || machine.store_buffer == 0 || core.tx.active) return 0;
  const bool holds = core.stores.holds(access.now);
  const auto waited = [&](std::uint64_t cycles) {
    core.counts.store_buffer_cycles += cycles;
    core.counts.stall_cycles += cycles;
    return cycles;
  };
  if (access.kind == Access::Kind::atomic) return holds ? waited(core.stores.drain(access.now)) : 0;
  const bool owned = at != FirstLevel::kNone && core.l1.copy(at).state >= LineState::exclusive;
  if (holds) {
    const StoreBuffer::Pending pending = core.stores.pending(line, access.now);
    if (pending.count != 0 && (pending.count >= pending.most || !(owned || pending.last_to_come)))
      return waited(pending.arrives - access.now);
  }
  if (owned ? !core.stores.held_up(access.now) : !holds && !hot_line(access, line, at)) return 0;
  return waited(core.stores.wait(access.now, machine.store_buffer));
}

// What the buffer adds to the cost of a read or write while writes wait for lines from other cores. Each write takes an
// entry, also one of a line that the core has. A read of a line that is on its way waits for it, unless the buffer has all
// its bytes. returns whether that is all: the core has lost the line to the next one, and was first
bool State::merge(const Request& request, int at, std::uint64_t& cycles) noexcept {
  Core& core = cores[request.core()];
  const StoreBuffer::Pending pending = core.stores.pending(request.line, request.now);
  const bool present = at != FirstLevel::kNone;
  if (!request.writes()) {
    if ((request.mask & ~pending.bytes) != 0 && pending.count != 0)
      cycles = std::max(cycles, pending.arrives - request.now);
    return pending.count != 0 && !present;
  }
  const bool owned = present && core.l1.copy(at).state >= LineState::exclusive;
  if (pending.count == 0 && !(owned && core.stores.held_up(request.now))) return false;
  const std::uint64_t line = pending.count != 0 ? request.line : kNoLine;
  const std::uint64_t waited =
      core.stores.hold(request.now, pending.arrives, line, request.mask, 0, machine.store_buffer);
  core.counts.store_buffer_cycles += waited;
  cycles += waited;
  if (owned) return false;
  if (const Line* const entry = directory.find(request.line); entry->history != nullptr)
    entry->history->wrote_late(request.core(), request.mask);
  return true;
}

// A write whose line takes so long enters the buffer. returns how long the core waits for that
std::uint64_t State::buffer(const Request& request, std::uint64_t taken) noexcept {
  Core& core = cores[request.core()];
  // What a transaction has written is lost with it: later accesses do not find it in the buffer.
  const std::uint64_t line = core.tx.active ? kNoLine : request.line;
  const std::uint64_t waited =
      from_level < 0 ? core.stores.put(request.now, taken, machine.store_buffer)
                     : core.stores.hold(request.now, request.now + taken, line, request.mask,
                                        std::max(machine.stay_cycles[from_level], 1u), machine.store_buffer);
  core.counts.store_buffer_cycles += waited;
  return waited;
}

}  // namespace loam::simulator
