// The maze of labyrinth: a grid of cells in three dimensions and pairs of cells to connect; and the check of its paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loam::workloads::labyrinth {

using Cell = std::int64_t;  // as the original's: a word
inline constexpr Cell kEmpty = -1, kFull = -2;

struct Point {
  std::uint32_t x, y, z;
  friend bool operator==(const Point&, const Point&) = default;
};

struct Size {
  std::uint32_t x, y, z;

  std::size_t cells() const noexcept { return std::size_t{x} * y * z; }
  std::size_t index(Point p) const noexcept { return (std::size_t{p.z} * y + p.y) * x + p.x; }
};

// Two cells to connect. number: in the order of the maze's work
struct Pair {
  Point from, to;
  std::uint32_t number;
};

struct Maze {
  Size size;
  std::vector<Pair> pairs;  // the most distant ones first

  // A grid with the ends of all pairs full.
  std::vector<Cell> grid() const;
};

// Random pairs, as the original's script makes them.
Maze make_maze(Size size, std::uint32_t pairs);

// The cells of a routed pair, by index, from `to` to `from`, both included.
struct Path {
  Pair pair;
  std::vector<std::uint32_t> cells;
};

// Whether the paths connect their pairs by neighbouring cells, none of them twice, and no pair twice; and whether `grid`
// has exactly their cells and the ends of the pairs full. returns what is wrong, empty if nothing is
std::string_view verify(const Maze& maze, std::span<const Path> paths, std::span<const Cell> grid);

}  // namespace loam::workloads::labyrinth
