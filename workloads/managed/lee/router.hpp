// Lee's algorithm on two layers: a wave from one end until it reaches the other, then back along falling numbers.
//   Source  Lee, 1961; as Watson, Kirkham, Lujan, PACT 2007, use it: cells beside pads cost one more, the wave goes on
//           for a while after its first arrival, vias change the layer.
#pragma once

#include "workloads/managed/lee/board.hpp"
#include "workloads/managed/lee/grids.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace loam::workloads::managed::lee {

inline constexpr Number kEmpty = 0, kBesidePad = 1, kPad = 5120, kVia = 6000, kForcedVia = 6001, kTrack = 8192;
inline constexpr Number kUnvisited = 10000;

struct Step {
  int x, y, z;
};

// Lists of a thread outside of the heap; the wave's are objects of the heap where the variant allocates them there.
struct Scratch {
  std::vector<Step> wave, next;
  std::vector<Step> path;
};

template <class Access, class Board, class Temporary>
class Router {
 public:
  Router(Access& tx, Board& board, Temporary& temporary, int size, Scratch& scratch)
      : tx_(tx), board_(board), temporary_(temporary), size_(size), scratch_(scratch) {}

  // made(): a step enters the wave. returns whether the join was laid; scratch.path has its cells then
  template <class Made>
  bool lay(const Join& join, Made&& made) {
    for (int x = 0; x < size_; ++x) {
      for (int y = 0; y < size_; ++y)
        for (int z = 0; z < 2; ++z) temporary_.set(tx_, x, y, z, kUnvisited);
      tx_.safepoint();
    }
    scratch_.path.clear();
    if (!expand(join, made)) return false;
    backtrack(join);
    return true;
  }

 private:
  static constexpr std::array<std::pair<int, int>, 4> kAround{{{0, 1}, {1, 0}, {0, -1}, {-1, 0}}};

  Number board(int x, int y, int z) { return board_.get(tx_, x, y, z); }
  Number wave(int x, int y, int z) { return temporary_.get(tx_, x, y, z); }
  bool is_inside(int x, int y) const { return x > 0 && y > 0 && x < size_ - 1 && y < size_ - 1; }

  template <class Made>
  bool expand(const Join& join, Made& made) {
    auto &now = scratch_.wave, &next = scratch_.next;
    now.clear();
    next.clear();
    for (int z = 0; z < 2; ++z) {
      temporary_.set(tx_, join.from.x, join.from.y, z, 1);
      made();
      now.push_back({join.from.x, join.from.y, z});
    }
    int extra = 50;
    for (; !now.empty(); std::swap(now, next), next.clear())
      for (const Step at : now) {
        const Number value = wave(at.x, at.y, at.z);
        for (const auto& [dx, dy] : kAround) {
          const int x = at.x + dx, y = at.y + dy;
          if (!is_inside(x, y)) continue;
          const bool goal = join.to == Point{x, y};
          const Number weight = board(x, y, at.z) + 1;
          if (!goal && !(wave(x, y, at.z) > value + weight && weight < kPad)) continue;
          if (goal && wave(x, y, at.z) <= value + 1) continue;
          temporary_.set(tx_, x, y, at.z, value + (goal ? 1 : weight));
          if (goal) continue;
          made();
          next.push_back({x, y, at.z});
        }
        const int other = 1 - at.z;
        if (wave(at.x, at.y, other) > value && board(at.x, at.y, other) + 1 < kPad) {
          temporary_.set(tx_, at.x, at.y, other, value);
          made();
          next.push_back({at.x, at.y, other});
        }
        const bool on_0 = wave(join.to.x, join.to.y, 0) != kUnvisited,
                   on_1 = wave(join.to.x, join.to.y, 1) != kUnvisited;
        if (on_0 != on_1) extra = 100;
        if ((on_0 && on_1) || (extra == 0 && (on_0 || on_1))) return true;
        --extra;
        tx_.safepoint();
      }
    return wave(join.to.x, join.to.y, 0) != kUnvisited || wave(join.to.x, join.to.y, 1) != kUnvisited;
  }

  // From the goal to where the wave began: always to the least number around.
  void backtrack(const Join& join) {
    int z = std::abs(join.to.x - join.from.x) > std::abs(join.to.y - join.from.y) ? 0 : 1;
    if (wave(join.to.x, join.to.y, z) == kUnvisited) z = 1 - z;
    Point at = join.to;
    scratch_.path.push_back({at.x, at.y, z});
    int since_via = 0;
    while (!(at == join.from)) {
      const Number here = wave(at.x, at.y, z);
      // Layer 0 prefers to go along x, layer 1 along y.
      const std::array<std::pair<int, int>, 4> order =
          z == 0 ? std::array<std::pair<int, int>, 4>{{{-1, 0}, {1, 0}, {0, -1}, {0, 1}}}
                 : std::array<std::pair<int, int>, 4>{{{0, -1}, {0, 1}, {-1, 0}, {1, 0}}};
      const auto least = [&](int layer, Number below) {
        std::size_t best = order.size();
        for (std::size_t i = 0; i < order.size(); ++i) {
          const int x = at.x + order[i].first, y = at.y + order[i].second;
          if (!is_inside(x, y) || wave(x, y, layer) >= below || wave(x, y, layer) == kUnvisited) continue;
          best = i;
          below = wave(x, y, layer);
        }
        return best;
      };
      const std::size_t chosen = least(z, here);
      const bool advances = chosen < order.size();
      const int other = 1 - z;
      const bool continues = wave(at.x, at.y, other) <= here && least(other, wave(at.x, at.y, other)) < order.size();
      const double distance = std::hypot(at.x - join.from.x, at.y - join.from.y);
      if (continues && ((advances && chosen > 1 && since_via > 15 && distance > 15) || !advances)) {
        const Number via = advances ? kVia : kForcedVia;
        for (int layer = 0; layer < 2; ++layer)
          if (board(at.x, at.y, layer) < kPad) board_.set(tx_, at.x, at.y, layer, via);
        since_via = 0;
        z = other;
        scratch_.path.push_back({at.x, at.y, z});
        continue;
      }
      if (!advances) return scratch_.path.clear();
      if (board(at.x, at.y, z) < kPad) board_.set(tx_, at.x, at.y, z, kTrack);
      at = {at.x + order[chosen].first, at.y + order[chosen].second};
      ++since_via;
      scratch_.path.push_back({at.x, at.y, z});
    }
  }

  Access& tx_;
  Board& board_;
  Temporary& temporary_;
  const int size_;
  Scratch& scratch_;
};

}  // namespace loam::workloads::managed::lee
