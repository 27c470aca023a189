// The search over executions, with a toy in place of a program: threads that take so many steps each.
#include "simulator/orders/search.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace loam::simulator {
namespace {

// Runs threads 'a', 'b' ... to their ends; before each step the search may interrupt the one that runs. returns who ran
std::string run(Search& search, std::vector<unsigned> left) {
  std::string order;
  std::size_t current = left.size();  // nobody
  for (;;) {
    std::vector<std::size_t> ways;
    unsigned free = 0;
    if (current < left.size() && left[current] != 0) {
      ways.push_back(current);
      free = 1;
    }
    for (std::size_t i = 0; i < left.size(); ++i)
      if (i != current && left[i] != 0) ways.push_back(i);
    if (ways.empty()) return order;
    if (free == 0) free = static_cast<unsigned>(ways.size());
    current = ways[search.choose(free, static_cast<unsigned>(ways.size()))];
    --left[current];
    order += static_cast<char>('a' + current);
  }
}

struct Found {
  std::set<std::string> orders;
  unsigned executions = 0;
  bool whole = false;
};

// What waits for its turn in a search.
struct Later {
  explicit Later(std::size_t choices = 1 << 14, std::uint64_t most = 1'000'000) : room(choices), all(room, most) {}
  std::vector<Choice> room;
  Prefixes all;
};

Found all(unsigned bound, const std::vector<unsigned>& steps) {
  const auto search = std::make_unique<Search>();
  Later later;
  unsigned departures = 0;
  Found found;
  search->begin(bound);
  do {
    found.orders.insert(run(*search, steps));
    ++found.executions;
    EXPECT_LE(search->departures(), bound);
    EXPECT_GE(search->departures(), departures) << "those with fewer come first";
    EXPECT_EQ(search->departures(), search->level());
    departures = search->departures();
    EXPECT_FALSE(search->diverged());
  } while (search->next(later.all));
  found.whole = search->whole();
  return found;
}

TEST(Search, WithoutDeparturesEachThreadRunsToItsEnd) {
  const Found found = all(0, {2, 2});
  EXPECT_EQ(found.orders, (std::set<std::string>{"aabb", "bbaa"}));
  EXPECT_FALSE(found.whole);
}

TEST(Search, OneDepartureIsOneInterruption) {
  EXPECT_EQ(all(1, {2, 2}).orders, (std::set<std::string>{"aabb", "bbaa", "abba", "baab"}));
}

TEST(Search, AHighBoundFindsEveryOrderOnceAndSaysSo) {
  const Found two = all(2, {2, 2});
  EXPECT_EQ(two.orders.size(), 6u);  // 4! / (2! 2!)
  EXPECT_EQ(two.executions, 6u);
  EXPECT_TRUE(two.whole);
  const Found three = all(9, {2, 2, 2});
  EXPECT_EQ(three.orders.size(), 90u);  // 6! / (2! 2! 2!)
  EXPECT_EQ(three.executions, 90u);
  EXPECT_TRUE(three.whole);
}

TEST(Search, AnExecutionIsRepeatedByItsChoices) {
  const auto search = std::make_unique<Search>(), again = std::make_unique<Search>();
  Later later;
  search->begin(2);
  char text[64];
  do {
    const std::string order = run(*search, {2, 2});
    ASSERT_TRUE(again->follow(search->text(text)));
    EXPECT_EQ(run(*again, {2, 2}), order);
    EXPECT_EQ(again->departures(), search->departures());
  } while (search->next(later.all));
}

TEST(Search, ChoicesThatAreNoneAreRefused) {
  const auto search = std::make_unique<Search>();
  for (const char* const text : {"1", "1:", ":1", "1:1,", "1:1 2:1", "2:1,1:1", "1:1,1:2", "x"})
    EXPECT_FALSE(search->follow(text)) << text;
  EXPECT_TRUE(search->follow(""));
}

TEST(Search, AnotherProgramIsNoticed) {
  const auto search = std::make_unique<Search>();
  Later later;
  ASSERT_TRUE(search->follow("0:7"));
  run(*search, {2, 2});
  EXPECT_TRUE(search->diverged());
  search->begin(2);
  run(*search, {2, 2});
  ASSERT_TRUE(search->next(later.all));
  run(*search, {2, 2, 2});
  EXPECT_TRUE(search->diverged());
}

// The choice before the departure took the first way, so the prefix does not have it.
TEST(Search, AnotherProgramIsNoticedInWhatThePrefixLeavesOut) {
  const auto search = std::make_unique<Search>();
  Later later;
  search->begin(1);
  search->choose(1, 2);
  search->choose(1, 2);
  ASSERT_TRUE(search->next(later.all));
  search->choose(1, 3);
  EXPECT_FALSE(search->diverged());
  search->choose(1, 2);
  EXPECT_TRUE(search->diverged());
}

TEST(Search, AWayThatTheBoundLeftOutIsNotForgotten) {
  const auto search = std::make_unique<Search>();
  Later later;
  search->begin(0);
  search->choose(1, 3);
  EXPECT_FALSE(search->next(later.all));
  EXPECT_FALSE(search->whole());
  search->begin(1);
  search->choose(1, 3);
  EXPECT_TRUE(search->next(later.all));
  EXPECT_EQ(search->choose(1, 3), 1u);
  EXPECT_TRUE(search->next(later.all));
  EXPECT_EQ(search->choose(1, 3), 2u);
  EXPECT_FALSE(search->next(later.all));
  EXPECT_TRUE(search->whole());
}

TEST(Search, WithoutRoomForWhatWaitsItSaysSo) {
  const auto search = std::make_unique<Search>();
  Later later(3), few(64, 1);  // a prefix of one choice takes two
  search->begin(1);
  search->choose(1, 3);
  EXPECT_TRUE(search->next(later.all));
  EXPECT_TRUE(later.all.full());
  search->begin(1);
  search->choose(1, 3);
  EXPECT_TRUE(search->next(few.all));
  EXPECT_FALSE(few.all.full());
  search->choose(1, 3);
  EXPECT_FALSE(search->next(few.all)) << "only one was wanted";
}

}  // namespace
}  // namespace loam::simulator
