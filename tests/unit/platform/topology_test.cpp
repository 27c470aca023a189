#include "runtime/platform/topology.hpp"

#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine.hpp"
#include "tests/unit/support/process.hpp"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace loam::platform {
namespace {

// A sysfs folder with the given (package, core) per processor.
struct Place {
  int package, core;
};

std::vector<unsigned> order(const std::vector<Place>& places, std::vector<unsigned> allowed) {
  const tests::TemporaryFolder folder;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto cpu = folder.path() / ("cpu" + std::to_string(i)) / "topology";
    std::filesystem::create_directories(cpu);
    std::ofstream(cpu / "physical_package_id") << places[i].package << "\n";
    std::ofstream(cpu / "core_id") << places[i].core << "\n";
  }
  static Topology topology;
  topology.read(folder.path().c_str(), allowed);
  std::vector<unsigned> numbers;
  for (const auto& cpu : topology.cpus()) numbers.push_back(cpu.number);
  return numbers;
}

using Numbers = std::vector<unsigned>;

TEST(Topology, CoresComeBeforeTheirSecondHardwareThreads) {
  // Siblings side by side, as some firmware numbers them: 0 and 1 share a core.
  EXPECT_EQ(order({{0, 0}, {0, 0}, {0, 1}, {0, 1}}, {0, 1, 2, 3}), (Numbers{0, 2, 1, 3}));
  // Siblings in the upper half: 0 and 2 share a core.
  EXPECT_EQ(order({{0, 0}, {0, 1}, {0, 0}, {0, 1}}, {0, 1, 2, 3}), (Numbers{0, 1, 2, 3}));
}

TEST(Topology, PackagesAreFilledOneAfterTheOther) {
  // Packages alternate in the numbering.
  EXPECT_EQ(order({{0, 0}, {1, 0}, {0, 1}, {1, 1}}, {0, 1, 2, 3}), (Numbers{0, 2, 1, 3}));
}

TEST(Topology, OnlyAllowedProcessorsAreListed) {
  EXPECT_EQ(order({{0, 0}, {0, 0}, {0, 1}, {0, 1}}, {1, 3}), (Numbers{1, 3}));
}

TEST(Topology, WithoutSysfsEachProcessorIsACore) {
  static Topology topology;
  const unsigned allowed[] = {0, 5, 7};
  topology.read("/nonexistent", allowed);
  ASSERT_EQ(topology.cpus().size(), 3u);
  for (const auto& cpu : topology.cpus()) EXPECT_EQ(cpu.sibling, 0u);
  EXPECT_TRUE(topology.contains(5));
  EXPECT_FALSE(topology.contains(1));
}

TEST(Topology, ThisMachineHasWhatTheProcessMayUse) {
  std::vector<unsigned> allowed(kCpusMax);
  allowed.resize(allowed_cpus(allowed));
  ASSERT_FALSE(allowed.empty());
  EXPECT_EQ(topology().cpus().size(), allowed.size());
  for (const unsigned number : allowed) EXPECT_TRUE(topology().contains(number));
}

TEST(Affinity, APinnedThreadRunsWhereItWasPut) {
  for (const auto& cpu : topology().cpus()) {
    std::thread([&] {
      ASSERT_TRUE(pin_this_thread(cpu.number));
      EXPECT_EQ(cpu_number(), cpu.number);
    }).join();
  }
}

TEST(Affinity, ImpossibleProcessorsAreRefused) {
  EXPECT_FALSE(pin_this_thread(kCpusMax));
  EXPECT_FALSE(pin_this_thread(kCpusMax - 1));
}

TEST(CpuList, ParsesNumbersAndRanges) {
  struct Row {
    std::string_view text;
    Numbers numbers;
  };
  const Row rows[] = {{"0", {0}}, {"0,1", {0, 1}}, {"2-4", {2, 3, 4}}, {"7,0-1,1023", {7, 0, 1, 1023}}};
  for (const auto& row : rows) {
    Numbers out(16);
    const int count = parse_cpu_list(row.text, out);
    ASSERT_GE(count, 0) << row.text;
    out.resize(static_cast<std::size_t>(count));
    EXPECT_EQ(out, row.numbers) << row.text;
  }
}

TEST(CpuList, RefusesWhatIsNoList) {
  for (const std::string_view text : {"", ",", "0,", ",0", "a", "0-", "-1", "3-1", "1024", "0 1", "0;1", "0-15,16"}) {
    Numbers out(16);
    EXPECT_EQ(parse_cpu_list(text, out), -1) << text;
  }
}

}  // namespace
}  // namespace loam::platform
