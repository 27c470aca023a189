// Random bytes of the simulated machine's kernel: a stream that depends only on the seed.
#pragma once

#include <cstddef>

namespace loam::simulator {

void fill_with_chance(void* start, std::size_t bytes) noexcept;

}  // namespace loam::simulator
