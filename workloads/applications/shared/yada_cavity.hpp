// Cavity: what one thread keeps of a refinement while it plans it: the elements that go away, the edges around them, the
// elements behind these edges. Private to the thread; each attempt of a transaction begins with begin().
#pragma once

#include "structures/plain_access.hpp"
#include "workloads/applications/shared/yada_element.hpp"

#include <span>
#include <utility>
#include <vector>

namespace loam::workloads::yada {

// Which element has an edge, of the edges seen so far.
class EdgeMap {
 public:
  LOAM_PURE_IN_TRANSACTIONS void clear() noexcept { pairs_.clear(); }
  // The element that was given with this edge before; null, and `element` is kept, if there was none.
  LOAM_PURE_IN_TRANSACTIONS Element* find_or_add(const Edge& edge, Element* element);

 private:
  std::vector<std::pair<Edge, Element*>> pairs_;  // a cavity has some twenty: a search of all is the fastest
};

class Cavity {
 public:
  // Begins with the element to be refined: `point` is the one that will be inserted.
  LOAM_PURE_IN_TRANSACTIONS void begin(Element* element);
  // The next element to look at, which then is one that goes away; null: none.
  LOAM_PURE_IN_TRANSACTIONS Element* next();
  LOAM_PURE_IN_TRANSACTIONS bool goes_away(const Element* element) const noexcept;
  LOAM_PURE_IN_TRANSACTIONS void enqueue(Element* element) { queue_.push_back(element); }
  // The element behind stays: its edge with `inside` is a part of the border.
  LOAM_PURE_IN_TRANSACTIONS void add_border(const Element* inside, Element* behind);
  // The edges of the border in order.
  LOAM_PURE_IN_TRANSACTIONS std::span<const Edge> border();
  LOAM_PURE_IN_TRANSACTIONS std::span<Element* const> going() const noexcept { return before_; }

  // New bad elements of the whole transaction.
  LOAM_PURE_IN_TRANSACTIONS void clear_bad() noexcept { bad_.clear(); }
  LOAM_PURE_IN_TRANSACTIONS void add_bad(Element* element) { bad_.push_back(element); }
  LOAM_PURE_IN_TRANSACTIONS std::span<Element* const> bad() const noexcept { return bad_; }

  Point point;
  EdgeMap map;

 private:
  std::vector<Element*> queue_, before_, bad_;
  std::vector<Edge> border_;
  std::size_t taken_ = 0;
};

}  // namespace loam::workloads::yada
