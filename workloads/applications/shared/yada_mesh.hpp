// Mesh: elements that know their neighbours, and the edges of the boundary; and how a bad element is refined.
//   Source: Ruppert, Journal of Algorithms 1995, as STAMP has it (Cao Minh et al., IISWC 2008), by its description.
//   A refinement inserts a point: the centre of the bad element, or the middle of its edge if that is encroached. All
//   elements whose circle holds the point go away (the cavity), and new ones join the point with the cavity's border. If
//   the cavity would grow over a segment of the boundary, or the point lies behind one, that segment is split first.
//   Caveat: add_input(), verify() and the destructor touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/red_black_tree.hpp"
#include "workloads/applications/shared/delaunay.hpp"
#include "workloads/applications/shared/yada_cavity.hpp"
#include "workloads/applications/shared/yada_element.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads::yada {

struct EdgeOrder {
  LOAM_PURE_IN_TRANSACTIONS static bool equal(const Edge* a, const Edge* b) noexcept { return *a == *b; }
  LOAM_PURE_IN_TRANSACTIONS static bool less(const Edge* a, const Edge* b) noexcept { return *a < *b; }
};

class Mesh {
 public:
  explicit Mesh(AngleLimit limit) noexcept : limit_(limit) {}
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh();

  // Fills an empty mesh: an element per triangle and per edge of the hull, made by the access policy. map: empty, with the
  // function find_or_add of EdgeMap. visit(element) for each.
  template <class Access, class Map, class Visit>
  void add_input(Access& access, std::span<const Point> points, const geometry::Triangulation& input, Map& map,
                 Visit&& visit) {
    const auto add = [&](Element* element) {
      insert(access, element, map);
      visit(element);
    };
    for (const auto& [from, to] : input.hull) {
      Element* const segment = access.template create<Element>(points[from], points[to], make_list(access));
      boundary_.insert(access, segment->edge, segment);
      add(segment);
    }
    for (const auto& [a, b, c] : input.triangles)
      add(access.template create<Element>(points[a], points[b], points[c], limit_, make_list(access)));
  }

  // Refines a referenced element, if it is not garbage: the body of one transaction. New bad elements are referenced and
  // in cavity.bad(). returns how many elements more there are
  template <class Access>
  [[gnu::noinline]] std::int64_t refine(Access& access, Element* element, Cavity& cavity) {
    if (is_garbage(access, element)) return 0;
    std::int64_t added = 0;
    while (Element* const encroached = grow(access, element, cavity)) {
      access.write(encroached->referenced, 1);
      added += split(access, encroached, cavity);
      if (is_garbage(access, element)) return added;
    }
    return added + retriangulate(access, element, cavity);
  }

  template <class Access>
  static bool is_garbage(Access& access, const Element* element) {
    return access.read(element->garbage) != 0;
  }

  template <class Access>
  static void destroy(Access& access, Element* element) {
    Neighbours* const list = element->neighbours;
    list->destroy_nodes(access);
    access.release(list);
    access.destroy(element);
  }

  struct Findings {
    std::string_view broken;  // the first thing found wrong, empty if nothing is
    std::int64_t elements = 0, blocks = 0;
    double area = 0;
  };
  // Whether the mesh is one: elements that can be reached are each other's neighbours along edges, three of a triangle
  // and one of a segment; points, edges and triangles fit together by Euler's relation; the boundary is the segments; the
  // triangles add up to `area`. angle: if not 0, no triangle has a lesser one
  Findings verify(double angle, double area) const;

 private:
  template <class Access>
  static Neighbours* make_list(Access& access) {
    return ::new (access.allocate(sizeof(Neighbours))) Neighbours();
  }

  template <class Access, class Map>
  void insert(Access& access, Element* element, Map& map) {
    if (access.read(root_) == nullptr) access.write(root_, element);
    const std::uint32_t edges = element->is_segment() ? 1 : 3;
    for (std::uint32_t i = 0; i < edges; ++i) {
      Element* const other = map.find_or_add(element->edge[i], element);
      if (other == nullptr) continue;
      element->neighbours->insert_if_absent(access, other);
      other->neighbours->insert_if_absent(access, element);
    }
    // Only an edge of the boundary can be encroached. Nobody else can see the element yet.
    if (element->is_encroached() && !boundary_.contains(access, &element->edge[element->encroached]))
      element->encroached = Element::kNoEdge;
  }

  // An element that is not referenced is freed; one that is, by whoever holds it.
  template <class Access>
  void remove(Access& access, Element* element) {
    if (access.read(root_) == element) access.write(root_, nullptr);  // the next insertion is another root
    element->neighbours->visit(access, [&](Element* neighbour) {
      const bool known = neighbour->neighbours->remove(access, element);
      LOAM_ASSERT(known, "E2: each is in the other's list");
      return known;
    });
    access.write(element->garbage, 1);
    if (access.read(element->referenced) == 0) destroy(access, element);
  }

  // Plans the cavity of an element. returns a segment that it would grow over, which has to be split first; or null
  template <class Access>
  Element* grow(Access& access, Element* element, Cavity& cavity) {
    cavity.begin(element);
    const bool of_triangle = !element->is_segment();
    Element* encroached = nullptr;
    while (Element* const inside = cavity.next()) {
      inside->neighbours->visit(access, [&](Element* neighbour) {
        is_garbage(access, neighbour);  // which makes it part of what this transaction has read
        if (cavity.goes_away(neighbour)) return true;
        const bool segment = neighbour->is_segment();
        // Where others hold segments that are encroached and not split yet, a centre may lie outside, far behind one.
        const bool grows = circle_holds(*neighbour, cavity.point) ||
                           (segment && of_triangle && lies_beyond(*neighbour, *inside, cavity.point));
        if (!grows || (segment && !of_triangle)) {
          cavity.add_border(inside, neighbour);
        } else if (segment) {
          encroached = neighbour;
          return false;
        } else {
          cavity.enqueue(neighbour);
        }
        return true;
      });
      if (encroached != nullptr) return encroached;
    }
    return nullptr;
  }

  // Splits a segment that this transaction has referenced; it is free after that.
  template <class Access>
  std::int64_t split(Access& access, Element* segment, Cavity& cavity) {
    grow(access, segment, cavity);
    const std::int64_t added = retriangulate(access, segment, cavity);
    destroy(access, segment);
    return added;
  }

  template <class Access>
  std::int64_t retriangulate(Access& access, Element* element, Cavity& cavity) {
    const Point point = cavity.point;
    std::int64_t added = 0;
    for (Element* const gone : cavity.going()) {
      remove(access, gone);
      --added;
    }
    if (element->is_segment()) {
      const Edge whole = element->edge[0];
      boundary_.remove(access, element->edge);
      for (const Point& end : {whole.first, whole.second}) {
        Element* const half = access.template create<Element>(point, end, make_list(access));
        boundary_.insert(access, half->edge, half);
        insert(access, half, cavity.map);
        ++added;
      }
    }
    for (const Edge& edge : cavity.border()) {
      Element* const triangle =
          access.template create<Element>(point, edge.first, edge.second, limit_, make_list(access));
      insert(access, triangle, cavity.map);
      ++added;
      if (!triangle->is_bad()) continue;
      access.write(triangle->referenced, 1);
      cavity.add_bad(triangle);
    }
    return added;
  }

  const AngleLimit limit_;
  Element* root_ = nullptr;  // where verify() begins
  structures::RedBlackMap<const Edge*, Element*, EdgeOrder> boundary_;
};

}  // namespace loam::workloads::yada
