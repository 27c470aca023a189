#include "workloads/managed/lee/board.hpp"

#include "runtime/base/random.hpp"
#include "workloads/harness/options.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace loam::workloads::managed::lee {
namespace {

constexpr int kBorder = 1;

void sort_by_length(Board& board) {
  const auto length = [](const Join& join) {
    const int dx = join.to.x - join.from.x, dy = join.to.y - join.from.y;
    return dx * dx + dy * dy;
  };
  std::stable_sort(board.joins.begin(), board.joins.end(),
                   [&](const Join& a, const Join& b) { return length(a) < length(b); });
}

}  // namespace

Board sparse_short() {
  Board board;
  for (int x = 10; x <= 570; x += 20)
    for (int y = 10; y <= 570; y += 20) board.joins.push_back({{x, y}, {x, y + 10}});
  return board;
}

Board sparse_long() {
  Board board;
  for (int x = 10; x <= 570; x += 20) {
    board.pads.push_back({x, 10});
    board.pads.push_back({x, 590});
    board.joins.push_back({{x, 10}, {x, 590}});
  }
  return board;
}

Board crossing(std::uint64_t seed) {
  Board board;
  board.size = 200;
  base::Random random(seed);
  // Ends lie on a lattice of their own, so that none is used twice.
  constexpr int kSide = 24, kPitch = 8;
  std::vector<Point> free;
  for (int i = 0; i < kSide * kSide; ++i) free.push_back({4 + i % kSide * kPitch, 4 + i / kSide * kPitch});
  const auto take = [&](std::size_t at) {
    const Point point = free[at];
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(at));
    board.pads.push_back(point);
    return point;
  };
  for (int i = 0; i < 100; ++i) {
    const Point from = take(random.below(static_cast<std::uint32_t>(free.size())));
    std::size_t best = 0;
    for (std::size_t k = 0; k < free.size(); ++k) {
      const auto distance = [&](Point p) { return std::abs(p.x - from.x) + std::abs(p.y - from.y); };
      const bool longer = distance(free[k]) > distance(free[best]);
      if (longer == (i < 10) && free[k] != free[best]) best = k;
    }
    board.joins.push_back({from, take(best)});
  }
  sort_by_length(board);
  return board;
}

Board read_board(std::string_view path) {
  std::ifstream file{std::string(path)};
  if (!file) reject("-p file", path, "cannot be read");
  Board board;
  std::string text;
  bool ended = false;
  for (unsigned number = 1; std::getline(file, text) && !ended; ++number) {
    const auto damaged = [&](const char* what) {
      const std::string subject = std::string(path) + ":" + std::to_string(number);
      reject(subject, text, what, "lines are C x0 y0 x1 y1, P x y, J x0 y0 x1 y1, E, and # comments");
    };
    std::istringstream line(text);
    char kind = '#';
    if (!(line >> kind) || kind == '#') continue;
    const auto point = [&] {
      Point p{};
      if (!(line >> p.x >> p.y)) damaged("a coordinate is missing or no number");
      if (p.x < kBorder || p.y < kBorder || p.x >= board.size - kBorder || p.y >= board.size - kBorder)
        damaged("a coordinate is not inside of the board: from 1 to 598");
      return p;
    };
    switch (kind) {
      case 'E':
        ended = true;
        break;
      case 'P':
        board.pads.push_back(point());
        break;
      case 'J': {
        const Point from = point(), to = point();
        if (from == to) damaged("a join of a point with itself");
        board.joins.push_back({from, to});
        break;
      }
      case 'C': {
        const Point low = point(), high = point();
        for (int x = low.x; x <= high.x; ++x)
          for (int y = low.y; y <= high.y; ++y) board.pads.push_back({x, y});
        break;
      }
      default:
        damaged("an unknown kind of line");
    }
  }
  if (!ended) reject("-p file", path, "ends without a line E", "is it cut off?");
  if (board.joins.empty()) reject("-p file", path, "has no joins");
  sort_by_length(board);
  return board;
}

}  // namespace loam::workloads::managed::lee
