// Router: finds the path of a pair in a private copy of the grid.
//   Source: Lee, "An algorithm for path connections and its applications", IRE Transactions 1961: expansion in waves from
//   one end, then back along falling values. A step in z costs two; on the way back a bend costs one.
//   The copy has a full cell around it, so that no step leaves it.
#pragma once

#include "structures/plain_access.hpp"
#include "workloads/applications/shared/labyrinth_maze.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace loam::workloads::labyrinth {

class Router {
 public:
  explicit Router(Size size);

  // Copies a grid that others may be writing to: each cell by an atomic load of its own, without any order.
  LOAM_PURE_IN_TRANSACTIONS void copy(const Cell* grid) noexcept;

  // The same in a caller's own way: read(cell) for each.
  template <class Read>
  void copy(const Cell* grid, Read&& read) {
    for (std::uint32_t z = 0; z < size_.z; ++z)
      for (std::uint32_t y = 0; y < size_.y; ++y)
        for (std::uint32_t x = 0; x < size_.x; ++x) put({x, y, z}, read(grid[size_.index({x, y, z})]));
  }

  // Consumes the copy. returns whether there is a way; then path() has it, from `to` to `from`
  LOAM_PURE_IN_TRANSACTIONS bool route(const Pair& pair);

  // By index into the grid that was copied.
  LOAM_PURE_IN_TRANSACTIONS std::span<const std::uint32_t> path() const noexcept { return path_; }

 private:
  LOAM_PURE_IN_TRANSACTIONS void put(Point p, Cell value) noexcept { copy_[place(p)] = value; }
  std::size_t place(Point p) const noexcept {
    return (std::size_t{p.z + 1} * (size_.y + 2) + p.y + 1) * (size_.x + 2) + p.x + 1;
  }
  bool expand(std::size_t from, std::size_t to);
  bool trace_back(std::size_t to);
  std::uint32_t index_of(std::size_t place) const noexcept;

  static constexpr unsigned kDirections = 6;

  const Size size_;
  const std::ptrdiff_t step_[kDirections];  // +x, +y, +z, -x, -y, -z
  std::vector<Cell> copy_;
  std::vector<std::uint32_t> front_;  // cells in the order in which they were reached
  std::vector<std::uint32_t> path_;
};

}  // namespace loam::workloads::labyrinth
