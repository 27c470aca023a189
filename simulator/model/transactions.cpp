// Hardware transactions: which lines they use, and what aborts them.
//
//   The first-level copies of a core mark the bytes that its transaction uses. Coherence finds the conflicts: a core
//   that takes a line, or reads a written one, finds the marks. If a marked line is evicted, its transaction aborts.
//   The exception are lines that were only read, if the machine tracks these further out (transactions.reads):
//   History::tx_readers.
//
//   X1 tx_readers and marks are empty where no transaction runs.   X2 a written line is in its core's first-level cache.
//   X3 requester_wins: a written line is modified; what it was before lies in an outer cache or in memory.
#include "simulator/model/state.hpp"

#include <algorithm>

namespace loam::simulator {

bool State::interrupted(const Core& core, std::uint64_t now) const noexcept {
  return core.tx.interrupt_at != 0 && now >= core.tx.interrupt_at;
}

// Marks what an access of a running transaction uses. returns false if it aborted for lack of room
bool State::note(const Request& request, Copy& copy) noexcept {
  const unsigned number = request.core();
  Core& core = cores[number];
  if (!copy.in_transaction()) {
    const Line& entry = directory.get(request.line, node_of(number));
    const bool known = entry.history != nullptr && entry.history->tx_readers.contains(number);
    if (!known && core.tx.count == core.tx.room) {
      abort_for_room(number, request.now, request.line, false);
      outcome.self_abort = true;
      return false;
    }
    if (!known) core.tx.lines[core.tx.count++] = request.line;
  }
  if (request.writes() && copy.tx_written == 0) {
    if (machine.written_lines != 0 && core.tx.written_lines == machine.written_lines) {
      abort_for_room(number, request.now, request.line, true);
      outcome.self_abort = true;
      return false;
    }
    ++core.tx.written_lines;
    if (!lazy() && copy.written != 0) {  // X3
      put_l2(group_of(number), request.line, directory.get(request.line, 0), true, number, request.now);
      if (outcome.self_abort) return false;
    }
  }
  if (request.writes()) {
    copy.tx_written |= request.mask;
    if (!lazy()) copy.state = LineState::modified;
  }
  if (request.access.kind != Access::Kind::write) copy.tx_read |= request.mask;
  return true;
}

void State::report_abort(unsigned core, unsigned requester) noexcept {
  if (core == requester)
    outcome.self_abort = true;
  else
    outcome.victims.add(core);
}

// A request meets marks of another core's transaction, which used these bytes in a way that does not go with it.
void State::conflict(const Request& request, unsigned victim, std::uint64_t used) noexcept {
  const bool bytes_differ = (used & request.mask) == 0;
  History& history = directory.history(directory.get(request.line, 0), request.line);
  ++history.aborts;
  if (bytes_differ) ++history.false_conflicts;
  if (history.transfers == 0 && history.aborts == 1) history.first_now = request.now;
  history.last_now = request.now;
  abort(victim, request.now,
        {.cause = AbortCause::conflict,
         .false_conflict = bytes_differ,
         .by = request.core(),
         .address = address_of(request.line),
         .pc = request.access.pc});
  outcome.victims.add(victim);
}

// Those that read the line although their first-level cache has dropped it; which bytes is not known any more.
void State::conflict_with_readers(const Request& request, Line& entry) noexcept {
  if (entry.history == nullptr) return;
  const CoreSet readers = entry.history->tx_readers;
  readers.for_each([&](unsigned reader) {
    if (reader != request.core()) conflict(request, reader, ~std::uint64_t{0});
  });
}

void State::abort_for_room(unsigned core, std::uint64_t now, std::uint64_t line, bool written) noexcept {
  abort(core, now,
        {.cause = written ? AbortCause::write_capacity : AbortCause::read_capacity,
         .by = core,
         .address = address_of(line)});
}

void State::abort(unsigned number, std::uint64_t now, const Abort& why) noexcept {
  Core& core = cores[number];
  core.last_abort = why;
  ++core.counts.aborts[static_cast<unsigned>(why.cause)];
  if (why.false_conflict) ++core.counts.false_conflicts;
  core.counts.aborted_cycles += std::max(now, core.tx.begun) - core.tx.begun;
  forget(number, false);
}

// The transaction is over: marks go, and what it had written is the program's (committed) or is not there any more.
void State::forget(unsigned number, bool committed) noexcept {
  Core& core = cores[number];
  for (std::uint32_t i = 0; i < core.tx.count; ++i) {
    const std::uint64_t line = core.tx.lines[i];
    Line& entry = directory.get(line, node_of(number));
    if (entry.history != nullptr) entry.history->tx_readers.remove(number);
    const int at = core.l1.find(line);
    if (at == FirstLevel::kNone) continue;
    Copy& copy = core.l1.copy(at);
    if (copy.tx_written != 0 && committed) {
      copy.written |= copy.tx_written;
      copy.state = LineState::modified;
    } else if (copy.tx_written != 0 && !lazy()) {
      remove(number, at, entry);
      directory.history(entry, line).lost[number] = History::kAborted;
      continue;
    }
    copy.tx_read = copy.tx_written = 0;
  }
  core.tx.count = core.tx.written_lines = 0;
  core.tx.active = false;
}

std::uint64_t Model::begin_transaction(unsigned core, std::uint64_t now) {
  const Machine& machine = state_.machine;
  LOAM_CHECK(machine.transactions != Transactions::none, "machine {} has no hardware transactions", machine.name);
  Transaction& tx = state_.cores[core].tx;
  LOAM_CHECK(!tx.active, "core {} has a hardware transaction already: nesting is for the engine to flatten", core);
  ++state_.cores[core].counts.begins;
  tx.active = true;
  tx.begun = now;
  if (machine.interrupt_every_cycles != 0) tx.interrupt_at = machine.next_interrupt(core, now);
  return machine.begin_cycles;
}

Outcome Model::commit_transaction(unsigned number, std::uint64_t now) {
  State& state = state_;
  Core& core = state.cores[number];
  LOAM_CHECK(core.tx.active, "core {} commits without a hardware transaction", number);
  state.outcome = {};
  std::uint64_t cycles = state.machine.commit_cycles + core.stores.drain(now);
  for (std::uint32_t i = 0; state.lazy() && i < core.tx.count; ++i) {
    const int at = core.l1.find(core.tx.lines[i]);
    if (at == FirstLevel::kNone || core.l1.copy(at).tx_written == 0) continue;
    Copy& copy = core.l1.copy(at);
    if (copy.state >= LineState::exclusive) continue;
    const Access access{number, state.address_of(core.tx.lines[i]), 0, Access::Kind::write, now + cycles, 0};
    cycles += state.upgrade({access, core.tx.lines[i], copy.tx_written, now + cycles, true}, copy);
  }
  ++core.counts.commits;
  core.counts.stall_cycles += cycles;
  state.forget(number, true);
  state.outcome.cycles = cycles;
  return state.outcome;
}

std::uint64_t Model::abort_transaction(unsigned core, std::uint64_t now, AbortCause cause) {
  LOAM_CHECK(state_.cores[core].tx.active, "core {} aborts without a hardware transaction", core);
  state_.abort(core, now, {.cause = cause, .by = core});
  return state_.machine.abort_cycles;
}

bool Model::in_transaction(unsigned core) const noexcept { return state_.cores[core].tx.active; }

const Abort& Model::last_abort(unsigned core) const noexcept { return state_.cores[core].last_abort; }

}  // namespace loam::simulator
