// The array-counters workload on every synchronisation that offers it.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>

namespace loam::tests {
namespace {

TEST(ArrayCounters, AreVerifiedEverywhere) {
  unsigned offers = 0;
  for (const auto& name : executable_names()) {
    const auto description = Json::parse(run(executable(name) + " --describe").out);
    if (!runs_here(description)) continue;
    bool offered = false;
    for (const auto& workload : description["workloads"].array())
      offered |= workload["name"].string() == "array-counters";
    if (!offered) continue;
    ++offers;
    const std::string threads = description["sync"]["threads_max"].number() < 3 ? "1" : "3";
    for (const std::string layout : {"own", "shared"}) {
      const auto finished =
          run(executable(name) + " array-counters --threads " + threads + " -p operations=2000 -p layout=" + layout);
      ASSERT_EQ(finished.status, 0) << name << ' ' << layout << ": " << finished.err << finished.out;
      for (const auto& one : records(finished)) EXPECT_EQ(record_schema().violation(one), "") << name;
      EXPECT_TRUE(record(finished, "end")["verified"].boolean());
      EXPECT_EQ(record(finished, "end")["live_blocks_delta"].number(), 0);
      EXPECT_EQ(record(finished, "iteration")["operations"].number(), 2000 * std::stod(threads)) << name;
    }
  }
  EXPECT_GE(offers, 4u);
}

TEST(ArrayCounters, RunForATimeAfterAWarmUp) {
  const auto finished = run(executable("norec") + " array-counters --threads 2 --warmup-ms 5 -p duration_ms=20");
  EXPECT_EQ(finished.status, 0) << finished.err << finished.out;
  EXPECT_TRUE(record(finished, "end")["verified"].boolean());
}

}  // namespace
}  // namespace loam::tests
