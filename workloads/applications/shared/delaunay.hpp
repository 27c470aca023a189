// The Delaunay triangulation of points: no point lies within the circle through a triangle's corners.
//   Source: divide and conquer, Guibas and Stolfi, ACM Transactions on Graphics 1985.   Cost: O(n log n).
#pragma once

#include "workloads/applications/shared/geometry.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace loam::workloads::geometry {

struct Triangulation {
  std::vector<std::array<std::uint32_t, 3>> triangles;  // indices of corners, which turn left
  std::vector<std::array<std::uint32_t, 2>> hull;       // edges of the convex hull, each point once as first
};

// points: distinct; coordinates as orientation() wants them. The same points in the same order give the same triangles in
// the same order.
Triangulation triangulate(std::span<const Point> points);

}  // namespace loam::workloads::geometry
