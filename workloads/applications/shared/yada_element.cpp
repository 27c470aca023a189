#include "workloads/applications/shared/yada_element.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace loam::workloads::yada {
namespace {

double squared_distance(const Point& a, const Point& b) noexcept {
  const double x = a.x - b.x, y = a.y - b.y;
  return x * x + y * y;
}

Point middle(const Point& a, const Point& b) noexcept { return {(a.x + b.x) / 2, (a.y + b.y) / 2}; }

Point circumcentre(const Point& a, const Point& b, const Point& c) noexcept {
  const double bx = b.x - a.x, by = b.y - a.y, cx = c.x - a.x, cy = c.y - a.y;
  const double b2 = bx * bx + by * by, c2 = cx * cx + cy * cy;
  const double twice_area = 2 * (bx * cy - cx * by);
  return {a.x - (by * c2 - cy * b2) / twice_area, a.y + (bx * c2 - cx * b2) / twice_area};
}

constexpr double kDegreesPerRadian = 180 / std::numbers::pi;

}  // namespace

Edge edge_between(const Point& a, const Point& b) noexcept { return a < b ? Edge{a, b} : Edge{b, a}; }

int ElementOrder::compare(const Element* a, const Element* b) noexcept {
  if (a == b) return 0;
  if (a->corner_count != b->corner_count) return a->corner_count < b->corner_count ? -1 : 1;
  for (std::uint32_t i = 0; i < a->corner_count; ++i) {
    if (a->corner[i] < b->corner[i]) return -1;
    if (b->corner[i] < a->corner[i]) return 1;
  }
  return 0;
}

AngleLimit AngleLimit::of_degrees(double degrees) noexcept {
  const double cosine = std::cos(degrees / kDegreesPerRadian);
  return {cosine * cosine};
}

Element::Element(Point a, Point b, Neighbours* list) noexcept : neighbours(list) {
  const Point corners[] = {a, b};
  put_corners(corners);
  centre = midpoint[0] = middle(a, b);
  radius_squared = squared_distance(centre, a);
  edge[0] = edge_between(a, b);
}

Element::Element(Point a, Point b, Point c, AngleLimit limit, Neighbours* list) noexcept : neighbours(list) {
  const Point corners[] = {a, b, c};
  put_corners(corners);
  centre = circumcentre(corner[0], corner[1], corner[2]);
  radius_squared = squared_distance(centre, corner[0]);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Point &from = corner[i], &to = corner[(i + 1) % 3], &other = corner[(i + 2) % 3];
    edge[i] = edge_between(from, to);
    midpoint[i] = middle(from, to);
    const double dot = (to.x - from.x) * (other.x - from.x) + (to.y - from.y) * (other.y - from.y);
    if (dot < 0) encroached = (i + 1) % 3;
    if (dot > 0 && dot * dot > limit.cosine_squared * squared_distance(from, to) * squared_distance(from, other))
      skinny = 1;
  }
}

void Element::put_corners(std::span<const Point> corners) noexcept {
  corner_count = static_cast<std::uint32_t>(corners.size());
  const auto least = std::min_element(corners.begin(), corners.end()) - corners.begin();
  for (std::uint32_t i = 0; i < corner_count; ++i)
    corner[i] = corners[(static_cast<std::size_t>(least) + i) % corner_count];
}

double Element::least_angle() const noexcept {
  double least = 180;
  for (std::uint32_t i = 0; i < corner_count; ++i) {
    const Point &at = corner[i], &a = corner[(i + 1) % 3], &b = corner[(i + 2) % 3];
    const double cross = (a.x - at.x) * (b.y - at.y) - (a.y - at.y) * (b.x - at.x);
    const double dot = (a.x - at.x) * (b.x - at.x) + (a.y - at.y) * (b.y - at.y);
    least = std::min(least, std::abs(std::atan2(cross, dot)) * kDegreesPerRadian);
  }
  return least;
}

double Element::area() const noexcept {
  if (is_segment()) return 0;
  return std::abs((corner[1].x - corner[0].x) * (corner[2].y - corner[0].y) -
                  (corner[2].x - corner[0].x) * (corner[1].y - corner[0].y)) /
         2;
}

bool circle_holds(const Element& element, const Point& point) noexcept {
  return squared_distance(element.centre, point) <= element.radius_squared;
}

bool lies_beyond(const Element& segment, const Element& triangle, const Point& point) noexcept {
  const auto& [from, to] = segment.edge[0];
  const Point* const apex =
      std::find_if(triangle.corner, triangle.corner + 3, [&](const Point& at) { return at != from && at != to; });
  return geometry::orientation(from, to, point) * geometry::orientation(from, to, *apex) < 0;
}

std::uint32_t common_edge(const Element& a, const Element& b) noexcept {
  for (std::uint32_t i = 0; i < a.edges().size(); ++i)
    for (const Edge& other : b.edges())
      if (a.edge[i] == other) return i;
  return Element::kNoEdge;
}

}  // namespace loam::workloads::yada
