// Named sizes of the applications, and parameters that follow them.
//   sim     the inputs that the original suite gives to simulators
//   small   tens of milliseconds of sequential work: tests and quick studies
//   medium  0.3 to 3 s of sequential work
//   large   the original suite's inputs for real machines
#pragma once

#include "workloads/harness/options.hpp"
#include "workloads/harness/parameters.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace loam::workloads::applications {

inline constexpr std::array<std::string_view, 4> kSizeNames{"small", "sim", "medium", "large"};

// One value per named size, in the order of kSizeNames.
using BySize = std::array<std::int64_t, kSizeNames.size()>;

// A parameter that is as `size` says unless it is given: its default is 0.
constexpr ParameterSpec sized_parameter(std::string_view name, std::int64_t max, std::string_view unit,
                                        std::string_view help) {
  return ParameterSpec::integer(name, 0, 0, max, unit, help);
}

// The value given for such a parameter, or that of the size that was chosen.
std::uint64_t sized(const ParameterValues& parameters, std::string_view name, const BySize& by_size) noexcept;

// Rejects a size that needs more memory than the machine has. bytes: of the input and of all that is built from it
void reject_if_too_large(const ParameterValues& parameters, double bytes) noexcept;

}  // namespace loam::workloads::applications
