// The compiler may remove malloc-write-free loops and unused look-ups: the machine code must still hold them.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace loam::tests {
namespace {

// The disassembly of each function whose demangled name contains `part`.
std::vector<std::string> functions(const std::string& name, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(run("objdump -dC --no-show-raw-insn " + executable(name)).out);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(">:")) {
      inside = line.find(part) != std::string::npos && line.find(".cold]") == std::string::npos;
      if (inside) found.emplace_back();
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

bool calls(const std::string& code, const std::string& function) {
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);)
    if (line.find("call") != std::string::npos && line.find("<" + function) != std::string::npos) return true;
  return false;
}

class Calls : public testing::Test {
 protected:
  void SetUp() override {
    if (run("objdump --version").status != 0) GTEST_SKIP() << "no objdump";
  }
};

TEST_F(Calls, ThreadtestCallsMallocAndFree) {
  for (const std::string loop : {"pairs_of_one<", "pairs_of_batches<"}) {
    const auto found = functions("none", loop);
    ASSERT_EQ(found.size(), 2u) << loop << ": with and without touch";
    for (const auto& code : found) {
      EXPECT_TRUE(calls(code, "malloc@plt")) << loop << "\n" << code;
      EXPECT_TRUE(calls(code, "free@plt")) << loop << "\n" << code;
    }
  }
}

// Every processor needs the line for an atomic addition; for the plain one some need it only now and then.
TEST_F(Calls, LinesCountsAsItIsTold) {
  for (const std::string loop : {"count_in<true>", "count_in<false>"}) {
    const auto found = functions("none", loop);
    ASSERT_EQ(found.size(), 1u) << loop;
    EXPECT_EQ(found[0].find("lock ") != std::string::npos, loop == "count_in<true>") << loop << "\n" << found[0];
  }
}

// A batch that does not divide the number of pairs is rounded up.
TEST(Threadtest, PairsAreCountedExactly) {
  struct Row {
    const char* batch;
    int pairs;
  };
  for (const auto& [batch, pairs] : {Row{"1", 7000}, Row{"7", 7000}, Row{"64", 7040}}) {
    const auto command = executable("none") + " threadtest -p operations=7000 -p batch=" + batch;
    EXPECT_EQ(record(run(command), "iteration")["pairs"].number(), pairs) << batch;
  }
}

}  // namespace
}  // namespace loam::tests
