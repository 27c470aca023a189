// availability: whether hardware transactions can be used here, and if not, why.
#pragma once

#include <string_view>

namespace loam::tm::hardware {

// Empty if they work; otherwise the reason in words. The variable LOAM_HTM=off switches them off. Tries transactions
// the first time that it is asked: firmware and hypervisors list them and abort them all.
std::string_view reason_against() noexcept;

inline bool available() noexcept { return reason_against().empty(); }

}  // namespace loam::tm::hardware
