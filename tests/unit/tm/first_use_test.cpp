// A fork while another thread is in the middle of what the runtime does at its first use. That thread does not exist in
// the child. The child does the same by itself and waits for no thread.
#include "include/loam/delegation.hpp"
#include "include/loam/tm.h"
#include "runtime/delegation/cell.hpp"
#include "runtime/delegation/waiting.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/topology.hpp"
#include "runtime/tm/hardware/availability.hpp"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace loam {
namespace {

#ifdef LOAM_TSAN
#define LOAM_NEEDS_FORKS_OF_THREADS() GTEST_SKIP() << "the thread sanitizer does not follow forks of threads"
#else
#define LOAM_NEEDS_FORKS_OF_THREADS() LOAM_NEEDS_POINTS()
#endif

// In a separate process: another thread forks when use() has reached `point`. use() must return true in both processes.
template <class Use>
void fork_in_the_middle(std::string_view point, Use use) {
  LOAM_NEEDS_FORKS_OF_THREADS();
  tests::in_child([&] {
    bool child_was_good = false;
    tests::Interpose forks(point, 0, [&] { child_was_good = tests::in_fork(use); });
    EXPECT_TRUE(use());
    EXPECT_TRUE(forks.reached());
    EXPECT_TRUE(child_was_good);
    EXPECT_TRUE(use());
  });
}

TEST(FirstUse, WhetherHardwareTransactionsWork) {
  fork_in_the_middle("base.found", [] { return tm::hardware::available() == tm::hardware::reason_against().empty(); });
}

TEST(FirstUse, TheLengthOfAPause) {
  fork_in_the_middle("base.found", [] { return delegation::pause_ns() >= 0.1; });
}

TEST(FirstUse, TheProcessorsOfTheMachine) {
  fork_in_the_middle("platform.topology", [] {
    const platform::Topology& topology = platform::topology();
    return !topology.cpus().empty() && &platform::topology() == &topology;
  });
}

TEST(FirstUse, ACellOfDelegation) {
  fork_in_the_middle("delegation.cells", [] {
    delegation::Cells::give_to_pool(delegation::Cells::take_from_pool());
    return true;
  });
}

TEST(FirstUse, AServerOfDelegation) {
  if (tests::kInstrumented) GTEST_SKIP() << "the child of a process with threads starts one";
  fork_in_the_middle("delegation.servers", [] {
    delegation::Server<> server{delegation::Settings{}};
    delegated<int, delegation::Server<>> number(server, 0);
    return number.apply([](int& n) { return ++n; }) == 1;
  });
}

// Here the fork waits: the settings of the environment are applied as a whole.
TEST(FirstUse, WhatTheEnvironmentSaysOfTransactions) {
  LOAM_NEEDS_FORKS_OF_THREADS();
  tests::in_child([] {
    setenv("LOAM_TM", "algorithm=etl-wt", 1);
    static int value = 0;
    const auto add = [] {
      tests::atomically([](loam_tx* tx) { loam_tx_write_i32(tx, &value, loam_tx_read_i32(tx, &value) + 1); });
    };
    std::atomic<bool> configuring{false}, goes_on{false};
    std::thread first([&] {
      tests::Interpose pause("tm.configuring", 0, [&] {
        configuring = true;
        platform::sleep_ns(50'000'000);
        goes_on = true;
      });
      add();
      EXPECT_TRUE(pause.reached());
    });
    while (!configuring) platform::yield();
    EXPECT_TRUE(tests::in_fork([&] {
      const int before = value;  // the other thread's transaction may have committed before the fork
      add();
      return goes_on && value == before + 1 && std::string_view(loam_algorithm_in_use()) == "etl-wt";
    }));
    first.join();
    EXPECT_EQ(value, 1);
  });
}

}  // namespace
}  // namespace loam
