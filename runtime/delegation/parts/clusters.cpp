#include "runtime/delegation/parts/clusters.hpp"

#include "runtime/platform/machine.hpp"
#include "runtime/platform/topology.hpp"

#include <algorithm>

namespace loam::delegation {
namespace {

// Where the calling thread ran first. Index: among the processors that the process may use.
struct Place {
  bool known;
  unsigned package, index;
};
thread_local constinit Place place{};

const Place& place_of_this_thread() noexcept {
  if (!place.known) [[unlikely]] {
    place = {true, 0, 0};
    const unsigned number = platform::cpu_number();
    unsigned index = 0;
    for (const auto& cpu : platform::topology().cpus()) {
      if (cpu.number == number) place = {true, cpu.package, index};
      ++index;
    }
  }
  return place;
}

}  // namespace

Clusters::Clusters(unsigned wanted) noexcept : count_(wanted), by_package_(wanted == 0) {
  if (by_package_)
    for (const auto& cpu : platform::topology().cpus()) count_ = std::max(count_, cpu.package + 1);
  count_ = std::clamp(count_, 1U, kMax);
}

unsigned Clusters::of_this_thread() const noexcept {
  if (count_ == 1) return 0;
  const Place& here = place_of_this_thread();
  return (by_package_ ? here.package : here.index) % count_;
}

}  // namespace loam::delegation
