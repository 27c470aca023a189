// availability: whether hardware transactions can be used here, and if not, why.
#pragma once

#include <string_view>

namespace loam::tm::hardware {

// Empty if they work; otherwise the reason in words. The variable LOAM_HTM=off switches them off. The first call tries
// some transactions, because some firmware and hypervisors announce them and then abort all of them.
std::string_view reason_against() noexcept;

inline bool available() noexcept { return reason_against().empty(); }

}  // namespace loam::tm::hardware
