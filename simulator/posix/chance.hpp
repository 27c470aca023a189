// Random bytes as the simulated machine's kernel gives them: a stream that depends on the seed alone.
#pragma once

#include <cstddef>

namespace loam::simulator {

void fill_with_chance(void* start, std::size_t bytes) noexcept;

}  // namespace loam::simulator
