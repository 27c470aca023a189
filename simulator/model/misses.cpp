// Misses and evictions: the MESI transitions, their costs, and the kinds of misses.
#include "simulator/model/state.hpp"

#include <algorithm>
#include <bit>

namespace loam::simulator {

// Bytes that a copy's core wrote become known to all that lost the line.
void State::tell_written(Line& entry, Copy& copy) noexcept {
  if (entry.history != nullptr) entry.history->wrote(copy.written);
  copy.written = 0;
}

// The copy leaves: a miss whose kind is still open was for false sharing.
void State::close(unsigned core, Copy& copy, Line& entry) noexcept {
  if (!copy.open) return;
  copy.open = false;
  ++cores[core].counts.false_sharing;
  ++entry.history->false_sharing;
}

// Takes a copy out of a first-level cache; what becomes of its content is the caller's business.
void State::remove(unsigned core, int at, Line& entry) noexcept {
  Copy& copy = cores[core].l1.copy(at);
  close(core, copy, entry);
  tell_written(entry, copy);
  cores[core].l1.drop(at);
  entry.sharers.remove(core);
  if (entry.owner == static_cast<int>(core)) entry.owner = -1;
}

void State::write_memory(unsigned node, std::uint64_t line, std::uint64_t now) noexcept {
  const unsigned home = machine.memory_uniform != 0 ? 0 : directory.home(line, node);
  memories[home].wait(now, machine.line_bytes);
  if (machine.memory_uniform == 0 && home != node) links[node * machine.nodes + home].wait(now, machine.line_bytes);
}

// A line leaves an inclusive cache: the caches of these cores lose it too. returns whether one of them had changed it
bool State::drop_above(unsigned first_core, unsigned count, std::uint64_t line, unsigned core,
                       std::uint64_t now) noexcept {
  Line& entry = directory.get(line, 0);
  bool changed = false;
  for (unsigned each = first_core; each < first_core + count; ++each) {
    if (!entry.sharers.contains(each)) continue;
    FirstLevel& l1 = cores[each].l1;
    const Copy& copy = l1.copy(l1.find(line));
    if (copy.in_transaction()) {
      abort_for_room(each, now, line, copy.tx_written != 0);
      report_abort(each, core);
      if (!entry.sharers.contains(each)) continue;  // what it had written is gone already
    }
    const int at = l1.find(line);
    changed |= l1.copy(at).state == LineState::modified;
    remove(each, at, entry);
  }
  return changed;
}

void State::put_l3(unsigned node, std::uint64_t line, Line& entry, bool changed, unsigned core,
                   std::uint64_t now) noexcept {
  if (l3 == nullptr) {
    if (changed) write_memory(node, line, now);
    return;
  }
  auto evicted = l3[node].put(line, changed);
  entry.nodes |= static_cast<std::uint16_t>(1u << node);
  if (evicted.line == kNoLine) return;
  Line& old = directory.get(evicted.line, node);
  old.nodes &= static_cast<std::uint16_t>(~(1u << node));
  if (machine.l3.inclusive != 0) {
    const unsigned first = node * machine.cores_per_node();
    evicted.changed |= drop_above(first, machine.cores_per_node(), evicted.line, core, now);
    for (unsigned group = group_of(first); l2 != nullptr && group < machine.groups(); ++group) {
      if (node_of(first_core_of_group(group)) != node) break;
      evicted.changed |= l2[group].drop(evicted.line);
      old.groups.remove(group);
    }
  }
  if (evicted.changed) write_memory(node, evicted.line, now);
}

void State::put_l2(unsigned group, std::uint64_t line, Line& entry, bool changed, unsigned core,
                   std::uint64_t now) noexcept {
  const unsigned first = first_core_of_group(group), node = node_of(first);
  if (l2 == nullptr) {
    put_l3(node, line, entry, changed, core, now);
    return;
  }
  auto evicted = l2[group].put(line, changed);
  entry.groups.add(group);
  if (evicted.line == kNoLine) return;
  Line& old = directory.get(evicted.line, node);
  old.groups.remove(group);
  if (machine.l2.inclusive != 0) evicted.changed |= drop_above(first, machine.l2.shared_by, evicted.line, core, now);
  if (machine.read_capacity == ReadCapacity::l2 && old.history != nullptr)
    for (unsigned each = first; each < first + machine.l2.shared_by; ++each)
      if (old.history->tx_readers.contains(each)) {
        abort_for_room(each, now, evicted.line, false);
        report_abort(each, core);
      }
  if (evicted.changed) put_l3(node, evicted.line, old, true, core, now);
}

// Makes room at a place of a first-level cache. returns whether the own transaction aborted for it
bool State::evict(unsigned core, int at, std::uint64_t now) noexcept {
  FirstLevel& l1 = cores[core].l1;
  const std::uint64_t line = l1.line(at);
  if (line == kNoLine) return false;
  const Copy& copy = l1.copy(at);
  Line& entry = directory.get(line, node_of(core));
  if (copy.in_transaction()) {
    if (copy.tx_written != 0 || machine.read_capacity == ReadCapacity::l1) {
      abort_for_room(core, now, line, copy.tx_written != 0);
      outcome.self_abort = true;
      return true;
    }
    directory.history(entry, line).tx_readers.add(core);
  }
  const bool changed = copy.state == LineState::modified;
  remove(core, at, entry);
  if (changed) {
    ++cores[core].counts.writebacks;
    entry.changed = true;
    put_l2(group_of(core), line, entry, true, core, now);
  }
  return false;
}

// Another core's copy goes, because this request writes the line.
void State::invalidate(const Request& request, Line& entry, unsigned victim) noexcept {
  FirstLevel& l1 = cores[victim].l1;
  const int at = l1.find(request.line);
  const Copy& copy = l1.copy(at);
  if (copy.in_transaction()) conflict(request, victim, copy.tx_read | copy.tx_written);
  History& history = directory.history(entry, request.line);
  if (entry.sharers.contains(victim)) remove(victim, at, entry);
  history.lose(victim);
  ++cores[victim].counts.invalidations;
}

// All other copies go. returns how long the furthest takes, 0 if there was none
void State::moved(const Request& request, History& history, unsigned from) noexcept {
  history.moved(request.core(), request.now, request.access.pc);
  moves.note(request.line, from, request.core(), request.now);
}

std::uint64_t State::take_from_others(const Request& request, Line& entry) noexcept {
  const unsigned core = request.core();
  std::uint64_t furthest = 0;
  const auto reach = [&](unsigned other) {
    const unsigned far = level(core, other);
    from_level = std::max(from_level, static_cast<int>(far));
    furthest = std::max<std::uint64_t>(furthest, machine.invalidate_cycles[far]);
  };
  conflict_with_readers(request, entry);
  CoreSet others = entry.sharers;
  others.remove(core);
  others.for_each([&](unsigned other) {
    reach(other);
    invalidate(request, entry, other);
  });
  CoreSet groups = entry.groups;
  groups.remove(group_of(core));
  groups.for_each([&](unsigned group) {
    reach(first_core_of_group(group));
    l2[group].drop(request.line);
    entry.groups.remove(group);
  });
  for (unsigned rest = entry.nodes & ~(1u << node_of(core)); rest != 0; rest &= rest - 1) {
    const auto node = static_cast<unsigned>(std::countr_zero(rest));
    reach(node * cores_per_node);
    l3[node].drop(request.line);
    entry.nodes &= static_cast<std::uint16_t>(~(1u << node));
  }
  if (!others.empty()) moved(request, *entry.history, others.first());
  return furthest;
}

std::uint64_t State::from_memory(const Request& request) noexcept {
  const unsigned node = node_of(request.core());
  const bool uniform = machine.memory_uniform != 0;
  const unsigned home = uniform ? 0 : directory.home(request.line, node);
  const unsigned distance = uniform ? 0 : machine.distance[node][home];
  std::uint64_t queue = memories[home].wait(request.now, machine.line_bytes);
  if (distance != 0) queue = std::max(queue, links[home * machine.nodes + node].wait(request.now, machine.line_bytes));
  Counts& counts = cores[request.core()].counts;
  ++counts.from_memory[distance];
  counts.queue_cycles += queue;
  return queue + machine.memory_cycles[distance];
}

// From the first-level cache of the core that owns the line. A reader leaves it a shared copy.
std::uint64_t State::from_owner(const Request& request, Line& entry) noexcept {
  const unsigned core = request.core(), owner = static_cast<unsigned>(entry.owner);
  const unsigned from = node_of(owner), to = node_of(core);
  const unsigned far = level(core, owner);
  from_level = static_cast<int>(far);
  std::uint64_t queue = 0;
  if (from != to) queue = links[from * machine.nodes + to].wait(request.now, machine.line_bytes);
  ++cores[core].counts.transfers[far];
  cores[core].counts.queue_cycles += queue;
  FirstLevel& l1 = cores[owner].l1;
  Copy& copy = l1.copy(l1.find(request.line));
  // What a transaction wrote is not to be seen: it aborts, and its copy goes.
  if (copy.tx_written != 0 && !lazy()) {
    conflict(request, owner, request.exclusive ? copy.tx_read | copy.tx_written : copy.tx_written);
    moved(request, directory.history(entry, request.line), owner);
    return queue + machine.transfer_cycles[far];
  }
  tell_written(entry, copy);
  History& history = directory.history(entry, request.line);
  if (copy.state == LineState::modified) {
    entry.changed = true;
    put_l2(group_of(owner), request.line, entry, true, core, request.now);
  }
  if (!request.exclusive) {
    copy.state = LineState::shared;
    copy.hot_until = request.now + machine.hot_cycles;
    entry.owner = -1;
    moved(request, history, owner);
  }
  return queue + machine.transfer_cycles[far];
}

// The level of the nearest outer cache that has the line, beside those of the core's own group and node; kLevels: none has.
unsigned State::nearest_outside(unsigned core, const Line& entry) const noexcept {
  const unsigned node = node_of(core);
  for (unsigned far = 1; far < kLevels; ++far)
    if (entry.groups.meets(groups_at[node][far]) || (entry.nodes & nodes_at[node][far]) != 0) return far;
  return kLevels;
}

// Whether memory lacks what is in one of these caches. With many sharers it takes long to ask them all.
bool State::changed_outside(std::uint64_t line, const Line& entry) const noexcept {
  bool changed = false;
  entry.groups.for_each([&](unsigned group) { changed |= l2[group].changed(line); });
  for (unsigned rest = entry.nodes; rest != 0; rest &= rest - 1) changed |= l3[std::countr_zero(rest)].changed(line);
  return changed;
}

// From an outer cache or from memory, whatever is nearest.
std::uint64_t State::from_outer(const Request& request, Line& entry) noexcept {
  const unsigned core = request.core(), group = group_of(core), node = node_of(core);
  Counts& counts = cores[core].counts;
  if (entry.groups.contains(group)) {
    l2[group].use(request.line);
    ++counts.from_l2;
    return machine.l2.cycles;
  }
  if ((entry.nodes >> node & 1) != 0) {
    l3[node].use(request.line);
    ++counts.from_l3;
    return machine.l3.cycles;
  }
  // In another group or node: it must come from there if memory does not have it, and may if that is nearer.
  const unsigned nearest = nearest_outside(core, entry);
  if (nearest == kLevels) return from_memory(request);
  const unsigned distance =
      machine.memory_uniform != 0 ? 0 : machine.distance[node][directory.home(request.line, node)];
  if (machine.transfer_cycles[nearest] > machine.memory_cycles[distance] && !changed_outside(request.line, entry))
    return from_memory(request);
  ++counts.transfers[nearest];
  return machine.transfer_cycles[nearest];
}

// The line's content, and alone if the request needs that. Transfers of one line happen one after the other.
std::uint64_t State::fetch(const Request& request, Line& entry) noexcept {
  bool moves = entry.owner >= 0;
  std::uint64_t cycles = moves ? from_owner(request, entry) : from_outer(request, entry);
  if (request.exclusive) {
    const std::uint64_t furthest = take_from_others(request, entry);
    moves |= furthest != 0;
    cycles = std::max(cycles, furthest);
  }
  if (entry.history == nullptr || machine.serialised == 0) return cycles;
  History& history = *entry.history;
  const std::uint64_t begin = std::max(request.now, history.busy_until);
  if (moves) history.busy_until = begin + cycles;
  cores[request.core()].counts.queue_cycles += begin - request.now;
  return begin - request.now + cycles;
}

// Which kind of miss it is; whether sharing was true is open until a byte is used that others wrote.
void State::classify(const Request& request, Line& entry, Copy& copy) noexcept {
  const unsigned core = request.core();
  Counts& counts = cores[core].counts;
  if (!entry.seen.contains(core)) {
    entry.seen.add(core);
    ++counts.cold;
    return;
  }
  if (entry.history == nullptr || entry.history->lost[core] == 0) {
    ++counts.capacity;
    return;
  }
  if (entry.history->lost[core] == History::kAborted) {
    entry.history->lost[core] = 0;
    ++counts.after_abort;
    return;
  }
  const std::uint64_t others = entry.history->written_since_loss(core);
  entry.history->lost[core] = 0;
  if ((others & request.mask) != 0) {
    ++counts.true_sharing;
    ++entry.history->true_sharing;
    return;
  }
  copy.open = true;
  copy.others = others;
}

bool State::must_be_uncached(const Request& request, const Line& entry) const noexcept {
  if (entry.uncached) return true;
  if (!entry.seen.has_other_than(request.core())) return false;
  const auto owner_changed = [&] {
    if (entry.owner < 0) return false;
    const FirstLevel& l1 = cores[entry.owner].l1;
    return l1.copy(l1.find(request.line)).state == LineState::modified;
  };
  return request.writes() || entry.changed || owner_changed();
}

// Coherence::none: from memory each time; the first time, copies in caches go.
std::uint64_t State::uncached(const Request& request, Line& entry) noexcept {
  if (!entry.uncached) {
    entry.uncached = true;
    CoreSet sharers = entry.sharers;
    sharers.for_each([&](unsigned core) { remove(core, cores[core].l1.find(request.line), entry); });
    CoreSet groups = entry.groups;
    groups.for_each([&](unsigned group) { l2[group].drop(request.line); });
    entry.groups.clear();
    for (unsigned node = 0; entry.nodes >> node != 0; ++node)
      if ((entry.nodes >> node & 1) != 0) l3[node].drop(request.line);
    entry.nodes = 0;
  }
  entry.seen.add(request.core());
  ++cores[request.core()].counts.misses;
  ++cores[request.core()].counts.uncached;
  return from_memory(request);
}

std::uint64_t State::fill(const Request& request) noexcept {
  const unsigned core = request.core(), node = node_of(core);
  FirstLevel& l1 = cores[core].l1;
  Line& entry = directory.get(request.line, node);
  if (machine.coherence == Coherence::none && must_be_uncached(request, entry)) return uncached(request, entry);
  const int at = l1.place(request.line);
  if (evict(core, at, request.now)) return 0;
  ++cores[core].counts.misses;
  const std::uint64_t cycles = fetch(request, entry);
  Copy& copy = l1.copy(at);
  classify(request, entry, copy);
  if (!entry.groups.contains(group_of(core))) {
    put_l2(group_of(core), request.line, entry, false, core, request.now);
    if (l2 != nullptr && l3 != nullptr) put_l3(node, request.line, entry, false, core, request.now);
  }
  l1.put(at, request.line);
  entry.sharers.add(core);
  if (entry.hot(request.now, machine.hot_cycles)) copy.hot_until = entry.history->last_change + machine.hot_cycles;
  CoreSet elsewhere = entry.groups;
  elsewhere.remove(group_of(core));
  const bool alone = !entry.sharers.has_other_than(core) && elsewhere.empty() && (entry.nodes & ~(1u << node)) == 0 &&
                     (entry.history == nullptr || !entry.history->tx_readers.has_other_than(core));
  copy.state = request.exclusive ? LineState::modified : alone ? LineState::exclusive : LineState::shared;
  if (copy.state != LineState::shared) entry.owner = static_cast<std::int16_t>(core);
  return cycles;
}

// A write that has the line, but not alone.
std::uint64_t State::upgrade(const Request& request, Copy& copy) noexcept {
  const unsigned core = request.core();
  Line& entry = directory.get(request.line, node_of(core));
  if (machine.coherence == Coherence::none && must_be_uncached(request, entry)) return uncached(request, entry);
  ++cores[core].counts.upgrades;
  cores[core].l1.use(cores[core].l1.find(request.line), request.line);
  std::uint64_t cycles = take_from_others(request, entry);
  if (copy.open && (copy.others & request.mask) != 0) {
    copy.open = false;
    ++cores[core].counts.true_sharing;
    ++entry.history->true_sharing;
  }
  copy.state = LineState::modified;
  entry.owner = static_cast<std::int16_t>(core);
  if (entry.history != nullptr) {
    if (entry.hot(request.now, machine.hot_cycles)) copy.hot_until = entry.history->last_change + machine.hot_cycles;
    if (cycles != 0 && machine.serialised != 0) {
      const std::uint64_t begin = std::max(request.now, entry.history->busy_until);
      cores[core].counts.queue_cycles += begin - request.now;
      entry.history->busy_until = begin + cycles;
      cycles += begin - request.now;
    }
  }
  return cycles != 0 ? cycles : on_chip_cycles;
}

}  // namespace loam::simulator
