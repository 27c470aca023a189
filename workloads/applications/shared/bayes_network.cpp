#include "workloads/applications/shared/bayes_network.hpp"

#include <algorithm>
#include <cstdlib>

namespace loam::workloads::bayes {

void Parents::add(unsigned id) noexcept {
  const auto end = ids.begin() + count++;
  const auto place = std::lower_bound(ids.begin(), end, id);
  std::move_backward(place, end, end + 1);
  *place = id;
}

void Parents::remove(unsigned id) noexcept {
  const auto end = ids.begin() + count;
  count = static_cast<unsigned>(std::remove(ids.begin(), end, id) - ids.begin());
}

Network::~Network() {
  for (unsigned i = 0; i < variables_; ++i) nodes_[i].~Node();
  std::free(nodes_);
}

Network::Findings Network::verify() const {
  Findings found{};
  structures::PlainAccess access;
  std::int64_t up = 0, down = 0;
  for (unsigned id = 0; id < variables_; ++id) {
    const Node& node = nodes_[id];
    bool mirrored = node.parents.verify().holds() && node.children.verify().holds();
    node.parents.for_each([&](std::int64_t parent) {
      ++up;
      mirrored = mirrored && nodes_[parent].children.find(access, std::int64_t{id}) != nullptr;
    });
    bool circle = false;
    node.children.for_each([&](std::int64_t child) {
      ++down;
      circle = circle || leads(access, static_cast<unsigned>(child), id);
    });
    if (circle) found.broken = "N1: no way leads from a variable back to it";
    if (!mirrored) found.broken = "N2: lists of parents and of children say the same";
  }
  if (up != down) found.broken = "N2: lists of parents and of children say the same";
  found.edges = up;
  return found;
}

}  // namespace loam::workloads::bayes
