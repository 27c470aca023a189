// Boards of leetm: pads, and joins to be routed.
//   sparseshort   841 short tracks that never meet, no pads        sparselong   29 tracks from top to bottom
//   crossing      a test: 90 short and 10 long tracks on 200 x 200, many of which meet
//   a file        lines  C x0 y0 x1 y1 (occupied)  P x y (pad)  J x0 y0 x1 y1 (join)  E (end); # begins a comment
//   Source of the two formulas: the boards of Watson et al., PACT 2007, which are regular enough to be defined so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loam::workloads::managed::lee {

struct Point {
  int x, y;
  bool operator==(const Point&) const = default;
};

struct Join {
  Point from, to;
};

struct Board {
  int size = 600;  // cells of a side; two layers
  std::vector<Point> pads;
  std::vector<Join> joins;  // the shortest first
};

Board sparse_short();
Board sparse_long();
Board crossing(std::uint64_t seed);

// Ends the program, naming file and line, where the file is damaged.
Board read_board(std::string_view path);

}  // namespace loam::workloads::managed::lee
