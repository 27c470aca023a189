// The footprint workload on every synchronisation that offers it.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>

namespace loam::tests {
namespace {

TEST(Footprint, IsVerifiedEverywhere) {
  unsigned offers = 0;
  for (const auto& name : executable_names()) {
    const auto description = Json::parse(run(executable(name) + " --describe").out);
    if (!runs_here(description)) continue;
    bool offered = false;
    for (const auto& workload : description["workloads"].array()) offered |= workload["name"].string() == "footprint";
    if (!offered) continue;
    ++offers;
    for (const std::string use : {"write", "make", "churn"}) {
      const auto finished =
          run(executable(name) + " footprint --threads 2 -p operations=300 -p count=5 -p size=200 -p use=" + use);
      ASSERT_EQ(finished.status, 0) << name << ' ' << use << ": " << finished.err << finished.out;
      for (const auto& one : records(finished)) EXPECT_EQ(record_schema().violation(one), "") << name;
      EXPECT_TRUE(record(finished, "end")["verified"].boolean());
      EXPECT_EQ(record(finished, "end")["live_blocks_delta"].number(), 0) << name << ' ' << use;
      EXPECT_EQ(record(finished, "iteration")["operations"].number(), 600) << name;
    }
  }
  EXPECT_GE(offers, 3u);
}

TEST(Footprint, RunsForATime) {
  for (const std::string use : {"write", "churn"}) {
    const auto finished = run(executable("norec") + " footprint --warmup-ms 5 -p duration_ms=20 -p use=" + use);
    EXPECT_EQ(finished.status, 0) << finished.err << finished.out;
  }
}

TEST(Footprint, WhatIsKeptIsBounded) {
  const auto endless = run(executable("norec") + " footprint -p use=make");
  EXPECT_EQ(endless.status, 2);
  EXPECT_EQ(endless.err,
            "error: -p use=make: its blocks are kept, so it needs a number of operations (add -p operations=1000)\n");
  const auto large = run(executable("norec") + " footprint -p use=make -p operations=1000000 -p size=4096");
  EXPECT_EQ(large.status, 2);
  EXPECT_EQ(large.err,
            "error: -p operations=1000000: a thread keeps at most 1073741824 bytes, and each operation makes 65536 "
            "(lower operations, size or count)\n");
}

}  // namespace
}  // namespace loam::tests
