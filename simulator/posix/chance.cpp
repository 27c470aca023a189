#include "simulator/posix/chance.hpp"

#include "simulator/engine/random.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/scheduler.hpp"
#include "simulator/engine/start.hpp"
#include "simulator/hooks/exported.hpp"

#include <sys/random.h>

namespace loam::simulator {

void fill_with_chance(void* start, std::size_t bytes) noexcept {
  static std::uint64_t drawn = 0;
  auto* at = static_cast<unsigned char*>(start);
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(seeded("chance", drawn++));
}

}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED ssize_t getrandom(void* start, size_t bytes, unsigned flags) {
  if (now.thread == nullptr && !starting()) return LOAM_REAL(getrandom)(start, bytes, flags);
  fill_with_chance(start, bytes);
  return static_cast<ssize_t>(bytes);
}

LOAM_EXPORTED int getentropy(void* start, size_t bytes) {
  if (now.thread == nullptr && !starting()) return LOAM_REAL(getentropy)(start, bytes);
  fill_with_chance(start, bytes);
  return 0;
}
