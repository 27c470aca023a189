// Predicates are exact where doubles are not; triangulations are Delaunay and have the published sizes.
#include "workloads/applications/shared/delaunay.hpp"
#include "workloads/applications/shared/yada_input.hpp"

#include <gtest/gtest.h>
#include <map>

namespace loam::workloads::geometry {
namespace {

constexpr double kBig = 9007199254740992;  // 2^53

TEST(Geometry, OrientationSeesTheLastBit) {
  EXPECT_EQ(orientation({0, 0}, {1, 0}, {0, 1}), 1);
  EXPECT_EQ(orientation({0, 0}, {0, 1}, {1, 0}), -1);
  EXPECT_EQ(orientation({0, 0}, {3, 3}, {7, 7}), 0);
  const Point a{-kBig, -kBig}, b{kBig, kBig - 1};
  EXPECT_EQ(orientation(a, {0, -1}, b), -orientation(a, b, {0, -1}));
  // (0, 0) lies half a unit above the line from a to b.
  EXPECT_EQ(orientation(a, b, {0, 0}), 1);
  EXPECT_EQ(orientation(a, b, {0, -1}), -1);
  EXPECT_EQ(orientation({-kBig, -kBig}, {kBig, kBig}, {kBig - 1, kBig - 1}), 0);
}

TEST(Geometry, InCircleSeesTheLastBit) {
  const double r = kBig / 2;
  const Point a{-r, 0}, b{0, -r}, c{r, 0};
  EXPECT_EQ(in_circle(a, b, c, {0, r}), 0);
  EXPECT_EQ(in_circle(a, b, c, {0, r - 1}), 1);
  EXPECT_EQ(in_circle(a, b, c, {0, r + 1}), -1);
  EXPECT_EQ(in_circle(a, b, c, {1, r}), -1);
  // 3-4-5: a point of the circle with all its bits.
  const double unit = 1801439850948198;  // r is a multiple of 5 times this, plus 1
  const Point d{-5 * unit, 0}, e{0, -5 * unit}, f{5 * unit, 0};
  EXPECT_EQ(in_circle(d, e, f, {3 * unit, 4 * unit}), 0);
  EXPECT_EQ(in_circle(d, e, f, {3 * unit, 4 * unit - 1}), 1);
  EXPECT_EQ(in_circle(d, e, f, {3 * unit + 1, 4 * unit}), -1);
}

// Each edge has a triangle on its left and, unless it is of the hull, one on its right; no triangle's circle holds a point.
void expect_delaunay(const std::vector<Point>& points, const Triangulation& found) {
  std::map<std::array<std::uint32_t, 2>, int> sides;
  for (const auto& t : found.triangles) {
    EXPECT_EQ(orientation(points[t[0]], points[t[1]], points[t[2]]), 1);
    for (unsigned i = 0; i < 3; ++i) ++sides[{t[i], t[(i + 1) % 3]}];
    for (const Point& point : points) EXPECT_LE(in_circle(points[t[0]], points[t[1]], points[t[2]], point), 0);
  }
  std::size_t hull = 0;
  for (const auto& [edge, count] : sides) {
    EXPECT_EQ(count, 1);
    if (!sides.contains({edge[1], edge[0]})) ++hull;
  }
  EXPECT_EQ(hull, found.hull.size());
  for (const auto& [from, to] : found.hull) {
    EXPECT_TRUE(sides.contains({from, to}) || sides.contains({to, from}));
    for (const Point& point : points) EXPECT_GE(orientation(points[from], points[to], point), 0);
  }
  EXPECT_EQ(found.triangles.size() + found.hull.size(), 2 * points.size() - 2);
}

TEST(Delaunay, RandomPoints) {
  const auto points = yada::make_points(700);
  expect_delaunay(points, triangulate(points));
}

// All points of a grid: every square's four corners lie on a circle, and many are in line.
TEST(Delaunay, Grid) {
  std::vector<Point> points;
  for (int x = 0; x < 9; ++x)
    for (int y = 0; y < 7; ++y) points.push_back({static_cast<double>(x), static_cast<double>(y)});
  const Triangulation found = triangulate(points);
  EXPECT_EQ(found.triangles.size(), 2u * 8 * 6);
  EXPECT_EQ(found.hull.size(), 2u * (8 + 6));
  expect_delaunay(points, found);
}

TEST(Delaunay, TooFewPointsHaveNoTriangle) {
  EXPECT_TRUE(triangulate(std::vector<Point>{{0, 0}, {1, 1}}).triangles.empty());
  EXPECT_TRUE(triangulate(std::vector<Point>{{0, 0}, {1, 1}, {2, 2}}).triangles.empty());
}

TEST(Delaunay, PublishedMeshHasItsSize) {
  const auto points = yada::make_points(100'000);
  const Triangulation found = triangulate(points);
  EXPECT_EQ(found.triangles.size() + found.hull.size(), 199'998u);
  // A prefix of the points is the smaller set.
  const auto fewer = yada::make_points(10);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), points.begin()));
}

}  // namespace
}  // namespace loam::workloads::geometry
