#include "workloads/applications/shared/sizes.hpp"

#include "runtime/base/format.hpp"

#include <unistd.h>
#include <algorithm>

namespace loam::workloads::applications {

std::uint64_t sized(const ParameterValues& parameters, std::string_view name, const BySize& by_size) noexcept {
  const std::int64_t given = parameters.integer(name);
  if (given != 0) return static_cast<std::uint64_t>(given);
  const auto size = std::ranges::find(kSizeNames, parameters.choice("size")) - kSizeNames.begin();
  return static_cast<std::uint64_t>(by_size[static_cast<std::size_t>(size)]);
}

void reject_if_too_large(const ParameterValues& parameters, double bytes) noexcept {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes <= machine) return;
  char limit[160];
  reject("-p size", parameters.choice("size"),
         base::format_to(limit, "with these parameters it needs about {} MiB of memory, and this machine has {} MiB",
                         static_cast<std::uint64_t>(bytes / kMiB), static_cast<std::uint64_t>(machine / kMiB)),
         "take a smaller size, or lower the parameters that were given");
}

}  // namespace loam::workloads::applications
