#include "workloads/allocation/shared/allocation.hpp"

#include "runtime/base/format.hpp"

#include <algorithm>
#include <cmath>

namespace loam::workloads::allocation {
namespace {

constinit Ledger ledgers_of_threads[kThreadsMax];

}  // namespace

Length::Length(const ParameterValues& values, std::uint64_t fallback)
    : duration_ms(static_cast<std::uint64_t>(values.integer("duration_ms"))),
      operations(static_cast<std::uint64_t>(values.integer("operations"))) {
  // As in every workload, a number of operations comes first: who counts instructions asks for it.
  if (operations != 0) {
    duration_ms = 0;
  } else {
    operations = duration_ms != 0 ? ~std::uint64_t{0} : fallback;
  }
}

void reject_less(std::string_view name, std::int64_t value, std::string_view other, std::int64_t limit) {
  char subject[64], digits[32], text[96], hint[96];
  reject(base::format_to(subject, "-p {}", name), base::format_to(digits, "{}", value),
         base::format_to(text, "must be at least {}, which is {}", other, limit),
         base::format_to(hint, "raise {} or lower {}", name, other));
}

void check_sizes(const ParameterValues& values) {
  const auto size_min = values.integer("size_min"), size_max = values.integer("size_max");
  if (size_max < size_min) reject_less("size_max", size_max, "size_min", size_min);
}

EvenSizes::EvenSizes(const ParameterValues& values)
    : least_(static_cast<std::uint32_t>(values.integer("size_min"))),
      count_(static_cast<std::uint32_t>(values.integer("size_max")) - least_ + 1) {}

SkewedSizes::SkewedSizes(std::size_t size_min, std::size_t size_max) noexcept {
  const double low = static_cast<double>(size_min), ratio = static_cast<double>(size_max) / low;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    // From the least size to the largest, both included.
    const double part = static_cast<double>(i) / static_cast<double>(sizes_.size() - 1);
    const auto size = static_cast<std::size_t>(std::lround(low * std::pow(ratio, part)));
    sizes_[i] = static_cast<std::uint32_t>(std::clamp(size, size_min, size_max));
  }
}

std::span<Ledger> open_ledgers(unsigned threads) noexcept {
  const auto ledgers = std::span(ledgers_of_threads).first(threads);
  for (unsigned i = 0; i < threads; ++i) {
    ledgers[i] = {};
    ledgers[i].thread_ = i;
  }
  return ledgers;
}

std::uint64_t live_bytes(std::span<const Ledger> ledgers) noexcept {
  std::int64_t sum = 0;
  for (const Ledger& ledger : ledgers) sum += ledger.live_bytes();
  return static_cast<std::uint64_t>(sum);
}

Totals::Totals(std::span<const Ledger> ledgers) noexcept {
  for (const Ledger& ledger : ledgers) {
    operations += ledger.operations;
    allocated += ledger.allocated_;
    freed += ledger.freed_;
    freed_remotely += ledger.freed_remotely_;
    failures += ledger.failures_;
    misaligned += ledger.misaligned_;
    wrong += ledger.wrong_;
  }
}

base::JsonLine& open_report(Recorder& recorder, const Team& team, const Totals& totals, const OtherThreads& others) {
  const auto rate = team.rate(totals.operations);
  auto& line = recorder.iteration(0)
                   .field("elapsed_s", team.elapsed_s())
                   .field("operations", totals.operations)
                   .field("ops_per_s", rate.per_s())
                   .field("thread_cpu_s", team.thread_cpu_s() + static_cast<double>(others.cpu_ns) * kSecondsPerNs);
  team.add_to(line, rate);
  const auto delay_s = team.run_delay_s();
  if (delay_s && others.run_delay_ns && others.handover_ns) {
    const double all_s = *delay_s + static_cast<double>(*others.run_delay_ns) * kSecondsPerNs;
    line.field("run_delay_s", std::max(0.0, all_s - static_cast<double>(*others.handover_ns) * kSecondsPerNs));
  }
  return line;
}

void write_report(Recorder& recorder, const Team& team) {
  recorder.write();
  team.record_slices(recorder);
}

bool close_report(Recorder& recorder, const Totals& totals, std::string_view broken) {
  if (totals.failures != 0) {
    broken = "malloc failed";
  } else if (totals.misaligned != 0) {
    broken = "a block was not aligned for its size";
  } else if (totals.wrong != 0) {
    broken = "a block had lost its tag when it was freed: it was handed out twice, or blocks overlap";
  } else if (broken.empty() && totals.allocated != totals.freed) {
    broken = "blocks were lost";
  }
  recorder.end(broken.empty(), broken, static_cast<std::int64_t>(totals.allocated - totals.freed));
  return broken.empty();
}

bool report(Recorder& recorder, const Team& team, const Totals& totals, std::initializer_list<OwnCount> own) {
  auto& line = open_report(recorder, team, totals);
  for (const auto& [name, value] : own) line.field(name, value);
  write_report(recorder, team);
  return close_report(recorder, totals);
}

}  // namespace loam::workloads::allocation
