// The points of yada's meshes.
//   Source: the uniformly random sets that come with the STAMP applications; the first points of a larger set are the
//   smaller set.
#pragma once

#include "workloads/applications/shared/geometry.hpp"

#include <cstdint>
#include <vector>

namespace loam::workloads::yada {

// Whole coordinates of 53 bits and a sign.
std::vector<geometry::Point> make_points(std::uint64_t count);

}  // namespace loam::workloads::yada
