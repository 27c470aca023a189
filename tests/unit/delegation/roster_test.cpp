// The places of a domain's requests: a thread that used other domains meanwhile finds all of its own again.
#include "runtime/delegation/parts/roster.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <set>
#include <thread>

namespace loam::delegation {
namespace {

// More than a thread remembers (Roster::remembered_).
using Many = std::array<Roster, 16>;

void use(Many& others) {
  for (Roster& other : others) other.give(other.take());
}

TEST(Roster, AThreadFindsAllOfItsPlacesAgain) {
  constexpr std::uint32_t kAtOnce = 3;
  Roster roster;
  Many others;
  std::set<Cell*> first;
  for (int round = 0; round < 20; ++round) {
    std::set<Cell*> taken;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) taken.insert(&roster.take());
    ASSERT_EQ(taken.size(), kAtOnce) << "each is lent once";
    if (round == 0) first = taken;
    EXPECT_EQ(taken, first) << round;
    // Half of the rounds give back what the thread does not remember any more.
    if (round % 2 == 0) use(others);
    for (Cell* const cell : taken) roster.give(*cell);
    if (round % 4 < 2) use(others);
    ASSERT_EQ(roster.high(), kAtOnce) << "no further place in round " << round;
  }
}

TEST(Roster, OneThatIsInUseIsNotFoundBesideThoseThatAreNot) {
  Roster roster;
  Many others;
  Cell& kept = roster.take();
  Cell &second = roster.take(), &third = roster.take();
  roster.give(second);
  roster.give(third);
  use(others);
  const std::set<Cell*> again{&roster.take(), &roster.take()};
  EXPECT_EQ(again, (std::set<Cell*>{&second, &third}));
  EXPECT_EQ(roster.high(), 3u);
  for (Cell* const cell : again) roster.give(*cell);
  roster.give(kept);
}

struct AtTheEnd {
  std::function<void()> does;
  ~AtTheEnd() { does(); }
};

// A variable of a thread that is older than its first request is destroyed after the thread has left its places.
TEST(Roster, WhatAThreadAsksForAsItEndsTakesAPlaceOfItsOwnAndLeavesItAgain) {
  Roster roster;
  for (int round = 0; round < 10; ++round) {
    Cell *own = nullptr, *of_the_next = nullptr, *late = nullptr;
    std::thread([&] {
      static thread_local AtTheEnd last;
      last.does = [&] {
        std::atomic<bool> has{false}, over{false};
        std::thread next([&] {
          of_the_next = &roster.take();
          has = true;
          while (!over) std::this_thread::yield();
          roster.give(*of_the_next);
        });
        while (!has) std::this_thread::yield();
        late = &roster.take();
        roster.give(*late);
        over = true;
        next.join();
      };
      own = &roster.take();
      roster.give(*own);
    }).join();
    EXPECT_EQ(of_the_next, own) << "it was left";
    EXPECT_NE(late, of_the_next) << "two threads had one place";
    EXPECT_LE(roster.high(), 2u) << "each place serves again, round " << round;
  }
}

}  // namespace
}  // namespace loam::delegation
