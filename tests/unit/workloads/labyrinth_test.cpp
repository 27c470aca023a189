// labyrinth: mazes are those of the published script, the router's paths have the published lengths, the check finds
// what is wrong.
#include "workloads/applications/shared/labyrinth_router.hpp"
#include "workloads/applications/shared/mersenne_twister.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <utility>

namespace loam::workloads::labyrinth {
namespace {

TEST(PythonRandom, DrawsAsPythonDoes) {
  applications::PythonRandom random(0);  // random.seed(0); [random.random() for _ in range(3)]
  EXPECT_EQ(random.random(), 0.8444218515250481);
  EXPECT_EQ(random.random(), 0.7579544029403025);
  EXPECT_EQ(random.random(), 0.420571580830845);
}

// Routes all pairs one after another. returns the paths; `grid` is as they leave it
std::vector<Path> route_all(const Maze& maze, std::vector<Cell>& grid) {
  Router router(maze.size);
  std::vector<Path> paths;
  for (const Pair& pair : maze.pairs) {
    router.copy(grid.data());
    if (!router.route(pair)) continue;
    const auto cells = router.path();
    paths.push_back({pair, {cells.begin(), cells.end()}});
    for (std::size_t i = 1; i + 1 < cells.size(); ++i) grid[cells[i]] = kFull;
  }
  return paths;
}

TEST(Labyrinth, RoutesThePublishedMaze) {
  const Maze maze = make_maze({256, 256, 5}, 256);
  auto grid = maze.grid();
  const auto paths = route_all(maze, grid);
  EXPECT_EQ(verify(maze, paths, grid), "");
  std::size_t inner = 0, inner_max = 0;
  for (const Path& path : paths) {
    inner += path.cells.size() - 2;
    inner_max = std::max(inner_max, path.cells.size() - 2);
  }
  EXPECT_EQ(paths.size(), 256u);
  EXPECT_EQ((inner * 10 + 128) / 256, 1698u);  // a mean of 169.8 cells
  EXPECT_EQ(inner_max, 422u);
}

TEST(Labyrinth, FarPairsComeFirst) {
  const Maze maze = make_maze({32, 32, 3}, 96);
  const auto distance = [](const Pair& pair) {
    const auto square = [](double d) { return d * d; };
    return square(double(pair.from.x) - pair.to.x) + square(double(pair.from.y) - pair.to.y) +
           square(double(pair.from.z) - pair.to.z);
  };
  for (std::uint32_t i = 0; i < 96; ++i) {
    EXPECT_EQ(maze.pairs[i].number, i);
    EXPECT_FALSE(maze.pairs[i].from == maze.pairs[i].to);
    EXPECT_GE(distance(maze.pairs[i == 0 ? 0 : i - 1]), distance(maze.pairs[i]));
  }
}

TEST(Labyrinth, PathIsShortestInSteps) {
  const Maze maze{{5, 5, 2}, {{{0, 0, 0}, {4, 0, 0}, 0}}};
  auto grid = maze.grid();
  for (std::uint32_t y = 0; y < 5; ++y)  // a wall through both layers, with a door in the lower one's last row
    for (std::uint32_t z = 0; z < 2; ++z)
      if (y != 4 || z == 1) grid[maze.size.index({2, y, z})] = kFull;
  Router router(maze.size);
  router.copy(grid.data());
  ASSERT_TRUE(router.route(maze.pairs[0]));
  EXPECT_EQ(router.path().size(), 13u);
  grid[maze.size.index({2, 4, 0})] = kFull;
  router.copy(grid.data());
  EXPECT_FALSE(router.route(maze.pairs[0]));
}

TEST(Labyrinth, CopiesAreTheSame) {
  const Maze maze = make_maze({16, 8, 3}, 12);
  const auto grid = maze.grid();
  Router whole(maze.size), by_cell(maze.size);
  whole.copy(grid.data());
  by_cell.copy(grid.data(), [](const Cell& cell) { return cell; });
  ASSERT_EQ(whole.route(maze.pairs[0]), by_cell.route(maze.pairs[0]));
  EXPECT_TRUE(std::ranges::equal(whole.path(), by_cell.path()));
}

TEST(Labyrinth, VerifyFindsWhatIsWrong) {
  const Maze maze = make_maze({32, 32, 3}, 96);
  auto grid = maze.grid();
  const auto right = route_all(maze, grid);
  ASSERT_GT(right.size(), 40u);
  ASSERT_EQ(verify(maze, right, grid), "");
  const auto broken = [&](auto&& breaks) {
    auto paths = right;
    breaks(paths);
    return verify(maze, paths, grid);
  };
  const auto longest = static_cast<std::size_t>(
      std::ranges::max_element(right, {}, [](const Path& path) { return path.cells.size(); }) - right.begin());
  EXPECT_EQ(broken([](auto& paths) { paths.push_back(paths[0]); }), "a pair was routed twice");
  EXPECT_EQ(broken([](auto& paths) { paths[0].pair.number = 96; }), "a pair was routed twice");
  EXPECT_EQ(broken([](auto& paths) { paths[0].cells.pop_back(); }), "a path does not connect its pair");
  EXPECT_EQ(broken([&](auto& paths) { paths[longest].cells.erase(paths[longest].cells.begin() + 2); }),
            "a path leaps between cells that are no neighbours");
  EXPECT_EQ(broken([](auto& paths) { paths.pop_back(); }), "the grid is not what the paths make of it");
  // There and back again: the cell is used twice.
  EXPECT_EQ(broken([&](auto& paths) {
              auto& cells = paths[longest].cells;
              cells.insert(cells.begin() + 3, {cells[1], cells[2]});
            }),
            "two paths cross, or one runs through an end");
}

}  // namespace
}  // namespace loam::workloads::labyrinth
