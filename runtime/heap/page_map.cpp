#include "runtime/heap/page_map.hpp"

#include "runtime/platform/keep_errno.hpp"

namespace loam::heap {
namespace {

constexpr std::uintptr_t kAllUnits = std::uintptr_t{1} << (kAddressBits - kUnitShift);
constexpr std::uintptr_t kLowUnits = (std::uintptr_t{64} << 30) >> kUnitShift;

}  // namespace

bool PageMap::open() noexcept {
  const platform::KeepErrno keep;
  for (const std::uintptr_t wanted : {kAllUnits, kLowUnits}) {
    void* const map = platform::map_lazy(wanted * sizeof(Word), {.huge_pages = false, .core_dump = false});
    if (map == nullptr) continue;
    words = static_cast<std::atomic<Word>*>(map);
    units = wanted;
    return true;
  }
  return false;
}

}  // namespace loam::heap
