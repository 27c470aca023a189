// EdgeTable: which element has an edge, for the building of a whole mesh: open addressing, one block of memory.
#pragma once

#include "workloads/applications/shared/yada_element.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace loam::workloads::yada {

class EdgeTable {
 public:
  // edges: at most so many different ones
  explicit EdgeTable(std::size_t edges) : slots_(std::bit_ceil(2 * edges + 1)) {}

  // The element that was given with this edge before; null, and `element` is kept, if there was none. edge: one of the
  // element's, which outlives the table
  Element* find_or_add(const Edge& edge, Element* element) {
    for (std::size_t at = hash(edge);; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.edge == nullptr) {
        slot = {&edge, element};
        return nullptr;
      }
      if (*slot.edge == edge) return slot.element;
    }
  }

 private:
  struct Slot {
    const Edge* edge = nullptr;
    Element* element = nullptr;
  };

  static std::size_t hash(const Edge& edge) noexcept {
    std::uint64_t mixed = 0;
    for (const double value : {edge.first.x, edge.first.y, edge.second.x, edge.second.y})
      mixed = (std::rotl(mixed, 21) ^ std::bit_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    return mixed >> 20;
  }

  std::vector<Slot> slots_;
};

}  // namespace loam::workloads::yada
