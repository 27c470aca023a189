// The command line of a workload executable:
//   loam-workload-X --describe
//   loam-workload-X WORKLOAD [--threads N] [--seed S] [--cpus 0,1] [--warmup-ms 50] [--blame [--explain N]]
//                   [--records FD|PATH] [-p key=value]...
#pragma once

#include "runtime/platform/topology.hpp"
#include "workloads/harness/parameters.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/harness/workload.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads {

inline constexpr int kExitBadInput = 2, kExitNotVerified = 3;

struct Options {
  const Workload* workload = nullptr;  // null: --describe
  unsigned threads = 1;
  std::uint64_t seed = 1;
  std::uint64_t warmup_ms = 50;
  bool blame = false;
  unsigned explain = 0;  // every how many aborts of a thread one is recorded; 0: none
  int records = 1;       // descriptor
  std::string_view records_name = "standard output";
  ParameterValues parameters;  // the workload's and the synchronisation's

  // Thread i is placed on processor cpus()[i % cpus().size()].
  std::span<const unsigned> cpus() const noexcept { return {cpu_list.data(), cpu_count - cpus_reserved}; }
  // The synchronisation's own (SyncDescription::cpus_reserved): the last ones of --cpus.
  std::span<const unsigned> reserved_cpus() const noexcept {
    return {cpu_list.data() + cpu_count - cpus_reserved, cpus_reserved};
  }

  std::array<unsigned, platform::kCpusMax> cpu_list{};
  std::size_t cpu_count = 0, cpus_reserved = 0;
};

// Ends the program with exit status 2 and "error: subject=value: limit (hint)"; an empty value or hint is left out.
[[noreturn]] void reject(std::string_view subject, std::string_view value, std::string_view limit,
                         std::string_view hint = {}) noexcept;

// Reads the command line into `options`; rejects what is wrong. Opens the records' path.
void parse_options(std::span<char* const> arguments, const SyncDescription& sync, Options& options) noexcept;

}  // namespace loam::workloads
