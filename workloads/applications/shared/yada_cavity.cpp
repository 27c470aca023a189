#include "workloads/applications/shared/yada_cavity.hpp"

#include "runtime/base/check.hpp"

#include <algorithm>

namespace loam::workloads::yada {

Element* EdgeMap::find_or_add(const Edge& edge, Element* element) {
  for (const auto& [known, owner] : pairs_)
    if (known == edge) return owner;
  pairs_.emplace_back(edge, element);
  return nullptr;
}

void Cavity::begin(Element* element) {
  point = element->is_encroached() ? element->midpoint[element->encroached] : element->centre;
  map.clear();
  before_.clear();
  border_.clear();
  queue_.assign(1, element);
  taken_ = 0;
}

Element* Cavity::next() {
  while (taken_ < queue_.size()) {
    Element* const element = queue_[taken_++];
    if (goes_away(element)) continue;
    before_.push_back(element);
    return element;
  }
  return nullptr;
}

bool Cavity::goes_away(const Element* element) const noexcept {
  return std::find(before_.begin(), before_.end(), element) != before_.end();
}

void Cavity::add_border(const Element* inside, Element* behind) {
  const std::uint32_t shared = common_edge(*inside, *behind);
  LOAM_CHECK(shared != Element::kNoEdge, "E2: neighbours share an edge");
  const Edge& edge = inside->edge[shared];
  if (map.find_or_add(edge, behind) == nullptr) border_.push_back(edge);
}

std::span<const Edge> Cavity::border() {
  std::sort(border_.begin(), border_.end());
  return border_;
}

}  // namespace loam::workloads::yada
