// yada's mesh: it has the published number of bad elements; refined alone and in transactions it stays a mesh without
// small angles and leaks nothing; the check finds what is wrong.
#include "structures/binary_heap.hpp"
#include "tests/unit/workloads/application_threads.hpp"
#include "workloads/applications/shared/yada_edge_table.hpp"
#include "workloads/applications/shared/yada_input.hpp"
#include "workloads/applications/shared/yada_mesh.hpp"

#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace loam::workloads::yada {
namespace {

constexpr double kAngle = 20;

struct Case {
  explicit Case(std::uint64_t count) {
    const auto points = make_points(count);
    const auto input = geometry::triangulate(points);
    EdgeTable edges(4 * points.size());
    mesh.add_input(setup, points, input, edges, [&](Element* element) {
      elements.push_back(element);
      area += element->area();
      if (element->is_bad()) bad.push_back(element);
    });
  }

  structures::PlainAccess setup;
  Mesh mesh{AngleLimit::of_degrees(kAngle)};
  std::vector<Element*> elements, bad;
  double area = 0;
};

TEST(Yada, PublishedMeshHasItsBadElements) {
  const Case made(100'000);
  EXPECT_EQ(made.elements.size(), 199'998u);
  EXPECT_EQ(made.bad.size(), 46'757u);
}

TEST(Yada, ElementOfThreeCorners) {
  Neighbours none;
  const AngleLimit limit = AngleLimit::of_degrees(30);
  const Element right({4, 0}, {0, 0}, {0, 3}, limit, &none);
  EXPECT_EQ(right.corner[0], (Point{0, 0}));  // E1
  EXPECT_EQ(right.corner[1], (Point{0, 3}));
  EXPECT_EQ(right.centre, (Point{2, 1.5}));
  EXPECT_EQ(right.radius_squared, 6.25);
  EXPECT_EQ(right.area(), 6);
  EXPECT_FALSE(right.is_bad());  // 36.9 degrees
  EXPECT_NEAR(right.least_angle(), 36.87, 0.01);
  const Element sharp({0, 0}, {10, 0}, {10, 5}, limit, &none);  // 26.6 degrees
  EXPECT_TRUE(sharp.is_bad());
  EXPECT_FALSE(sharp.is_encroached());
  const Element flat({0, 0}, {4, 0}, {2, 1.5}, limit, &none);  // 106 degrees at its last corner
  ASSERT_TRUE(flat.is_encroached());
  EXPECT_EQ(flat.edge[flat.encroached], edge_between({4, 0}, {0, 0}));
  EXPECT_EQ(flat.midpoint[flat.encroached], (Point{2, 0}));
  EXPECT_EQ(common_edge(flat, right), flat.encroached);
  EXPECT_EQ(common_edge(sharp, right), std::uint32_t{Element::kNoEdge});
}

TEST(Yada, ElementsHaveAnOrder) {
  Neighbours none;
  const AngleLimit limit = AngleLimit::of_degrees(kAngle);
  const Element segment({9, 9}, {8, 8}, &none), first({0, 0}, {1, 0}, {0, 1}, limit, &none),
      second({0, 0}, {1, 0}, {0, 2}, limit, &none);
  EXPECT_LT(ElementOrder::compare(&segment, &first), 0);
  EXPECT_GT(ElementOrder::compare(&first, &segment), 0);
  EXPECT_EQ(ElementOrder::compare(&first, &first), 0);
  EXPECT_NE(ElementOrder::compare(&first, &second), 0);
  EXPECT_EQ(ElementOrder::compare(&first, &second), -ElementOrder::compare(&second, &first));
}

using Heap = structures::BinaryHeap<Element*, WorkOrder>;

// The application's loop, over a runner.
template <class Runner>
std::int64_t refine_all(Case& made, unsigned threads) {
  Heap heap(made.setup, 1);
  for (Element* const element : made.bad) {
    element->referenced = 1;
    heap.insert(made.setup, element);
  }
  std::vector<std::int64_t> added(threads);
  struct Refining {
    Case& made;
    Heap& heap;
    std::vector<std::int64_t>& added;

    void work(TestWorker<Runner>& worker) {
      Cavity cavity;
      for (;;) {
        Element* const element = Runner::update([&](auto& access) {
          Element* next = nullptr;
          heap.remove(access, next);
          return next;
        });
        if (element == nullptr) return;
        added[worker.index()] += Runner::update([&](auto& access) {
          cavity.clear_bad();
          return made.mesh.refine(access, element, cavity);
        });
        Runner::update([&](auto& access) {
          access.write(element->referenced, 0);
          if (Mesh::is_garbage(access, element)) Mesh::destroy(access, element);
          for (Element* const bad : cavity.bad())
            Mesh::is_garbage(access, bad) ? Mesh::destroy(access, bad) : heap.insert(access, bad);
          return true;
        });
        cavity.clear_bad();  // not before: a transaction that runs again needs the list
      }
    }
  } refining{made, heap, added};
  run_threads<Runner>(refining, threads);
  EXPECT_EQ(heap.verify().elements, 0u);
  std::int64_t sum = 0;
  for (const auto one : added) sum += one;
  return sum;
}

template <class Runner>
void expect_refined(unsigned threads) {
  const std::int64_t before = structures::PlainAccess::live_blocks() + Runner::live_blocks();
  Case made(1500);
  const std::int64_t added = refine_all<Runner>(made, threads);
  const auto found = made.mesh.verify(kAngle, made.area);
  EXPECT_EQ(found.broken, "");
  EXPECT_EQ(found.elements, static_cast<std::int64_t>(made.elements.size()) + added);
  EXPECT_GT(added, 1000);
  const std::int64_t after = structures::PlainAccess::live_blocks() + Runner::live_blocks();
  if constexpr (!std::is_same_v<Runner, structures::Transaction>)
    EXPECT_EQ((after - before) / 2, found.blocks + 1);  // both runners count the same
  else
    EXPECT_EQ(after - before, found.blocks + 1);  // the heap's array
}

TEST(Yada, RefinedAlone) { expect_refined<structures::Alone>(1); }
TEST(Yada, RefinedUnderALock) { expect_refined<structures::Locked>(3); }
TEST(Yada, RefinedInTransactions) {
  expect_refined<structures::Transaction>(1);
  expect_refined<structures::Transaction>(3);
}

TEST(Yada, VerifyFindsWhatIsWrong) {
  Case made(200);
  const auto broken = [&](double angle, double area) { return made.mesh.verify(angle, area).broken; };
  ASSERT_EQ(broken(0, made.area), "");
  EXPECT_EQ(broken(kAngle, made.area), "a triangle has too small an angle");
  EXPECT_EQ(broken(0, made.area * 1.001), "the triangles do not fill the area");
  Element* const element = made.elements.back();
  element->garbage = 1;
  EXPECT_EQ(broken(0, made.area), "an element of the mesh is garbage");
  element->garbage = 0;

  Element *const neighbour = *element->neighbours->first(made.setup), *const far = made.elements[100];
  element->neighbours->remove(made.setup, neighbour);
  EXPECT_NE(broken(0, made.area), "");
  element->neighbours->insert_if_absent(made.setup, far);
  EXPECT_EQ(broken(0, made.area).substr(0, 2), "E2");
  element->neighbours->remove(made.setup, far);
  element->neighbours->insert_if_absent(made.setup, neighbour);
  ASSERT_EQ(broken(0, made.area), "");

  Element* const segment = made.elements.front();
  const Point right = std::exchange(segment->corner[1], Point{1, 2});  // a point of its own
  EXPECT_EQ(broken(0, made.area), "Euler: points - edges + triangles is not 1");
  segment->corner[1] = right;
  EXPECT_EQ(broken(0, made.area), "");
}

}  // namespace
}  // namespace loam::workloads::yada
