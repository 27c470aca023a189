// What an executable of the transactional memory can be told beside the workload's parameters: how addresses map to
// ownership records, the contention manager, privatization (runtime/tm/types.hpp).
#pragma once

#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/runtime.hpp"
#include "runtime/tm/types.hpp"
#include "workloads/harness/parameters.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace loam::workloads {

inline constexpr std::string_view kPrivatizations[] = {"commit", "none", "shared"};
inline constexpr std::string_view kTunings[] = {"fixed", "adaptive"};

// The first ones, which mean something only where an algorithm has records.
inline constexpr std::size_t kTmParametersOfRecords = 4;

// mappings: those that apply, the default first; a constant array
constexpr std::array<ParameterSpec, 7> tm_parameters(std::span<const std::string_view> mappings) {
  return {
      ParameterSpec::choice("mapping", mappings,
                            "table: 2^records_log2 ownership records that stripes share; hash: the same, but stripes "
                            "a power of two apart do not; shadow: a record for each 16 bytes of the address space "
                            "(shift and records_log2 do not apply)"),
      ParameterSpec::integer("shift", tm::Config{}.shift, tm::kShiftMin, tm::kShiftMax, "",
                             "table and hash: log2 of the bytes in a stripe"),
      ParameterSpec::integer("records_log2", tm::Config{}.records_log2, tm::kRecordsLog2Min, tm::kRecordsLog2Max, "",
                             "table and hash: log2 of the number of records")
          .called("2{^} records"),
      ParameterSpec::choice("tuning", kTunings,
                            "adaptive: shift and records_log2 are where it begins; a thread of the runtime's own "
                            "tries others while transactions run, and stays with the best (table and hash)"),
      ParameterSpec::choice("manager", tm::contention::kManagerNames,
                            "who gives way where two meet, and what the loser does before it tries again"),
      ParameterSpec::choice(
          "privatization", kPrivatizations,
          "commit, shared: what a transaction unlinks may be used plainly after it; under algorithms that are not safe "
          "by themselves each commit waits: by itself, or with others"),
      ParameterSpec::integer("serialise_after", tm::Config{}.serialise_after, 0, 1'000'000, "",
                             "aborts in a row after which a transaction runs alone, those behind an owner that stands "
                             "still not counted; 0: never"),
  };
}

}  // namespace loam::workloads
