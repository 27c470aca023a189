// Points of the plane, and the two questions on which a triangulation rests, answered exactly for whole coordinates.
#pragma once

#include <compare>
#include <cstdint>

namespace loam::workloads::geometry {

struct Point {
  double x, y;
  friend auto operator<=>(const Point&, const Point&) = default;
};

// Coordinates below are whole numbers of at most so many bits and a sign: products and sums of them are computed without
// rounding, where doubles do not tell.
inline constexpr int kWholeBits = 53;

// Positive if a, b, c turn left, negative if they turn right, 0 if they are in line.
int orientation(const Point& a, const Point& b, const Point& c) noexcept;

// Positive if d lies within the circle through a, b, c, which turn left; negative outside; 0 on it.
int in_circle(const Point& a, const Point& b, const Point& c, const Point& d) noexcept;

}  // namespace loam::workloads::geometry
