#include "workloads/applications/shared/delaunay.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace loam::workloads::geometry {
namespace {

// A directed edge is a number; its opposite is that number with the lowest bit changed.
using Edge = std::uint32_t;

constexpr Edge opposite(Edge edge) noexcept { return edge ^ 1; }

class Builder {
 public:
  explicit Builder(std::span<const Point> points) : points_(points), order_(points.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) { return points_[a] < points_[b]; });
    edges_.reserve(6 * points.size());
  }

  Triangulation build() {
    Triangulation result;
    if (points_.size() < 3) return result;
    const Edge outside = opposite(divide(0, order_.size()).left);
    std::vector<bool> seen(edges_.size());
    for (Edge edge = outside; !seen[edge]; edge = left_next(edge)) {
      seen[edge] = true;
      result.hull.push_back({edges_[opposite(edge)].origin, edges_[edge].origin});
    }
    result.triangles.reserve(2 * points_.size());
    for (Edge edge = 0; edge < edges_.size(); ++edge) {
      if (seen[edge] || edges_[edge].deleted) continue;
      const Edge second = left_next(edge), third = left_next(second);
      seen[edge] = seen[second] = seen[third] = true;
      result.triangles.push_back({edges_[edge].origin, edges_[second].origin, edges_[third].origin});
    }
    return result;
  }

 private:
  struct Directed {
    std::uint32_t origin;
    Edge next, previous;  // of those with the same origin, against the clock and with it
    bool deleted;
  };
  // Edges of the convex hull: from its leftmost point against the clock, from its rightmost with it.
  struct Ends {
    Edge left, right;
  };

  std::uint32_t origin(Edge edge) const noexcept { return edges_[edge].origin; }
  std::uint32_t destination(Edge edge) const noexcept { return edges_[opposite(edge)].origin; }
  Edge next(Edge edge) const noexcept { return edges_[edge].next; }
  Edge previous(Edge edge) const noexcept { return edges_[edge].previous; }
  // The next edge around the face on the left; the one before it around the face on the right.
  Edge left_next(Edge edge) const noexcept { return previous(opposite(edge)); }
  Edge right_previous(Edge edge) const noexcept { return next(opposite(edge)); }

  bool turns_left(std::uint32_t a, std::uint32_t b, std::uint32_t c) const noexcept {
    return orientation(points_[a], points_[b], points_[c]) > 0;
  }
  bool is_left_of(std::uint32_t point, Edge edge) const noexcept {
    return turns_left(point, origin(edge), destination(edge));
  }
  bool is_right_of(std::uint32_t point, Edge edge) const noexcept {
    return turns_left(point, destination(edge), origin(edge));
  }
  bool is_within(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t point) const noexcept {
    return in_circle(points_[a], points_[b], points_[c], points_[point]) > 0;
  }

  Edge make_edge(std::uint32_t from, std::uint32_t to) {
    const auto edge = static_cast<Edge>(edges_.size());
    edges_.push_back({from, edge, edge, false});
    edges_.push_back({to, opposite(edge), opposite(edge), false});
    return edge;
  }
  // Joins the rings of edges around the origins of a and b, or parts them.
  void splice(Edge a, Edge b) noexcept {
    const Edge after_a = next(a), after_b = next(b);
    edges_[a].next = after_b;
    edges_[b].next = after_a;
    edges_[after_b].previous = a;
    edges_[after_a].previous = b;
  }
  // A new edge from the destination of a to the origin of b, so that all three have the same face on their left.
  Edge connect(Edge a, Edge b) {
    const Edge edge = make_edge(destination(a), origin(b));
    splice(edge, left_next(a));
    splice(opposite(edge), b);
    return edge;
  }
  void remove(Edge edge) noexcept {
    splice(edge, previous(edge));
    splice(opposite(edge), previous(opposite(edge)));
    edges_[edge].deleted = edges_[opposite(edge)].deleted = true;
  }

  // The points [begin, end) in order, two or more.
  Ends divide(std::size_t begin, std::size_t end) {
    if (end - begin == 2) {
      const Edge edge = make_edge(order_[begin], order_[begin + 1]);
      return {edge, opposite(edge)};
    }
    if (end - begin == 3) return three(begin);
    const std::size_t middle = begin + (end - begin) / 2;
    const Ends left = divide(begin, middle);
    const Ends right = divide(middle, end);
    return merge(left, right);
  }

  Ends three(std::size_t begin) {
    const std::uint32_t p = order_[begin], q = order_[begin + 1], r = order_[begin + 2];
    const Edge first = make_edge(p, q), second = make_edge(q, r);
    splice(opposite(first), second);
    if (turns_left(p, q, r)) {
      connect(second, first);
      return {first, opposite(second)};
    }
    if (turns_left(p, r, q)) {
      const Edge third = connect(second, first);
      return {opposite(third), third};
    }
    return {first, opposite(second)};
  }

  Ends merge(Ends left, Ends right) {
    Edge left_inner = left.right, right_inner = right.left;
    for (;;) {  // down to the lower common tangent
      if (is_left_of(origin(right_inner), left_inner)) {
        left_inner = left_next(left_inner);
      } else if (is_right_of(origin(left_inner), right_inner)) {
        right_inner = right_previous(right_inner);
      } else {
        break;
      }
    }
    Edge base = connect(opposite(right_inner), left_inner);
    if (origin(left_inner) == origin(left.left)) left.left = opposite(base);
    if (origin(right_inner) == origin(right.right)) right.right = base;
    while (rise(base)) {
    }
    return {left.left, right.right};
  }

  // Moves the edge between the two halves up by one triangle. returns false if it has reached the top
  bool rise(Edge& base) {
    const auto is_above = [&](Edge edge) { return is_right_of(destination(edge), base); };
    Edge left = next(opposite(base));
    if (is_above(left))
      while (is_within(destination(base), origin(base), destination(left), destination(next(left)))) {
        const Edge after = next(left);
        remove(left);
        left = after;
      }
    Edge right = previous(base);
    if (is_above(right))
      while (is_within(destination(base), origin(base), destination(right), destination(previous(right)))) {
        const Edge after = previous(right);
        remove(right);
        right = after;
      }
    const bool left_is = is_above(left), right_is = is_above(right);
    if (!left_is && !right_is) return false;
    if (!left_is || (right_is && is_within(destination(left), origin(left), origin(right), destination(right)))) {
      base = connect(right, opposite(base));
    } else {
      base = connect(opposite(base), opposite(left));
    }
    return true;
  }

  const std::span<const Point> points_;
  std::vector<std::uint32_t> order_;
  std::vector<Directed> edges_;
};

}  // namespace

Triangulation triangulate(std::span<const Point> points) { return Builder(points).build(); }

}  // namespace loam::workloads::geometry
