// Verifies the invariants of first-level caches, directory and transactions. For tests.
#include "runtime/base/format.hpp"
#include "simulator/model/state.hpp"

namespace loam::simulator {

std::string_view State::verify(std::span<char> buffer) noexcept {
  for (unsigned core = 0; core < machine.cores; ++core) {
    const FirstLevel& l1 = cores[core].l1;
    for (int at = 0; at < l1.size(); ++at)
      if (const auto problem = verify(core, at, buffer); !problem.empty()) return problem;
  }
  std::string_view found;
  directory.for_each_history([&](const History& history) {
    history.tx_readers.for_each([&](unsigned core) {
      if (!cores[core].tx.active && found.empty())
        found = base::format_to(buffer, "X1: core {} reads line {} in no transaction", core, history.line);
    });
  });
  return found;
}

std::string_view State::verify(unsigned core, int at, std::span<char> buffer) noexcept {
  using base::format_to;
  const FirstLevel& l1 = cores[core].l1;
  const std::uint64_t line = l1.line(at);
  const Copy& copy = l1.copy(at);
  if (line == kNoLine) {
    if (copy.state == LineState::invalid && !copy.in_transaction() && copy.written == 0) return {};
    return format_to(buffer, "F2: core {} has a copy of no line", core);
  }
  const Line& entry = directory.get(line, 0);
  if (l1.find(line) != at) return format_to(buffer, "F1: core {} has line {} twice", core, line);
  if (copy.state == LineState::invalid) return format_to(buffer, "F2: core {} has line {} in no state", core, line);
  if (!entry.sharers.contains(core)) return format_to(buffer, "D1: core {} has line {}, not listed", core, line);
  const bool owns = copy.state >= LineState::exclusive;
  if (owns != (entry.owner == static_cast<int>(core)))
    return format_to(buffer, "F3: core {} line {} state {} owner {}", core, line, static_cast<int>(copy.state),
                     static_cast<int>(entry.owner));
  if (owns && entry.sharers.has_other_than(core))
    return format_to(buffer, "D2: line {} has an owner and sharers", line);
  CoreSet groups = entry.groups;
  groups.remove(group_of(core));
  if (owns && (!groups.empty() || (entry.nodes & ~(1u << node_of(core))) != 0))
    return format_to(buffer, "D2: line {} of core {} is in caches elsewhere", line, core);
  bool listed = true;
  entry.sharers.for_each([&](unsigned other) { listed &= cores[other].l1.find(line) != FirstLevel::kNone; });
  entry.groups.for_each([&](unsigned group) { listed &= l2 != nullptr && l2[group].has(line); });
  for (unsigned node = 0; node < machine.nodes; ++node)
    if ((entry.nodes >> node & 1) != 0) listed &= l3 != nullptr && l3[node].has(line);
  if (!listed) return format_to(buffer, "D1, D3: line {} is listed where it is not", line);
  if (copy.in_transaction() && !cores[core].tx.active)
    return format_to(buffer, "X1: core {} marks line {} in no transaction", core, line);
  if (copy.tx_written != 0 && !lazy() && copy.state != LineState::modified)
    return format_to(buffer, "X3: core {} wrote line {} in state {}", core, line, static_cast<int>(copy.state));
  return {};
}

std::string_view Model::verify(std::span<char> buffer) noexcept { return state_.verify(buffer); }

}  // namespace loam::simulator
