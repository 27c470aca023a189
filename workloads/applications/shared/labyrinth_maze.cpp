#include "workloads/applications/shared/labyrinth_maze.hpp"

#include "workloads/applications/shared/mersenne_twister.hpp"

#include <algorithm>

namespace loam::workloads::labyrinth {
namespace {

std::int64_t squared_distance(const Pair& pair) noexcept {
  const auto square = [](std::uint32_t a, std::uint32_t b) {
    const std::int64_t d = std::int64_t{a} - std::int64_t{b};
    return d * d;
  };
  return square(pair.from.x, pair.to.x) + square(pair.from.y, pair.to.y) + square(pair.from.z, pair.to.z);
}

// By index: whether one step leads from a to b.
bool neighbours(const Size& size, std::size_t a, std::size_t b) noexcept {
  const auto point = [&](std::size_t i) {
    return Point{static_cast<std::uint32_t>(i % size.x), static_cast<std::uint32_t>(i / size.x % size.y),
                 static_cast<std::uint32_t>(i / size.x / size.y)};
  };
  return squared_distance({point(a), point(b), 0}) == 1;
}

}  // namespace

std::vector<Cell> Maze::grid() const {
  std::vector<Cell> grid(size.cells(), kEmpty);
  for (const Pair& pair : pairs) grid[size.index(pair.from)] = grid[size.index(pair.to)] = kFull;
  return grid;
}

Maze make_maze(Size size, std::uint32_t pairs) {
  Maze maze{size, {}};
  applications::PythonRandom random(0);
  const auto draw = [&] {
    const auto x = static_cast<std::uint32_t>(random.below(size.x)),
               y = static_cast<std::uint32_t>(random.below(size.y));
    return Point{x, y, static_cast<std::uint32_t>(random.below(size.z))};
  };
  for (std::uint32_t i = 0; i < pairs; ++i) {
    Pair pair{draw(), draw(), i};
    while (pair.to == pair.from) pair.to = draw();
    maze.pairs.push_back(pair);
  }
  std::stable_sort(maze.pairs.begin(), maze.pairs.end(),
                   [](const Pair& a, const Pair& b) { return squared_distance(a) > squared_distance(b); });
  for (std::uint32_t i = 0; i < pairs; ++i) maze.pairs[i].number = i;
  return maze;
}

std::string_view verify(const Maze& maze, std::span<const Path> paths, std::span<const Cell> grid) {
  std::vector<Cell> fresh = maze.grid();
  std::vector<bool> routed(maze.pairs.size());
  for (const Path& path : paths) {
    const auto number = path.pair.number;
    if (number >= maze.pairs.size() || routed[number]) return "a pair was routed twice";
    routed[number] = true;
    const Pair& pair = maze.pairs[number];
    const auto& cells = path.cells;
    if (cells.size() < 2 || cells.front() != maze.size.index(pair.to) || cells.back() != maze.size.index(pair.from))
      return "a path does not connect its pair";
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (cells[i] >= fresh.size() || !neighbours(maze.size, cells[i - 1], cells[i]))
        return "a path leaps between cells that are no neighbours";
      if (i + 1 == cells.size()) break;
      if (fresh[cells[i]] != kEmpty) return "two paths cross, or one runs through an end";
      fresh[cells[i]] = kFull;
    }
  }
  if (!std::equal(fresh.begin(), fresh.end(), grid.begin(), grid.end()))
    return "the grid is not what the paths make of it";
  return {};
}

}  // namespace loam::workloads::labyrinth
