// Element: a triangle of yada's mesh, or a segment of its boundary, which is an element with two corners.
//   Its geometry never changes once it is made, and is read plainly. `garbage`, `referenced` and the list of neighbours
//   are what transactions change.
//   E1 the first corner is the least one.   E2 neighbours share an edge, and each is in the other's list.
//   E3 an element is freed when it is garbage and not referenced: a referenced one is in the work heap or in the hands of
//   one thread, which will free it.
#pragma once

#include "structures/list.hpp"
#include "structures/plain_access.hpp"
#include "workloads/applications/shared/geometry.hpp"

#include <cstdint>
#include <span>

namespace loam::workloads::yada {

using geometry::Point;

struct Edge {
  Point first, second;  // first is the lesser one
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

Edge edge_between(const Point& a, const Point& b) noexcept;

struct Element;

// By number of corners, then by corners. Reads only what does not change.
struct ElementOrder {
  LOAM_PURE_IN_TRANSACTIONS static int compare(const Element* a, const Element* b) noexcept;
};
using Neighbours = structures::List<Element*, ElementOrder>;

// When an element is too sharp: the square of the cosine of the least angle that is allowed.
struct AngleLimit {
  double cosine_squared;

  static AngleLimit of_degrees(double degrees) noexcept;
};

struct Element {
  static constexpr std::uint32_t kNoEdge = 3;

  Element(Point a, Point b, Neighbours* neighbours) noexcept;
  Element(Point a, Point b, Point c, AngleLimit limit, Neighbours* neighbours) noexcept;

  bool is_segment() const noexcept { return corner_count == 2; }
  std::span<const Edge> edges() const noexcept { return {edge, is_segment() ? 1u : 3u}; }
  bool is_encroached() const noexcept { return encroached != kNoEdge; }
  bool is_bad() const noexcept { return is_encroached() || skinny != 0; }
  // The least angle in degrees, by another way of computing it than the constructor's.
  double least_angle() const noexcept;
  double area() const noexcept;  // 0 of a segment

  Point corner[3];
  std::uint32_t corner_count;
  std::uint32_t encroached = kNoEdge;  // the number of an edge opposite to an angle of more than 90 degrees
  Point centre;                        // of the circle through all corners
  double radius_squared;
  Edge edge[3];
  Point midpoint[3];  // of the edges
  std::uint32_t skinny = 0;
  std::uint32_t garbage = 0, referenced = 0;  // 4 bytes each: they share a word with their neighbour
  Neighbours* const neighbours;

 private:
  void put_corners(std::span<const Point> corners) noexcept;
};

// Whether the circle through the element's corners holds the point.
LOAM_PURE_IN_TRANSACTIONS bool circle_holds(const Element& element, const Point& point) noexcept;

// Whether a point lies on the other side of a segment than a triangle that it is an edge of: outside of the boundary.
LOAM_PURE_IN_TRANSACTIONS bool lies_beyond(const Element& segment, const Element& triangle,
                                           const Point& point) noexcept;

// The number of the edge that the first shares with the second; Element::kNoEdge if there is none.
LOAM_PURE_IN_TRANSACTIONS std::uint32_t common_edge(const Element& a, const Element& b) noexcept;

// Encroached ones stand above others in the work heap.
struct WorkOrder {
  LOAM_PURE_IN_TRANSACTIONS static bool before(const Element* a, const Element* b) noexcept {
    return a->is_encroached() && !b->is_encroached();
  }
};

}  // namespace loam::workloads::yada
