#include "runtime/heap/page_map.hpp"

#include "runtime/platform/keep_errno.hpp"
#include "runtime/platform/pages.hpp"

#include <initializer_list>

namespace loam::heap {
namespace {

constexpr std::uintptr_t kAllUnits = std::uintptr_t{1} << (kAddressBits - kUnitShift);
constexpr std::uintptr_t kLowUnits = (std::uintptr_t{64} << 30) >> kUnitShift;
constexpr std::uintptr_t kLeastUnits = (std::uintptr_t{8} << 30) >> kUnitShift;

// Under a low limit a map of 8 MiB would take much of the addresses that the process may have.
bool is_tight() noexcept { return platform::address_space_limit() < std::size_t{1} << 30; }

}  // namespace

bool PageMap::open() noexcept {
  const platform::KeepErrno keep;
  for (const std::uintptr_t wanted : {kAllUnits, kLowUnits, kLeastUnits}) {
    if (wanted == kLowUnits && is_tight()) continue;
    void* const map = platform::map_lazy(wanted * sizeof(Word), {.huge_pages = false, .core_dump = false});
    if (map == nullptr) continue;
    words = static_cast<std::atomic<Word>*>(map);
    units = wanted;
    return true;
  }
  return false;
}

}  // namespace loam::heap
