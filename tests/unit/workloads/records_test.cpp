// What the executables say: --describe and records against the schema, and the numbers against each other.
#include "tests/harness/watchdog.hpp"
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <set>
#include <utility>

namespace loam::tests {
namespace {

TEST(Describe, EveryExecutableMatchesTheSchema) {
  tests::may_take(60);
  const Schema schema = record_schema();
  const auto names = executable_names();
  for (const char* needed : {"sequential", "global-lock", "etl-wb", "plain", "none"})
    EXPECT_NE(std::ranges::find(names, needed), names.end()) << needed << " was not built";
  for (const auto& name : names) {
    const auto finished = run(executable(name) + " --describe");
    ASSERT_EQ(finished.status, 0) << finished.err;
    const Json description = Json::parse(finished.out);
    EXPECT_EQ(schema.violation(description, "description"), "") << name;
    EXPECT_EQ(description["sync"]["name"].string(), name);
    for (const auto& workload : description["workloads"].array()) {
      const auto& kinds = workload["kinds"].array();
      EXPECT_NE(std::ranges::find(kinds, description["sync"]["kind"]), kinds.end()) << name;
    }
  }
}

TEST(Describe, ASynchronisationSaysWhatItGuaranteesAndHowManyThreadsItRuns) {
  const auto sync_of = [](const char* name) { return Json::parse(run(executable(name) + " --describe").out)["sync"]; };
  EXPECT_NE(sync_of("etl-wb")["guarantees"].string().find("opacity"), std::string::npos);
  EXPECT_EQ(sync_of("etl-wb")["threads_max"].number(), 1023);
  for (const char* name : {"sequential", "global-lock", "plain"}) EXPECT_NE(sync_of(name)["guarantees"].string(), "");
  EXPECT_EQ(sync_of("sequential")["threads_max"].number(), 1);
}

TEST(Describe, RatiosAreMadeOfMetricsThatExist) {
  const Json description = Json::parse(run(executable("etl-wb") + " --describe").out);
  for (const auto& workload : description["workloads"].array()) {
    std::set<std::string> names;
    for (const auto& metric : workload["metrics"].array()) names.insert(metric["name"].string());
    for (const auto& metric : workload["metrics"].array()) {
      EXPECT_EQ(metric["kind"].string() == "ratio", metric.has("of"));
      if (!metric.has("of")) continue;
      for (const auto& part : metric["of"].array()) EXPECT_TRUE(names.contains(part.string())) << part.string();
    }
  }
}

// Every executable, tiny: records match the schema, come in order, and are verified.
TEST(Records, EveryExecutableMatchesTheSchema) {
  tests::may_take(60);
  const Schema schema = record_schema();
  const std::vector<std::string> sets = {"intset -p structure=list", "intset -p structure=hash",
                                         "intset -p structure=hash -p hash=identity", "intset -p structure=tree",
                                         "intset -p generator=erand48"};
  const std::vector<std::string> allocation = {"threadtest", "threadtest -p batch=100", "blocks"};
  for (const auto& name : executable_names()) {
    const Json description = Json::parse(run(executable(name) + " --describe").out);
    if (!runs_here(description)) continue;
    const std::string kind = description["sync"]["kind"].string();
    if (kind == "managed") continue;  // managed_test
    std::vector<std::string> brought;
    if (kind == "structure")
      for (const auto& one : description["workloads"].array()) brought.push_back(one["name"].string());
    for (const auto& workload : name == "none" ? allocation : kind == "structure" ? brought : sets) {
      const auto finished = run(executable(name) + " " + workload + (workload == "blocks" ? "" : " -p operations=500"));
      ASSERT_EQ(finished.status, 0) << name << " " << workload << ": " << finished.err << finished.out;
      const auto all = records(finished);
      for (const auto& one : all) EXPECT_EQ(schema.violation(one), "") << name << " " << workload;
      ASSERT_GE(all.size(), 3u);
      EXPECT_EQ(all.front()["kind"].string(), "begin");
      EXPECT_EQ(all.back()["kind"].string(), "end");
      EXPECT_TRUE(all.back()["verified"].boolean());
      EXPECT_EQ(all.back()["live_blocks_delta"].number(), 0);
    }
  }
}

TEST(Records, BeginHoldsTheWholeIdentity) {
  const auto begin = record(run(executable("etl-wb") + " intset --threads 2 --seed 18446744073709551615 --cpus 0 "
                                                       "-p mapping=shadow -p operations=10 -p update_percent=20"),
                            "begin");
  EXPECT_EQ(begin["workload"].string(), "intset");
  EXPECT_EQ(begin["sync"].string(), "etl-wb");
  EXPECT_EQ(begin["threads"].number(), 2);
  EXPECT_EQ(begin["cpus"].array().size(), 1u);
  const auto& mapping = begin["tm"]["records_mapping"].string();
  EXPECT_TRUE(mapping.starts_with("shadow") || mapping == "table");  // where the range is refused
  EXPECT_GE(begin["build_id"].string().size(), 16u);
  const auto& parameters = begin["parameters"];
  EXPECT_EQ(parameters["mapping"].string(), "shadow");
  EXPECT_EQ(parameters["update_percent"].number(), 20);
  EXPECT_EQ(parameters["shift"].number(), 5);  // a default
  EXPECT_EQ(parameters["structure"].string(), "list");
}

TEST(Records, NumbersAgreeWithEachOther) {
  const auto finished = run(executable("etl-wb") +
                            " intset --threads 2 -p structure=tree -p elements=20 -p range=40 "
                            "-p operations=20000 --blame");
  ASSERT_EQ(finished.status, 0) << finished.err;
  const auto one = record(finished, "iteration");
  EXPECT_EQ(one["operations"].number(), 40000);
  const auto& tm = one["tm"];
  EXPECT_EQ(tm["commits"].number(), one["operations"].number());
  double causes = 0;
  for (const auto& [name, value] : tm.object())
    if (name.starts_with("aborts_") && name != "aborts_per_attempt") causes += value.number();
  EXPECT_EQ(tm["aborts"].number(), causes);
  EXPECT_EQ(tm["attempts"].number(), tm["commits"].number() + tm["aborts"].number());
  EXPECT_NEAR(one["ops_per_s"].number() * one["elapsed_s"].number(), one["operations"].number(), 1);
  const auto histogram = record(finished, "histogram");
  EXPECT_EQ(histogram["name"].string(), "aborts_per_commit");
  EXPECT_EQ(histogram["bounds"].array().size(), histogram["counts"].array().size());
  double transactions = 0;
  for (const auto& count : histogram["counts"].array()) transactions += count.number();
  EXPECT_EQ(transactions, tm["commits"].number());
}

TEST(Records, AnExplainedRunAddsItsEvidenceBeforeTheEnd) {
  const Schema schema = record_schema();
  // For a time, not for a number of operations: on a busy machine one thread could do all of its before the other
  // begins, which would then have its slot.
  const std::string options = " --threads 2 --blame -p duration_ms=100 -p elements=64 -p range=128";
  // By words: an owner that is not running is met again and again, by an attempt that repeats itself.
  std::set<std::pair<double, double>> owners_known, owners_unknown;
  for (const std::string structure : {"list", "hash", "tree"}) {
    const auto finished = run(executable("etl-wb") + " intset -p structure=" + structure + options + " --explain 1");
    ASSERT_EQ(finished.status, 0) << finished.err;
    const auto all = records(finished);
    EXPECT_EQ(all.back()["kind"].string(), "end");
    std::set<double> sites{0};
    for (const auto& one : all) {
      ASSERT_EQ(schema.violation(one), "");
      if (one["kind"].string() != "site") continue;
      EXPECT_TRUE(sites.insert(one["number"].number()).second);
    }
    std::set<double> writers;
    for (const auto& one : all) {
      if (one["kind"].string() == "conflict") {
        // Every access of a workload goes through the runtime, and every node comes from it.
        for (const std::string side : {"mine", "theirs"}) {
          if (!one[side].has("word")) continue;
          const double site = one[side]["site"].number();
          EXPECT_TRUE(sites.contains(site));
          EXPECT_TRUE(one[side].has("block"));
          // The only one that may have lost it: an owner, which has written another word of the same place since.
          if (side == "theirs" && one["met"].string() == "locked") {
            auto& owners = site > 0 ? owners_known : owners_unknown;
            owners.emplace(one["mine"]["word"].number(), one[side]["word"].number());
          } else {
            EXPECT_GT(site, 0) << side << " " << one["met"].string();
          }
        }
        EXPECT_TRUE(one["mine"].has("word"));
      }
      if (one["kind"].string() != "footprint") continue;
      EXPECT_TRUE(one["whole"].boolean());
      bool written = false;
      for (const auto& row : one["rows"].array()) {
        EXPECT_GT(row.array()[0].number(), 0) << "a word of no known block";
        EXPECT_GT(row.array()[3].number() + row.array()[4].number(), 0) << "a row of nothing";
        written = written || row.array()[4].number() > 0;
      }
      if (written) writers.insert(one["thread"].number());
    }
    EXPECT_EQ(writers.size(), 2u) << "both threads have committed updates";
  }
  EXPECT_LE(owners_unknown.size(), 2 + owners_known.size() / 20);
  EXPECT_THROW(record(run(executable("etl-wb") + " intset" + options), "footprint"), std::runtime_error)
      << "a blame run that is not explained";
}

TEST(Records, ADurationIsKept) {
  const auto one_run = [] {
    auto one = record(run(executable("sequential") + " intset -p duration_ms=120 --warmup-ms 10"), "iteration");
    EXPECT_GT(one["operations"].number(), 0);
    return one;
  };
  EXPECT_GE(longest_measured_s(0.119, one_run), 0.119);
}

TEST(Records, GoToADescriptorOrAPath) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "records.jsonl").string();
  const auto command = executable("sequential") + " intset -p operations=10 --records ";
  EXPECT_EQ(run(command + path).out, "");
  EXPECT_EQ(run(command + "7 7>>" + path).out, "");
  std::size_t ends = 0;
  const auto text = read_file(path);
  for (std::size_t at = 0; (at = text.find("\"kind\":\"end\"", at)) != std::string::npos; ++at) ++ends;
  EXPECT_EQ(ends, 2u);  // a path is appended to
}

}  // namespace
}  // namespace loam::tests
