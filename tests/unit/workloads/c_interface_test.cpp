// The synchronisations loam-c and loam-c-inline...: sets and applications through the C interface. (What every
// synchronisation is held to, applications_test.cpp and others do for them as well.)
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>

#include <string>

namespace loam::tests {
namespace {

constexpr const char* kSyncs[] = {"loam-c", "loam-c-inline", "loam-c-inline-etl-wb", "loam-c-inline-dctl"};

Json description_of(const std::string& sync) { return Json::parse(run(executable(sync) + " --describe").out); }

// The choices of a synchronisation's parameter; none if it has no such one.
std::vector<std::string> choices_of(const std::string& sync, const std::string& parameter) {
  std::vector<std::string> choices;
  const Json description = description_of(sync);
  for (const auto& each : description["sync"]["parameters"].array())
    if (each["name"].string() == parameter)
      for (const auto& choice : each["choices"].array()) choices.push_back(choice.string());
  return choices;
}

TEST(CInterface, SetsAreVerifiedByCallsAndInline) {
  for (const std::string sync : kSyncs)
    for (const std::string structure : {"list", "hash", "tree"}) {
      const auto finished = run(executable(sync) + " intset --threads 2 -p operations=3000 -p update_percent=60" +
                                " -p structure=" + structure);
      ASSERT_EQ(finished.status, 0) << sync << ' ' << structure << ": " << finished.err << finished.out;
      for (const auto& one : records(finished)) EXPECT_EQ(record_schema().violation(one), "") << sync;
      EXPECT_EQ(record(finished, "end")["live_blocks_delta"].number(), 0);
      const auto tm = record(finished, "iteration")["tm"];
      EXPECT_GE(tm["commits"].number(), 6000);
      EXPECT_GE(tm["attempts"].number(), tm["commits"].number());
    }
}

// A thread alone does the same through C++, by calls, and inline.
TEST(CInterface, TheSameTransactionsAsInCpp) {
  const auto commits = [](const std::string& sync) {
    const auto finished = run(executable(sync) +
                              " intset -p operations=3000 -p structure=tree -p update_percent=60 -p generator=erand48");
    EXPECT_EQ(finished.status, 0) << sync << ": " << finished.err << finished.out;
    return record(finished, "iteration")["tm"]["commits"].number();
  };
  const double expected = commits("norec");
  EXPECT_EQ(expected, 3000);
  for (const std::string sync : kSyncs) EXPECT_EQ(commits(sync), expected) << sync;
}

TEST(CInterface, EveryAlgorithmCanBeChosenAndTheRecordsAreItsOwn) {
  const auto algorithms = choices_of("loam-c", "algorithm");
  ASSERT_GE(algorithms.size(), 8u);
  EXPECT_EQ(algorithms.front(), "norec");
  for (const auto& algorithm : algorithms) {
    // The environment of a C program's own has no part in it.
    const auto finished = run("LOAM_TM=algorithm=tl2,manager=karma " + executable("loam-c") +
                              " intset -p operations=500 -p algorithm=" + algorithm);
    ASSERT_EQ(finished.status, 0) << algorithm << ": " << finished.err << finished.out;
    EXPECT_EQ(finished.err, "");
    const auto begin = record(finished, "begin");
    EXPECT_EQ(begin["parameters"]["algorithm"].string(), algorithm);
    EXPECT_EQ(begin["tm"]["records_mapping"].string(), algorithm == "norec" ? "none" : "table") << algorithm;
    EXPECT_EQ(begin["tm"]["read_set_entry_bytes"].number(), algorithm == "norec" ? 16 : 8) << algorithm;
  }
}

TEST(CInterface, InlineAccessesHaveOneAlgorithm) {
  for (const std::string sync : {"loam-c-inline", "loam-c-inline-etl-wb", "loam-c-inline-dctl"}) {
    EXPECT_TRUE(choices_of(sync, "algorithm").empty());
    const auto finished = run("LOAM_TM=algorithm=tl2 " + executable(sync) + " intset -p operations=100");
    EXPECT_EQ(finished.status, 0) << finished.err;
    EXPECT_EQ(record(finished, "begin")["tm"]["records_mapping"].string(), sync == "loam-c-inline" ? "none" : "table");
  }
  const auto shadow = run(executable("loam-c-inline-dctl") + " intset -p operations=100 -p mapping=shadow");
  EXPECT_EQ(record(shadow, "begin")["tm"]["records_mapping"].string().substr(0, 6), "shadow") << shadow.err;
}

TEST(CInterface, RefusesWhatTheLibraryRefusesInItsWords) {
  const auto mapping = run(executable("loam-c") + " intset -p algorithm=etl-wb -p mapping=hash");
  EXPECT_EQ(mapping.status, 2);
  EXPECT_NE(mapping.err.find("--sync=loam-c: mapping=hash: etl-wb finds records by shift and mask"), std::string::npos)
      << mapping.err;
  const auto threads = run(executable("loam-c") + " intset -p algorithm=sequential --threads 2");
  EXPECT_EQ(threads.status, 2);
  EXPECT_NE(threads.err.find("-p algorithm=sequential: it runs fewer threads"), std::string::npos) << threads.err;
}

// Under three designs; applications_test.cpp has all of them under the default.
TEST(CInterface, ApplicationsAreVerified) {
  for (const std::string application :
       {"genome -p gene=128 -p segment=16 -p segments=4096", "vacation -p relations=128 -p tasks=1000"})
    for (const std::string algorithm : {"norec", "etl-wb", "two-phase"}) {
      const auto finished = run(executable("loam-c") + " " + application + " --threads 2 -p algorithm=" + algorithm);
      EXPECT_EQ(finished.status, 0) << application << ' ' << algorithm << ": " << finished.err << finished.out;
    }
}

}  // namespace
}  // namespace loam::tests
