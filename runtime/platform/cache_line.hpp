// The size of a cache line, the unit in which cores exchange memory.
#pragma once

#include <cstddef>

namespace loam::platform {

inline constexpr std::size_t kCacheLineBytes = 64;

// Distance that keeps two writers apart. Two lines, because the adjacent-line prefetcher of x86 moves lines in pairs.
inline constexpr std::size_t kApartBytes = 2 * kCacheLineBytes;

}  // namespace loam::platform
