// The team of workers: their stacks move by the offset asked for, and their waiting is counted.
#include "workloads/harness/team.hpp"

#include "workloads/harness/run_delay.hpp"

#include <gtest/gtest.h>
#include <cstdint>
#include <cstdlib>

namespace loam::tests {
namespace {

using workloads::Options;
using workloads::Team;

Options two_threads_on_one_cpu() {
  Options options;
  options.threads = 2;
  options.warmup_ms = 0;
  options.cpu_list[0] = platform::topology().cpus()[0].number;
  options.cpu_count = 1;
  return options;
}

constexpr std::uintptr_t kPage = 4096;

// Place of a local variable of the second worker within its page.
std::uintptr_t place_in_page(const char* offset) {
  ::setenv("LOAM_STACK_OFFSET", offset, 1);
  const auto options = two_threads_on_one_cpu();
  std::uintptr_t place = 0;
  auto work = [&place](Team::Member& member) {
    volatile char here = 0;
    member.wait_for_start();
    member.timed([&](workloads::Pace&) {
      if (member.index() == 1) place = reinterpret_cast<std::uintptr_t>(&here) % kPage;
    });
  };
  Team team(options, 0);
  team.run(work);
  ::unsetenv("LOAM_STACK_OFFSET");
  return place;
}

TEST(Team, StacksMoveByTheOffset) {
  const auto base = place_in_page("0");
  EXPECT_EQ(place_in_page("0"), base) << "without an offset all runs share one place in the page";
  for (const std::uintptr_t offset : {16u, 64u, 2048u, 4080u})
    EXPECT_EQ(place_in_page(std::to_string(offset).c_str()), (base + kPage - offset) % kPage) << offset;
  EXPECT_EQ(place_in_page("nonsense"), base);
}

TEST(Team, CountsHowLongWorkersWaited) {
  if (!workloads::this_thread_run_delay_ns()) GTEST_SKIP() << "this kernel does not count run delay";
  const auto options = two_threads_on_one_cpu();
  constexpr std::uint64_t kDurationMs = 100;
  auto work = [](Team::Member& member) {
    member.wait_for_start();
    member.timed([](workloads::Pace& pace) {
      volatile std::uint64_t done = 0;
      while (pace.goes_on(done)) done = done + 1;
    });
  };
  Team team(options, kDurationMs);
  team.run(work);
  ASSERT_TRUE(team.run_delay_s());
  // Each has the processor half of the time.
  EXPECT_GT(*team.run_delay_s(), 0.3 * team.elapsed_s());
  EXPECT_LT(*team.run_delay_s() + team.thread_cpu_s(), 2.1 * team.elapsed_s());
}

}  // namespace
}  // namespace loam::tests
