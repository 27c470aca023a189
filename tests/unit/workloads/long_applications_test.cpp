// ssca2, labyrinth, yada and bayes as programs: published counts by site, named variants, bad input. What they have in
// common with all applications is in applications_test.cpp.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace loam::tests {
namespace {

Json run_verified(const std::string& sync, const std::string& arguments) {
  const auto finished = run(executable(sync) + " " + arguments);
  EXPECT_EQ(finished.status, 0) << sync << " " << arguments << ": " << finished.err << finished.out;
  return record(finished, "iteration");
}

void expect_values(const Json& iteration, const std::map<std::string, double>& expected) {
  for (const auto& [name, value] : expected) EXPECT_EQ(iteration[name].number(), value) << name;
}

// One thread without synchronisation does exactly what was published, where that does not depend on the order of a
// triangulation's output or on a defect of the published code.
TEST(LongApplications, PublishedCounts) {
  expect_values(run_verified("sequential", "ssca2 -p scale=17"),
                {{"edges", 1'540'576}, {"tx_append", 1'418'791}, {"tx_largest_vertex", 1}, {"tx_count_edges", 1}});
  expect_values(run_verified("sequential", "labyrinth -p size=medium"),
                {{"paths_routed", 256}, {"tx_route", 256}, {"tx_take_pair", 257}, {"tx_give_results", 1}});
  const auto bayes = run_verified("sequential", "bayes -p size=large -p records=1024");
  EXPECT_NEAR(bayes["score_actual"].number(), -16161.78, 0.005);
  EXPECT_GT(bayes["score_learned"].number(), -17566.14);  // better than what was published
}

// Our triangulation lists triangles in another order than the published inputs, so refinements differ by some thousandths.
TEST(LongApplications, YadaIsCloseToThePublishedCounts) {
  const auto found = run_verified("sequential", "yada -p points=10000 -p angle=20000");
  EXPECT_EQ(found["elements_first"].number(), 19'998);
  EXPECT_NEAR(found["tx_refine"].number(), 9355, 100);
  EXPECT_NEAR(found["elements_last"].number(), 38'772, 200);
  EXPECT_EQ(found["tx_take"].number(), found["tx_is_garbage"].number() + 1);
  EXPECT_EQ(found["tx_transfer"].number(), found["tx_refine"].number());
}

// Words per transaction that a site reads and writes: labyrinth's are those of the path, though it copies the whole grid.
TEST(LongApplications, PublishedSets) {
  const auto means = [](const std::string& arguments, const std::string& series) {
    std::map<std::string, double> found;
    const auto finished = run(executable("sequential") + " " + arguments + " -p sites=sets");
    for (const auto& one : records(finished)) {
      if (one["kind"].string() != "series" || one["name"].string() != series) continue;
      const auto& columns = one["columns"].array();
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto& row = one["rows"].array()[0].array();
        found[columns[i].string()] = row[i].number() / row[0].number();
      }
    }
    return found;
  };
  const auto append = means("ssca2 -p size=sim", "sets_append");
  EXPECT_EQ(append.at("reads"), 1);
  EXPECT_EQ(append.at("words_written"), 2);
  EXPECT_EQ(append.at("lines_written"), 2);
  const auto route = means("labyrinth -p size=medium", "sets_route");
  EXPECT_NEAR(route.at("words_read"), 169.8, 0.05);
  EXPECT_NEAR(route.at("words_written"), 169.8, 0.05);
  EXPECT_NEAR(route.at("lines_read"), 98.8, 0.05);
  const auto refine = means("yada -p points=10000", "sets_refine");
  EXPECT_NEAR(refine.at("allocations"), 37.8, 1);
  EXPECT_NEAR(refine.at("words_read"), 101, 8);
}

// Each way to plan a path ends in paths that do not cross, also where a stale plan is begun anew.
TEST(LongApplications, LabyrinthPlansInThreeWays) {
  const auto expected = run_verified("sequential", "labyrinth -p size=small")["cells_filled"].number();
  for (const char* copy : {"unlogged", "before", "logged"})
    for (const char* sync : {"sequential", "global-lock", "etl-wb", "norec"}) {
      const std::string arguments = std::string("labyrinth -p size=small -p copy=") + copy;
      EXPECT_EQ(run_verified(sync, arguments)["cells_filled"].number(), expected) << sync << copy;
      if (std::string_view(sync) != "sequential") run_verified(sync, arguments + " --threads 4");
    }
}

TEST(LongApplications, BadInput) {
  const auto refused = [](const std::string& arguments, const char* what) {
    const auto finished = run(executable("etl-wb") + " " + arguments);
    EXPECT_EQ(finished.status, 2) << arguments;
    EXPECT_EQ(finished.out, "");
    EXPECT_NE(finished.err.find(what), std::string::npos) << finished.err;
  };
  refused("ssca2 -p scale=2", "-p scale=2: a graph has at least 2^3 vertices");
  refused("ssca2 -p scale=28 -p unidirectional_percent=0", "MiB of memory");
  refused("labyrinth -p width=1 -p height=1 -p depth=1", "a grid has 2 to");
  refused("labyrinth -p width=16384 -p height=16384 -p depth=1024", "a grid has 2 to");
  refused("yada -p points=2", "-p points=2: a mesh has at least 3 points");
  refused("yada -p angle=30000", "from 0 to 20700");
  refused("bayes -p variables=1", "-p variables=1: an edge takes 2 variables or more");
  refused("bayes -p records=1048576 -p variables=64", "MiB of memory");
}

}  // namespace
}  // namespace loam::tests
