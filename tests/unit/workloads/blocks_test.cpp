// The workload blocks: its counts follow from the places that it records.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace loam::tests {
namespace {

struct Place {
  unsigned thread;
  std::uint64_t address, usable, record;
};

std::vector<Place> places(const Finished& finished) {
  std::vector<Place> found;
  const auto series = record(finished, "series");
  for (const auto& row : series["rows"].array()) {
    const auto& value = row.array();
    found.push_back({static_cast<unsigned>(value[0].number()), static_cast<std::uint64_t>(value[1].number()),
                     static_cast<std::uint64_t>(value[2].number()), static_cast<std::uint64_t>(value[3].number())});
  }
  return found;
}

// Blocks for which another block with the same key answers.
template <class Key, class Differs>
double mates(const std::vector<Place>& all, Key key, Differs differs) {
  return static_cast<double>(std::ranges::count_if(all, [&](const Place& one) {
    return std::ranges::any_of(all, [&](const Place& other) { return key(one) == key(other) && differs(one, other); });
  }));
}

TEST(Blocks, CountsFollowFromThePlaces) {
  for (const std::string arguments :
       {"--threads 1 -p count=64", "--threads 2 -p count=32", "--threads 4 -p count=16 -p size=48",
        "--threads 2 -p count=32 -p turns=0 -p size=8 -p stripe_log2=6 -p table_log2=10"}) {
    const auto finished = run(executable("none") + " blocks " + arguments);
    ASSERT_EQ(finished.status, 0) << finished.err;
    const auto all = places(finished);
    ASSERT_EQ(all.size(), 64u) << arguments;
    const auto one = record(finished, "iteration");
    const auto parameters = record(finished, "begin")["parameters"];
    const auto shift = static_cast<unsigned>(parameters["stripe_log2"].number());
    const auto mask = (std::uint64_t{1} << static_cast<unsigned>(parameters["table_log2"].number())) - 1;
    std::vector<std::uint64_t> addresses;
    for (const auto& place : all) {
      EXPECT_EQ(place.record, (place.address >> shift) & mask);
      EXPECT_GE(place.usable, parameters["size"].number());
      addresses.push_back(place.address);
    }
    std::ranges::sort(addresses);
    std::uint64_t distance = ~std::uint64_t{0};
    for (std::size_t i = 1; i < addresses.size(); ++i) distance = std::min(distance, addresses[i] - addresses[i - 1]);
    EXPECT_EQ(one["distance_bytes"].number(), static_cast<double>(distance)) << arguments;
    EXPECT_EQ(one["blocks"].number(), 64) << arguments;
    EXPECT_EQ(one["line_mates"].number(), mates(
                                              all, [](const Place& p) { return p.address / 64; },
                                              [](const Place& a, const Place& b) { return a.thread != b.thread; }))
        << arguments;
    EXPECT_EQ(one["stripe_mates"].number(), mates(
                                                all, [&](const Place& p) { return p.address >> shift; },
                                                [](const Place& a, const Place& b) { return a.address != b.address; }))
        << arguments;
    EXPECT_EQ(one["aliased"].number(),
              mates(
                  all, [](const Place& p) { return p.record; },
                  [&](const Place& a, const Place& b) { return a.address >> shift != b.address >> shift; }))
        << arguments;
  }
}

// glibc gives a 64-bit program blocks of 32 bytes at least, 8 of them its own, and each thread an arena at a multiple
// of 64 MiB, which the table of 2^20 records of 32 bytes folds onto the same records.
TEST(Blocks, ShowGlibcsPlacesAsTheyAreKnown) {
  const auto finished = run(executable("none") + " blocks --threads 2 -p size=1 -p count=8");
  const auto one = record(finished, "iteration");
  EXPECT_EQ(one["distance_bytes"].number(), 32);
  EXPECT_EQ(one["overhead_bytes"].number(), 8);
  EXPECT_EQ(one["stripe_mates"].number(), 0);
  EXPECT_EQ(one["aliased"].number(), 16);
  const auto larger =
      record(run(executable("none") + " blocks --threads 2 -p size=1 -p count=8 -p table_log2=26"), "iteration");
  EXPECT_EQ(larger["aliased"].number(), 0);
}

// The k-th row is thread k modulo threads: the threads take turns.
TEST(Blocks, ThreadsTakeTurns) {
  const auto all = places(run(executable("none") + " blocks --threads 3 -p count=5"));
  ASSERT_EQ(all.size(), 15u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].thread, i % 3);
}

// More blocks than a record holds: those of the first turns are shown, all are counted.
TEST(Blocks, ManyAreCountedAndFewShown) {
  const auto finished = run(executable("none") + " blocks --threads 40 -p count=64");
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(places(finished).size(), 64u);
  EXPECT_EQ(record(finished, "iteration")["blocks"].number(), 2560);
}

}  // namespace
}  // namespace loam::tests
