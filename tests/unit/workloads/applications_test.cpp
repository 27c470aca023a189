// The applications (docs/internals/applications.md), as programs: every one under every synchronisation that offers it.
#include "tests/harness/watchdog.hpp"
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace loam::tests {
namespace {

// An executable, and the applications that it offers: the workloads that can be told to give up attempts.
struct Offer {
  std::string sync;
  double threads_max;
  bool aborts;  // attempts can be given up
  std::vector<std::string> applications;
};

const std::vector<Offer>& offers() {
  static const std::vector<Offer> kOffers = [] {
    std::vector<Offer> all;
    for (const auto& name : executable_names()) {
      const auto description = Json::parse(run(executable(name) + " --describe").out);
      if (!runs_here(description)) continue;
      Offer offer{name, description["sync"]["threads_max"].number(), description["sync"].has("tm"), {}};
      for (const auto& workload : description["workloads"].array())
        for (const auto& parameter : workload["parameters"].array())
          if (parameter["name"].string() == "abort_every") offer.applications.push_back(workload["name"].string());
      if (!offer.applications.empty()) all.push_back(offer);
    }
    return all;
  }();
  return kOffers;
}

// Inputs that take milliseconds; the smallest named size for an application that is not listed.
std::string tiny(const std::string& application) {
  static const std::map<std::string, std::string> kTiny{
      {"bayes", " -p variables=8 -p records=64 -p parents=2 -p edges=2"},
      {"genome", " -p gene=128 -p segment=16 -p segments=4096"},
      {"intruder", " -p flows=256 -p length_max=16"},
      {"kmeans", " -p points=512 -p attributes=8 -p threshold_ppm=20000"},
      {"labyrinth", " -p width=24 -p height=24 -p depth=3 -p paths=32"},
      {"ssca2", " -p scale=9"},
      {"vacation", " -p relations=128 -p tasks=1000"},
      {"yada", " -p points=300"},
  };
  const auto found = kTiny.find(application);
  return application + (found == kTiny.end() ? " -p size=sim" : found->second);
}

// What a run on one thread must have in common with any other: all but times, and what the synchronisation counts.
std::map<std::string, double> deterministic(const Json& iteration) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : iteration.object())
    if (name.starts_with("tx_") || name == "operations" || name.ends_with("_digest") || name == "iterations" ||
        name == "reserved" || name == "attacks_found" || name == "unique_segments" || name == "cells_filled" ||
        name == "elements_last" || name == "in_degree_checksum" || name == "score_learned")
      values[name] = value.number();
  return values;
}

TEST(Applications, EverySynchronisationThatHasOneHasAll) {
  // Builds that are not measured have two algorithms with applications beside sequential and global-lock.
  ASSERT_GE(offers().size(), 4u);
  for (const auto& offer : offers())
    for (const char* name : {"bayes", "genome", "intruder", "kmeans", "labyrinth", "ssca2", "vacation", "yada"})
      EXPECT_NE(std::ranges::find(offer.applications, name), offer.applications.end()) << offer.sync << " " << name;
}

TEST(Applications, OneThreadGivesTheSameUnderEverySynchronisation) {
  const Schema schema = record_schema();
  std::map<std::string, std::map<std::string, double>> expected;
  for (const auto& offer : offers())
    for (const auto& application : offer.applications) {
      const auto finished = run(executable(offer.sync) + " " + tiny(application));
      ASSERT_EQ(finished.status, 0) << offer.sync << " " << application << ": " << finished.err << finished.out;
      for (const auto& one : records(finished)) EXPECT_EQ(schema.violation(one), "") << offer.sync << application;
      EXPECT_EQ(record(finished, "end")["live_blocks_delta"].number(), 0);
      const auto values = deterministic(record(finished, "iteration"));
      EXPECT_GT(values.size(), 2u);
      const auto [first, is_first] = expected.emplace(application, values);
      EXPECT_EQ(values, first->second) << offer.sync << " " << application;
    }
}

// Three threads: no power of two, and more than the machine may have.
TEST(Applications, SeveralThreadsAreVerified) {
  for (const auto& offer : offers())
    for (const auto& application : offer.applications) {
      if (offer.threads_max < 3) continue;
      const auto finished = run(executable(offer.sync) + " " + tiny(application) + " --threads 3");
      EXPECT_EQ(finished.status, 0) << offer.sync << " " << application << ": " << finished.err << finished.out;
    }
}

// Attempts are given up after all their work, and what is freed is overwritten at once: whoever keeps what an attempt
// has changed, or reads what another one has freed, goes wrong. tests/lab/test_applications.py does it for all algorithms.
TEST(Applications, InjectedAbortsAndPoisonedMemoryChangeNoResult) {
  const unsigned runs = std::getenv("LOAM_TEST_ALL") != nullptr ? 200 : 5;
  const std::string poison = "GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0 ";
  for (const auto& offer : offers()) {
    if (!offer.aborts) continue;
    for (const auto& application : offer.applications)
      for (unsigned i = 0; i < runs; ++i) {
        const auto finished = run(poison + executable(offer.sync) + " " + tiny(application) +
                                  " --threads 2 -p abort_every=" + std::to_string(2 + i % 5));
        ASSERT_EQ(finished.status, 0) << offer.sync << " " << application << ": " << finished.err << finished.out;
        ASSERT_GT(record(finished, "iteration")["tm"]["aborts_explicit"].number(), 0);
      }
  }
}

TEST(Applications, BlameRunsAreVerified) {
  for (const char* application : {"bayes", "genome", "intruder", "kmeans", "labyrinth", "ssca2", "vacation", "yada"}) {
    const auto finished = run(executable("etl-wb") + " " + tiny(application) + " --threads 2 --blame --explain 1");
    EXPECT_EQ(finished.status, 0) << application << ": " << finished.err << finished.out;
  }
}

// Means per transaction, as the literature's tables print them, and how far ours may be from the printed digits.
struct Golden {
  const char* site;
  double transactions, reads, words_read, writes, words_written, allocations, frees;
};

void expect_sets(const std::string& command, const std::vector<Golden>& rows) {
  may_take(60);  // the longest takes ten seconds in a checked build
  const auto finished = run(executable("sequential") + " " + command + " -p sites=sets");
  ASSERT_EQ(finished.status, 0) << finished.err;
  std::map<std::string, std::map<std::string, double>> found;
  for (const auto& one : records(finished)) {
    if (one["kind"].string() != "series") continue;
    const auto& columns = one["columns"].array();
    for (std::size_t i = 0; i < columns.size(); ++i)
      found[one["name"].string()][columns[i].string()] = one["rows"].array()[0].array()[i].number();
  }
  for (const auto& row : rows) {
    ASSERT_TRUE(found.contains(row.site)) << row.site;
    auto& values = found[row.site];
    EXPECT_EQ(values["transactions"], row.transactions) << row.site;
    const auto mean = [&](const char* name, double expected, double digit) {
      EXPECT_NEAR(values[name] / row.transactions, expected, digit) << row.site << " " << name;
    };
    mean("reads", row.reads, 0.051);
    mean("words_read", row.words_read, 0.051);
    mean("writes", row.writes, 0.051);
    mean("words_written", row.words_written, 0.051);
    mean("allocations", row.allocations, 0.0051);
    mean("frees", row.frees, 0.0051);
  }
}

// Transactions are those of the published programs. So are the sets, but for what docs/internals/applications.md says.
TEST(SetSizes, Genome) {
  expect_sets("genome -p size=medium", {{"sets_deduplicate", 174'763, 30.3, 18.0, 0.2, 0.2, 0.19, 0},
                                        {"sets_claim", 16'321, 1, 1, 1, 1, 0, 0},
                                        {"sets_insert_prefix", 1'028'223, 46.7, 45.7, 2, 2, 1, 0},
                                        {"sets_insert_whole", 16'321, 3.5, 2.5, 2, 2, 1, 0},
                                        {"sets_match", 30'251, 3.8, 3.3, 2.7, 2.7, 0, 0}});
}

TEST(SetSizes, Intruder) {
  expect_sets("intruder -p size=medium", {{"sets_take_packet", 478'568, 5, 5, 1, 1, 0, 0},
                                          {"sets_process", 478'567, 50.8, 43.5, 2.45, 2.42, 1.13, 1.06},
                                          {"sets_take_complete", 478'567, 3.1, 3.1, 0.03, 0.03, 0, 0.034}});
}

TEST(SetSizes, Kmeans) {
  expect_sets("kmeans -p size=medium -p contention=low", {{"sets_accumulate", 786'432, 25, 13, 25, 13, 0, 0},
                                                          {"sets_take_chunk", 262'128, 1, 1, 1, 1, 0, 0},
                                                          {"sets_add_delta", 48, 1, 1, 1, 1, 0, 0}});
}

TEST(SetSizes, Vacation) {
  expect_sets("vacation -p size=sim -p tasks=100000",
              {{"sets_reserve", 90'030, 293.97, 107.89, 7.28, 6.27, 3.70, 0},
               {"sets_delete_customer", 5'021, 347.88, 232.56, 18.78, 18.38, 0, 16.82},
               {"sets_update_tables", 4'949, 95.92, 75.05, 5.96, 5.90, 0.033, 0.232}});
}

TEST(BadInput, ApplicationsRefuseWhatCannotBeBeforeAnythingRuns) {
  const auto refused = [](const std::string& sync, const std::string& arguments) {
    const auto finished = run(executable(sync) + " " + arguments);
    EXPECT_EQ(finished.status, 2) << arguments;
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_NE(refused("etl-wb", "genome -p segments=268435456 -p segment=1024 -p gene=16777216").find("MiB of memory"),
            std::string::npos);
  EXPECT_NE(refused("etl-wb", "genome -p gene=64 -p segment=65").find("-p segment=65"), std::string::npos);
  EXPECT_NE(refused("etl-wb", "vacation -p size=tiny").find("must be one of small, sim, medium, large"),
            std::string::npos);
  EXPECT_NE(refused("etl-wb", "kmeans --threads 1024").find("runs at most 1023 threads"), std::string::npos);
  EXPECT_NE(refused("etl-wb", "kmeans -p sites=sets").find("use --sync sequential"), std::string::npos);
  EXPECT_NE(refused("global-lock", "kmeans -p abort_every=5").find("cannot take an operation back"), std::string::npos);
}

}  // namespace
}  // namespace loam::tests
