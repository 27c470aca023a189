// Counts of the whole machine, and the lines that moved most.
#include "simulator/model/state.hpp"

#include <algorithm>
#include <cstring>

namespace loam::simulator {
namespace {

std::uint64_t weight(const History& history, LineOrder order) noexcept {
  switch (order) {
    case LineOrder::transfers:
      return history.transfers;
    case LineOrder::false_sharing:
      return history.false_sharing;
    case LineOrder::aborts:
      return history.aborts;
  }
  return 0;
}

LineReport report(const History& history, std::uintptr_t address) noexcept {
  LineReport made;
  made.address = address;
  made.transfers = history.transfers;
  made.true_sharing = history.true_sharing;
  made.false_sharing = history.false_sharing;
  made.aborts = history.aborts;
  made.false_conflicts = history.false_conflicts;
  made.first_now = history.first_now;
  made.last_now = history.last_now;
  made.takers = history.takers;
  std::copy(std::begin(history.sites), std::end(history.sites), made.sites);
  std::sort(std::begin(made.sites), std::end(made.sites),
            [](const auto& a, const auto& b) { return a.count > b.count; });
  return made;
}

}  // namespace

void Model::settle() noexcept {
  for (unsigned number = 0; number < state_.machine.cores; ++number) {
    FirstLevel& l1 = state_.cores[number].l1;
    for (int at = 0; at < l1.size(); ++at)
      if (l1.copy(at).open) state_.close(number, l1.copy(at), state_.directory.get(l1.line(at), 0));
  }
}

const Moves& Model::moves() const noexcept { return state_.moves; }

Counts Model::total() const noexcept {
  constexpr std::size_t kNumbers = sizeof(Counts) / sizeof(std::uint64_t);
  static_assert(std::is_trivially_copyable_v<Counts> && sizeof(Counts) % sizeof(std::uint64_t) == 0);
  std::uint64_t sums[kNumbers] = {};
  for (unsigned core = 0; core < state_.machine.cores; ++core) {
    std::uint64_t numbers[kNumbers];
    std::memcpy(numbers, &state_.cores[core].counts, sizeof numbers);
    for (std::size_t i = 0; i < kNumbers; ++i) sums[i] += numbers[i];
  }
  Counts all;
  std::memcpy(&all, sums, sizeof all);
  return all;
}

std::size_t Model::top_lines(LineOrder order, std::span<LineReport> reports) const noexcept {
  const auto of = [&](const LineReport& each) {
    return order == LineOrder::transfers ? each.transfers
           : order == LineOrder::aborts  ? each.aborts
                                         : each.false_sharing;
  };
  std::size_t count = 0;
  state_.directory.for_each_history([&](const History& history) {
    const std::uint64_t own = weight(history, order);
    if (own == 0 || reports.empty() || (count == reports.size() && of(reports[count - 1]) >= own)) return;
    const LineReport made = report(history, state_.address_of(history.line));
    if (count < reports.size()) ++count;
    std::size_t at = count - 1;
    for (; at > 0 && of(reports[at - 1]) < own; --at) reports[at] = reports[at - 1];
    reports[at] = made;
  });
  return count;
}

void Model::reset_counts() noexcept {
  for (unsigned core = 0; core < state_.machine.cores; ++core) state_.cores[core].counts = {};
  state_.directory.for_each_history([](History& history) {
    history.transfers = history.true_sharing = history.false_sharing = history.aborts = history.false_conflicts = 0;
    history.takers.clear();
    for (auto& site : history.sites) site = {};
  });
}

}  // namespace loam::simulator
