#include "workloads/applications/shared/labyrinth_router.hpp"

#include <atomic>

namespace loam::workloads::labyrinth {
namespace {

constexpr Cell kCost[] = {1, 1, 2, 1, 1, 2};  // of a step in each direction
constexpr Cell kBendCost = 1;
constexpr unsigned kNoDirection = 6;

}  // namespace

Router::Router(Size size)
    : size_(size),
      step_{1,
            size.x + 2,
            std::ptrdiff_t{size.x + 2} * (size.y + 2),
            -1,
            -std::ptrdiff_t{size.x + 2},
            -std::ptrdiff_t{size.x + 2} * (size.y + 2)},
      copy_(std::size_t{size.x + 2} * (size.y + 2) * (size.z + 2), kFull) {
  front_.reserve(size.cells());
  path_.reserve(size.cells());
}

void Router::copy(const Cell* grid) noexcept {
  for (std::uint32_t z = 0; z < size_.z; ++z)
    for (std::uint32_t y = 0; y < size_.y; ++y) {
      const Cell* const from = grid + size_.index({0, y, z});
      Cell* const to = copy_.data() + place({0, y, z});
      // relaxed: a cell that has become full since is found by the transaction, which reads all cells of its path.
      for (std::uint32_t x = 0; x < size_.x; ++x)
        to[x] = std::atomic_ref(const_cast<Cell&>(from[x])).load(std::memory_order_relaxed);
    }
}

bool Router::route(const Pair& pair) {
  const std::size_t to = place(pair.to);
  copy_[to] = kEmpty;
  return expand(place(pair.from), to) && trace_back(to);
}

bool Router::expand(std::size_t from, std::size_t to) {
  front_.clear();
  copy_[from] = 0;
  front_.push_back(static_cast<std::uint32_t>(from));
  for (std::size_t i = 0; i < front_.size(); ++i) {
    const std::size_t at = front_[i];
    if (at == to) return true;
    const Cell value = copy_[at];
    for (unsigned direction = 0; direction < kDirections; ++direction) {
      const std::size_t next = at + static_cast<std::size_t>(step_[direction]);
      Cell& cell = copy_[next];
      const Cell reached = value + kCost[direction];
      if (cell != kEmpty && (cell == kFull || cell <= reached)) continue;
      cell = reached;
      front_.push_back(static_cast<std::uint32_t>(next));
    }
  }
  return false;
}

// Each step goes to the neighbour of the least value, of equal ones to that of the last direction.
bool Router::trace_back(std::size_t to) {
  path_.clear();
  std::size_t at = to;
  unsigned direction = kNoDirection;
  for (Cell value = copy_[at];;) {
    path_.push_back(index_of(at));
    copy_[at] = kFull;
    if (value == 0) return true;
    unsigned taken = kNoDirection;
    for (const Cell bend : {kBendCost, Cell{0}}) {
      Cell best = value;
      for (unsigned d = 0; d < kDirections; ++d) {
        const Cell there = copy_[at + static_cast<std::size_t>(step_[d])];
        if (there == kEmpty || there == kFull) continue;
        const Cell cost = there + (d == direction ? 0 : bend);
        if (cost > best) continue;
        best = there;
        taken = d;
      }
      if (taken != kNoDirection) break;
    }
    if (taken == kNoDirection) return false;
    direction = taken;
    at += static_cast<std::size_t>(step_[taken]);
    value = copy_[at];
  }
}

std::uint32_t Router::index_of(std::size_t place) const noexcept {
  const std::size_t row = size_.x + 2, plane = row * (size_.y + 2);
  const std::size_t z = place / plane - 1, y = place % plane / row - 1, x = place % row - 1;
  return static_cast<std::uint32_t>((z * size_.y + y) * size_.x + x);
}

}  // namespace loam::workloads::labyrinth
