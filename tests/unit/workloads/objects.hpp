// The workloads on one shared object, on every synchronisation that offers them.
#pragma once

#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace loam::tests {

struct Offer {
  std::string name, kind;

  bool counts_turns() const { return (kind == "lock" || kind == "delegation") && name != "global-lock"; }
  std::string threads() const { return name == "sequential" ? "--threads 1 " : "--threads 3 "; }
};

inline std::vector<Offer> offers(const std::string& workload) {
  std::vector<Offer> found;
  for (const auto& name : executable_names()) {
    const auto description = Json::parse(run(executable(name) + " --describe").out);
    if (!runs_here(description)) continue;
    for (const auto& one : description["workloads"].array())
      if (one["name"].string() == workload) found.push_back({name, description["sync"]["kind"].string()});
  }
  return found;
}

// Runs `name workload arguments` and returns the iteration.
inline Json expect_verified(const std::string& name, const std::string& arguments) {
  const auto finished = run(executable(name) + ' ' + arguments);
  EXPECT_EQ(finished.status, 0) << name << ' ' << arguments << ": " << finished.err << finished.out;
  if (finished.status != 0) return Json::parse("{}");
  for (const auto& one : records(finished)) EXPECT_EQ(record_schema().violation(one), "") << name;
  EXPECT_TRUE(record(finished, "end")["verified"].boolean());
  EXPECT_EQ(record(finished, "end")["live_blocks_delta"].number(), 0);
  return record(finished, "iteration");
}

// What a scheme or a lock reports beside its rate, of a run in which each thread does as many operations.
inline void expect_fairness(const Json& iteration, const Offer& offer) {
  EXPECT_GE(iteration["run_length"].number(), 1) << offer.name;
  EXPECT_GT(iteration["least_share"].number(), 0.99) << "each thread does as many";
  EXPECT_GE(iteration["pauses_per_look"].number(), 1) << "as many as suit this processor";
  EXPECT_GT(iteration["pause_ns"].number(), 0);
}

// Of one kind of operation.
inline void expect_latency(const Json& iteration, const std::string& operation) {
  EXPECT_GT(iteration[operation + "_p50_ns"].number(), 0) << operation;
  EXPECT_GE(iteration[operation + "_p99_ns"].number(), iteration[operation + "_p50_ns"].number());
  EXPECT_GE(iteration[operation + "_max_ns"].number() * 1.01, iteration[operation + "_p99_ns"].number());
}

inline void expect_refused(const std::string& command, const std::string& message) {
  const auto refused = run(command);
  EXPECT_EQ(refused.status, 2) << command;
  EXPECT_EQ(refused.err, "error: " + message + '\n');
}

inline const std::string kClientsOfTransactions =
    "-p alloc=client: a transaction may still read what another thread frees (use alloc=executor)";

// Names of the offers of a kind.
inline std::vector<std::string> names_of(const std::vector<Offer>& all, const std::string& kind) {
  std::vector<std::string> names;
  for (const Offer& offer : all)
    if (offer.kind == kind) names.push_back(offer.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace loam::tests
