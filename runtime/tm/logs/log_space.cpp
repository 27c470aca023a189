#include "runtime/tm/logs/log_space.hpp"

#include "runtime/platform/pages.hpp"

#include <utility>

namespace loam::tm {
namespace {

// Sparse, and of no use in a core dump.
constexpr platform::MapOptions kOptions{.huge_pages = false, .core_dump = false};

[[gnu::tls_model("initial-exec")]] thread_local constinit LogSpace* current = nullptr;

}  // namespace

LogSpace::LogSpace(std::size_t bytes) noexcept
    : start_(static_cast<std::byte*>(platform::map_lazy(bytes, kOptions))), bytes_(start_ != nullptr ? bytes : 0) {
  current = this;
}

LogSpace::~LogSpace() { current = nullptr; }

void* LogSpace::map(std::size_t bytes) noexcept {
  const std::size_t rounded = (bytes + platform::kPageBytes - 1) & ~(platform::kPageBytes - 1);
  LogSpace* const space = current;
  if (space == nullptr || rounded > space->bytes_ - space->used_) return platform::map_lazy(bytes, kOptions);
  return space->start_ + std::exchange(space->used_, space->used_ + rounded);
}

}  // namespace loam::tm
