// What the harness promises to a synchronisation and to a workload, shown on an executable that uses all of it
// (contract/): kinds, a reserved processor, start and stop, a parameter that is a file.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <fstream>

namespace loam::tests {
namespace {

std::string contract() { return (build_folder() / "loam-contract").string(); }

// Two processors that this process may use; fewer where there are fewer.
std::vector<double> usable_cpus() {
  std::vector<double> all;
  const Json begin = record(run(executable("none") + " threadtest -p operations=1"), "begin");
  for (const auto& cpu : begin["cpus"].array()) all.push_back(cpu.number());
  return all;
}

TEST(Contract, AnExecutableOffersTheWorkloadsOfItsKind) {
  const auto description = Json::parse(run(contract() + " --describe").out);
  EXPECT_EQ(record_schema().violation(description, "description"), "");
  EXPECT_EQ(description["sync"]["kind"].string(), "delegation");
  EXPECT_EQ(description["sync"]["cpus_reserved"].number(), 1);
  EXPECT_FALSE(description["sync"].has("tm"));
  std::vector<std::string> names;
  for (const auto& workload : description["workloads"].array()) names.push_back(workload["name"].string());
  EXPECT_EQ(names, (std::vector<std::string>{"intset", "reads-file"}));
}

TEST(Contract, AWorkloadOfAnotherKindIsRefusedWithTheKindsThatWouldDo) {
  const auto finished = run(contract() + " elsewhere");
  EXPECT_EQ(finished.status, 2);
  EXPECT_EQ(finished.err,
            "error: WORKLOAD=elsewhere: runs on synchronisations of kind transactional or managed (contract is of kind "
            "delegation)\n");
}

TEST(Contract, StartAndStopStandAroundTheWorkloadAndAProcessorIsReserved) {
  const auto cpus = usable_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  const auto finished = run(contract() + " intset --threads 2 -p operations=200");
  ASSERT_EQ(finished.status, 0) << finished.err;
  const auto last = std::to_string(static_cast<unsigned>(cpus.back()));
  EXPECT_EQ(finished.err, "threads=2 workers=" + std::to_string(cpus.size() - 1) + " reserved=" + last + "\nstopped\n");
  for (const auto& one : records(finished)) EXPECT_EQ(record_schema().violation(one), "");
  const auto begin = record(finished, "begin");
  EXPECT_EQ(begin["cpus"].array().size(), cpus.size() - 1);
  EXPECT_EQ(begin["reserved_cpus"].array().at(0).number(), cpus.back());
  EXPECT_FALSE(begin.has("tm"));
  EXPECT_FALSE(record(finished, "iteration").has("tm")) << "a lock has no attempts";
}

TEST(Contract, TooFewProcessorsAreRefused) {
  const auto cpu = std::to_string(static_cast<unsigned>(usable_cpus().front()));
  const auto finished = run(contract() + " intset --cpus " + cpu);
  EXPECT_EQ(finished.status, 2);
  EXPECT_EQ(finished.err,
            "error: --cpus: contract keeps 1 of them for itself, and there are 1 (its threads need at least one "
            "more)\n");
}

TEST(Contract, AFileIsAParameter) {
  if (usable_cpus().size() < 2) GTEST_SKIP() << "needs two processors";
  const TemporaryFolder folder;
  const auto path = folder.path() / "input";
  std::ofstream(path) << "twelve bytes";
  const auto finished = run(contract() + " reads-file -p input=" + path.string());
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(record(finished, "begin")["parameters"]["input"].string(), path.string());
  EXPECT_EQ(record(finished, "iteration")["input_bytes"].number(), 12);

  const auto none = run(contract() + " reads-file");
  EXPECT_EQ(record(none, "begin")["parameters"]["input"].string(), "") << "none is given";
  EXPECT_EQ(record(none, "end")["message"].string(), "no input");

  const auto refused = [](const std::string& text) { return run(contract() + " reads-file -p input=" + text).err; };
  EXPECT_EQ(refused("/nonexistent/input"),
            "error: -p input=/nonexistent/input: cannot be read: No such file or directory\n");
  EXPECT_EQ(refused(folder.path().string()), "error: -p input=" + folder.path().string() + ": is no regular file\n");
  EXPECT_EQ(refused(""), "error: -p input: must be the path of a file\n");
}

}  // namespace
}  // namespace loam::tests
