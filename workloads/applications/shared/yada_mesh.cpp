#include "workloads/applications/shared/yada_mesh.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>
#include <vector>

namespace loam::workloads::yada {
namespace {

constexpr double kAngleTolerance = 1e-6;  // degrees: the other way of computing rounds differently
constexpr double kAreaTolerance = 1e-9;

std::vector<Element*> reachable_from(Element* root) {
  std::vector<Element*> elements;
  std::unordered_set<const Element*> seen;
  const auto reach = [&](Element* element) {
    if (seen.insert(element).second) elements.push_back(element);
  };
  if (root != nullptr) reach(root);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i]->neighbours->for_each(reach);
  return elements;
}

std::string_view broken_neighbours(const Element& element) {
  std::size_t count = 0;
  bool share = true, know = true;
  element.neighbours->for_each([&](const Element* neighbour) {
    ++count;
    share = share && common_edge(element, *neighbour) != Element::kNoEdge;
    bool knows = false;
    neighbour->neighbours->for_each([&](const Element* other) { knows = knows || other == &element; });
    know = know && knows;
  });
  if (!element.neighbours->verify().holds()) return "a list of neighbours is out of order";
  if (count != element.edges().size()) return "an element has a neighbour too many or too few";
  if (!share) return "E2: neighbours share an edge";
  if (!know) return "E2: each is in the other's list";
  return {};
}

}  // namespace

Mesh::~Mesh() {
  for (Element* const element : reachable_from(root_)) {
    element->neighbours->~Neighbours();
    std::free(element->neighbours);
    std::free(element);
  }
}

Mesh::Findings Mesh::verify(double angle, double area) const {
  Findings found{};
  const auto wrong = [&](std::string_view what) {
    if (found.broken.empty()) found.broken = what;
  };
  std::set<Point> points;
  std::int64_t segments = 0, triangles = 0;
  for (const Element* const element : reachable_from(root_)) {
    wrong(broken_neighbours(*element));
    found.area += element->area();
    if (element->garbage != 0) wrong("an element of the mesh is garbage");
    found.blocks += 2 + static_cast<std::int64_t>(element->neighbours->verify().elements);
    points.insert(element->corner, element->corner + element->corner_count);
    if (element->is_segment()) {
      ++segments;
      structures::PlainAccess access;
      if (boundary_.get(access, element->edge, nullptr) != element) wrong("a segment is not in the boundary");
    } else {
      ++triangles;
      if (element->least_angle() < angle - kAngleTolerance) wrong("a triangle has too small an angle");
    }
  }
  std::int64_t boundary = 0;
  boundary_.for_each_key([&](const Edge*) { ++boundary; });
  if (!boundary_.verify().holds()) wrong(boundary_.verify().broken);
  if (boundary != segments) wrong("the boundary has an edge that is no segment");
  // Each edge has two elements at it, of which the boundary's have one triangle and one segment.
  const std::int64_t edges = (3 * triangles + segments) / 2;
  if (static_cast<std::int64_t>(points.size()) - edges + triangles != 1)
    wrong("Euler: points - edges + triangles is not 1");
  if (!(std::abs(found.area - area) <= kAreaTolerance * area)) wrong("the triangles do not fill the area");
  found.elements = segments + triangles;
  found.blocks += boundary;
  return found;
}

}  // namespace loam::workloads::yada
