// The sample of transfers: who had a line and who got it, when, and how little is kept of many.
#include "traces.hpp"

#include "simulator/model/moves.hpp"

#include <array>

namespace loam::simulator {
namespace {

TEST(Moves, ATransferIsKeptWithItsCoresAndItsTime) {
  Trace trace(kSmall);
  trace.write(0, kBase);
  trace.meet();
  const std::uint64_t before = trace.clocks[3];
  trace.read(3, kBase);
  trace.meet();
  trace.write(1, kBase);
  const Moves& moves = trace.model.moves();
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves.one_in(), 1u);
  const auto& read = moves.begin()[0];
  EXPECT_EQ(read.line, kBase / 64);
  EXPECT_EQ(read.from, 0u);
  EXPECT_EQ(read.to, 3u);
  EXPECT_EQ(read.now, before);
  EXPECT_EQ(moves.begin()[1].to, 1u);
}

TEST(Moves, WhatNeverLeavesItsCoreIsNone) {
  Trace trace(kSmall);
  for (unsigned i = 0; i < 100; ++i) trace.write(i % 4, kBase + i % 4 * 64);
  EXPECT_EQ(trace.model.moves().size(), 0u);
}

// As many as fit remain, spread over all the time, and of two cores that take turns about as many of each.
TEST(Moves, ASampleOfManyIsEven) {
  Arena arena;
  Moves moves;
  moves.init(arena);
  constexpr std::uint64_t kAll = 20 * Moves::kMovesMax;
  for (std::uint64_t now = 0; now < kAll; ++now) moves.note(7, now % 2, 1 - now % 2, now);
  EXPECT_EQ(moves.one_in(), 32u);
  EXPECT_NEAR(static_cast<double>(moves.size()), static_cast<double>(kAll) / 32, 0.02 * kAll / 32);
  std::array<double, 4> of_quarters{};
  double to_first = 0;
  std::uint64_t last = 0;
  for (const auto& move : moves) {
    EXPECT_LE(last, move.now);
    last = move.now;
    of_quarters[4 * move.now / kAll] += 1;
    to_first += move.to == 0;
  }
  for (const double count : of_quarters) EXPECT_NEAR(count, moves.size() / 4.0, 0.05 * moves.size() / 4.0);
  EXPECT_NEAR(to_first, moves.size() / 2.0, 0.05 * moves.size() / 2.0);
}

}  // namespace
}  // namespace loam::simulator
