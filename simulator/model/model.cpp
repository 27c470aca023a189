// Accesses that hit in the first-level cache, and the public functions of the model.
#include "simulator/model/model.hpp"

#include "simulator/model/state.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace loam::simulator {
namespace {

std::uint64_t bytes_mask(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return (bytes >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1) << offset;
}

}  // namespace

State::State(const Machine& description) noexcept
    : machine(description),
      line_shift(static_cast<unsigned>(std::countr_zero(machine.line_bytes))),
      page_shift(static_cast<unsigned>(std::countr_zero(machine.page_bytes))),
      cores_per_node(machine.cores_per_node()),
      offset_mask(machine.line_bytes - 1),
      hit_cycles(machine.l1.cycles) {
  directory.init(arena, machine);
  moves.init(arena);
  cores = arena.array<Core>(machine.cores);
  const auto sets = [&](const CacheShape& shape) { return shape.bytes / machine.line_bytes / shape.ways; };
  for (unsigned core = 0; core < machine.cores; ++core) {
    groups_of_cores[core] = static_cast<std::uint8_t>(machine.group_of(core));
    nodes_of_cores[core] = static_cast<std::uint8_t>(machine.node_of(core));
    cores[core].l1.init(arena, sets(machine.l1), machine.l1.ways);
    cores[core].stores.init(arena);
    cores[core].tlb.init(arena, machine.tlb);
    cores[core].tlb2.init(arena, machine.tlb2);
  }
  l2 = machine.l2.bytes == 0 ? nullptr : arena.array<OuterCache>(machine.groups());
  for (unsigned group = 0; l2 != nullptr && group < machine.groups(); ++group)
    l2[group].init(arena, sets(machine.l2), machine.l2.ways);
  l3 = machine.l3.bytes == 0 ? nullptr : arena.array<OuterCache>(machine.nodes);
  memories = arena.array<Bandwidth>(machine.nodes);
  links = arena.array<Bandwidth>(machine.nodes * machine.nodes);
  for (unsigned node = 0; node < machine.nodes; ++node) {
    if (l3 != nullptr) l3[node].init(arena, sets(machine.l3), machine.l3.ways);
    memories[node].init(arena, machine.memory_bytes_per_cycle_milli);
    for (unsigned other = 0; other < machine.nodes; ++other)
      if (other != node) links[node * machine.nodes + other].init(arena, machine.link_bytes_per_cycle_milli);
  }
  for (unsigned core = 0; core < machine.cores && machine.transactions != Transactions::none; ++core) {
    Transaction& tx = cores[core].tx;
    const std::uint64_t l1_lines = machine.l1.bytes / machine.line_bytes,
                        l2_lines = machine.l2.bytes / machine.line_bytes;
    tx.room = static_cast<std::uint32_t>(machine.read_capacity == ReadCapacity::l1   ? l1_lines
                                         : machine.read_capacity == ReadCapacity::l2 ? l1_lines + l2_lines
                                                                                     : kTransactionLinesMax);
    tx.lines = arena.zeros<std::uint64_t>(tx.room);
  }
  for (unsigned node = 0; node < machine.nodes; ++node) {
    for (unsigned group = 0; group < machine.groups(); ++group)
      groups_at[node][1 + machine.distance[node][node_of(first_core_of_group(group))]].add(group);
    for (unsigned other = 0; other < machine.nodes; ++other)
      nodes_at[node][1 + machine.distance[node][other]] |= static_cast<std::uint16_t>(1u << other);
  }
  on_chip_cycles = l3 != nullptr ? machine.l3.cycles : l2 != nullptr ? machine.l2.cycles : machine.memory_cycles[0];
}

std::uint64_t State::translate(Core& core, std::uint64_t page) noexcept {
  core.last_page = page;
  if (!core.tlb.present() || core.tlb.use(page)) return 0;
  ++core.counts.tlb_misses;
  if (core.tlb2.present() && core.tlb2.use(page)) return machine.tlb2_cycles;
  ++core.counts.walks;
  return machine.walk_cycles;
}

// What an access to one line costs. It may end the own transaction (outcome.self_abort): then it did not happen.
// at: its copy in the first-level cache
std::uint64_t State::access_line(const Access& access, std::uint64_t line, int at, std::uint64_t mask,
                                 std::uint64_t now) noexcept {
  Core& core = cores[access.core];
  const bool writes = access.kind != Access::Kind::read, atomic = access.kind == Access::Kind::atomic;
  ++(atomic ? core.counts.atomics : writes ? core.counts.writes : core.counts.reads);
  if (core.tx.active && interrupted(core, now)) [[unlikely]] {
    abort(access.core, now, {.cause = AbortCause::interrupt, .by = access.core, .pc = access.pc});
    outcome.self_abort = true;
    return machine.abort_cycles;
  }
  std::uint64_t extra = 0;
  const std::uint64_t page = address_of(line) >> page_shift;
  if (page != core.last_page) extra = translate(core, page);
  if (atomic) {
    const std::uint64_t drained = core.stores.drain(now + extra);
    core.counts.store_buffer_cycles += drained;
    extra += drained + machine.atomic_cycles;
  }
  const bool buffered = core.tx.active && lazy();
  const Request request{access, line, mask, now + extra, writes && !buffered};
  std::uint64_t cycles = machine.l1.cycles;
  if (core.stores.holds(request.now) && !core.tx.active && merge(request, at, cycles)) [[unlikely]] {
    cycles += extra;
    core.counts.stall_cycles += cycles - std::min<std::uint64_t>(cycles, machine.l1.cycles);
    return cycles;
  }
  if (at != FirstLevel::kNone && (!request.exclusive || core.l1.copy(at).state >= LineState::exclusive)) [[likely]] {
    Copy& copy = core.l1.copy(at);
    core.l1.use(at, line);
    if (copy.open && (copy.others & mask) != 0) {
      copy.open = false;
      ++core.counts.true_sharing;
      ++directory.get(line, 0).history->true_sharing;
    }
  } else {
    from_level = -1;
    const std::uint64_t taken = at == FirstLevel::kNone ? fill(request) : upgrade(request, core.l1.copy(at));
    if (outcome.self_abort) return extra + machine.abort_cycles;
    if (access.kind == Access::Kind::write && machine.store_buffer != 0) {
      cycles += buffer(request, taken);
    } else {
      cycles = taken;
    }
  }
  if (writes || core.tx.active) {
    const int there = core.l1.find(line);
    if (there != FirstLevel::kNone) {
      Copy& copy = core.l1.copy(there);
      if (core.tx.active) {
        if (!note(request, copy)) return extra + cycles + machine.abort_cycles;
      } else {
        copy.state = LineState::modified;
        copy.written |= mask;
      }
    }
  }
  cycles += extra;
  core.counts.stall_cycles += cycles - std::min<std::uint64_t>(cycles, machine.l1.cycles);
  return cycles;
}

// An access to several lines: one after the other.
Outcome State::access_lines(const Access& access) noexcept {
  outcome = {};
  std::uint64_t from = access.address & offset_mask, left = access.bytes, now = access.now;
  for (std::uint64_t at = access.address >> line_shift; left != 0 && !outcome.self_abort; ++at, from = 0) {
    const std::uint64_t here = std::min<std::uint64_t>(left, machine.line_bytes - from);
    now += access_line(access, at, cores[access.core].l1.find(at), bytes_mask(from, here), now);
    left -= here;
  }
  outcome.cycles = now - access.now;
  return outcome;
}

[[gnu::noinline]] void State::access_slow(const Access& access, int at, Outcome& result) noexcept {
  const std::uint64_t offset = access.address & offset_mask;
  if (offset + access.bytes > machine.line_bytes) [[unlikely]] {
    result = access_lines(access);
    return;
  }
  outcome = {};
  const std::uint64_t line = access.address >> line_shift;
  if (const std::uint64_t wait = waits_first(access, line, at); wait != 0) [[unlikely]] {
    result = {};
    result.cycles = wait;
    result.again = true;
    return;
  }
  outcome.cycles = access_line(access, line, at, bytes_mask(offset, access.bytes), access.now);
  result = outcome;
}

// The fast path: one line that the core has as the access needs it, in a page whose translation is at hand, outside of
// transactions. returns "slow", and has changed nothing, if it is not such an access; "hot", kUnlessHot alone, if is_hot()
// would say so and the line is here: then nobody needs to ask the directory
template <bool kUnlessHot>
State::Tried State::hit(const Access& access, int at, Outcome& result) noexcept {
  if (access.kind == Access::Kind::atomic) return kUnlessHot ? Tried::hot : Tried::slow;
  const std::uint64_t offset = access.address & offset_mask, line = access.address >> line_shift;
  Core& core = cores[access.core];
  if (at == FirstLevel::kNone || offset + access.bytes > offset_mask + 1) return Tried::slow;
  Copy& copy = core.l1.copy(at);
  const bool writes = access.kind == Access::Kind::write;
  if (kUnlessHot && (copy.hot_until > access.now || (writes && copy.state == LineState::shared))) return Tried::hot;
  if (core.tx.active || copy.open || core.stores.holds(access.now)) return Tried::slow;
  if (writes && copy.state < LineState::exclusive) return Tried::slow;
  if (!core.knows(access.address >> page_shift)) return Tried::slow;
  core.l1.use(at, line);
  if (writes) {
    copy.state = LineState::modified;
    copy.written |= bytes_mask(offset, access.bytes);
    ++core.counts.writes;
  } else {
    ++core.counts.reads;
  }
  result.cycles = hit_cycles;
  result.victims.clear();
  result.self_abort = result.again = false;
  return Tried::done;
}

bool State::hot_line(const Access& access, std::uint64_t line, int at) const noexcept {
  const bool writes = access.kind != Access::Kind::read;
  if (at != FirstLevel::kNone) {
    const Copy& copy = cores[access.core].l1.copy(at);
    return copy.hot_until > access.now || (writes && copy.state == LineState::shared);
  }
  const Line* const entry = directory.find(line);
  if (entry == nullptr) return false;
  if (entry->owner >= 0 || entry->uncached || entry->hot(access.now, machine.hot_cycles)) return true;
  return writes && (!entry->sharers.empty() || (entry->history != nullptr && !entry->history->tx_readers.empty()));
}

[[gnu::always_inline]] inline void State::expect(const Access& access) const noexcept {
  const std::uint64_t line = access.address >> line_shift;
  const Core& core = cores[access.core];
  __builtin_prefetch(&core.counts, 1);
  __builtin_prefetch(reinterpret_cast<const char*>(&core.counts) + 64, 1);
  __builtin_prefetch(reinterpret_cast<const char*>(&core.counts) + 128, 1);
  __builtin_prefetch(reinterpret_cast<const char*>(&core.counts) + 192, 1);
  const Line* const entry = directory.recent(line);
  if (l2 != nullptr) l2[group_of(access.core)].prefetch(line);
  if (l3 != nullptr) l3[node_of(access.core)].prefetch(line);
  if (entry == nullptr) return;
  if (const History* history = entry->history) {
    const char* at = reinterpret_cast<const char*>(history);
    for (unsigned i = 0; i < sizeof(History); i += 64) __builtin_prefetch(at + i, 1);
    __builtin_prefetch(history->lost + access.core, 1);
  }
  entry->sharers.for_each([&](unsigned other) {
    __builtin_prefetch(&cores[other], 1);
    cores[other].l1.prefetch(line);
  });
  entry->groups.for_each([&](unsigned group) { l2[group].prefetch(line); });
  for (unsigned rest = entry->nodes; rest != 0; rest &= rest - 1) l3[std::countr_zero(rest)].prefetch(line);
}

Model::Model(const Machine& machine)
    : state_(*[&] {
        // The state holds the arena that its own parts lie in; it lies in pages of its own.
        void* const place = platform::map_lazy_or_die(sizeof(State), "the simulated machine");
        return new (place) State(machine);
      }()) {}

Model::~Model() {
  state_.~State();
  platform::unmap(&state_, sizeof(State));
}

const Machine& Model::machine() const noexcept { return state_.machine; }

bool Model::is_hot(const Access& access) const {
  if (access.kind == Access::Kind::atomic) return true;
  const std::uint64_t first = access.address >> state_.line_shift;
  const std::uint64_t last = (access.address + (access.bytes == 0 ? 0 : access.bytes - 1)) >> state_.line_shift;
  for (std::uint64_t line = first; line <= last; ++line)
    if (state_.hot_line(access, line, state_.cores[access.core].l1.find(line))) return true;
  return false;
}

Outcome Model::access(const Access& access) {
  Outcome outcome;
  const int at = state_.cores[access.core].l1.find(access.address >> state_.line_shift);
  if (state_.hit<false>(access, at, outcome) != State::Tried::done) state_.access_slow(access, at, outcome);
  return outcome;
}

bool Model::access_unless_hot(const Access& access, Outcome& outcome) {
  const int at = state_.cores[access.core].l1.find(access.address >> state_.line_shift);
  const State::Tried tried = state_.hit<true>(access, at, outcome);
  if (tried == State::Tried::done) return true;
  if (tried == State::Tried::hot || is_hot(access)) return false;
  state_.access_slow(access, at, outcome);
  return true;
}

// noipa: a function that only loads ahead would be taken for one that does nothing.
[[gnu::noipa]] void Model::expect(const Access& access) const { state_.expect(access); }

std::uint64_t Model::fence(unsigned core, std::uint64_t now) {
  Core& one = state_.cores[core];
  ++one.counts.fences;
  const std::uint64_t drained = one.stores.drain(now);
  one.counts.store_buffer_cycles += drained;
  one.counts.stall_cycles += drained + state_.machine.fence_cycles;
  return drained + state_.machine.fence_cycles;
}

const Counts& Model::counts(unsigned core) const noexcept { return state_.cores[core].counts; }

std::size_t Model::memory_bytes() const noexcept { return state_.arena.used(); }

}  // namespace loam::simulator
