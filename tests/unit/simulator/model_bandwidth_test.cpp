// Memory and links that carry so much: queueing at saturation, and that the order of requests does not matter.
#include "traces.hpp"

#include "simulator/model/arena.hpp"
#include "simulator/model/bandwidth.hpp"

#include <algorithm>

namespace loam::simulator {
namespace {

// Cores that read a new line, think, and read the next: in a closed system, n cores finish n lines per time of memory plus
// thinking until that is what the memory can carry.
double lines_per_kilocycle(unsigned cores, std::uint64_t think, const std::string& more) {
  Trace trace("cores=" + std::to_string(cores) +
              ";l1.bytes=4096;l1.ways=4;l1.cycles=3;memory.cycles=200;transfer.cycles=9;invalidate.cycles=9;" + more);
  constexpr std::uint64_t kUntil = 400'000;
  std::uint64_t lines = 0;
  while (true) {
    const auto first = std::min_element(trace.clocks.begin(), trace.clocks.end());
    if (*first >= kUntil) break;
    trace.read(static_cast<unsigned>(first - trace.clocks.begin()), kBase + lines * 64);
    *first += think;
    ++lines;
  }
  return static_cast<double>(lines) * 1000 / kUntil;
}

TEST(Queueing, BelowSaturationCoresDoNotFeelEachOther) {
  // 4 bytes per cycle: a line in 16 cycles; 8 cores that think for 800 use a seventh of it.
  EXPECT_NEAR(lines_per_kilocycle(8, 800, "memory.bytes_per_cycle=4"), 8.0, 0.1);
}

TEST(Queueing, AtSaturationTheMemoryDecides) {
  EXPECT_NEAR(lines_per_kilocycle(32, 100, "memory.bytes_per_cycle=4"), 1000.0 / 16, 0.7);
  EXPECT_NEAR(lines_per_kilocycle(32, 100, "memory.bytes_per_cycle=2.5"), 2500.0 / 64, 0.5);
}

TEST(Queueing, WithoutALimitThereIsNoQueue) { EXPECT_NEAR(lines_per_kilocycle(32, 100, ""), 32 / 0.3, 1.5); }

TEST(Queueing, ALinkBetweenNodesSaturatesByItself) {
  // All pages belong to node 0; the cores of node 1 read them through a link that needs 256 cycles for a line.
  Trace trace(
      "cores=4;nodes=2;l1.bytes=4096;l1.ways=4;l1.cycles=3;memory.cycles=100,200;transfer.cycles=9;invalidate.cycles=9;"
      "link.bytes_per_cycle=0.25");
  for (unsigned page = 0; page < 100; ++page) trace.read(0, kBase + page * 4096);
  trace.meet();
  const std::uint64_t begin = trace.clocks[2];
  for (unsigned line = 0; line < 400; ++line)
    for (const unsigned core : {2u, 3u})
      trace.read(core, kBase + (line / 16) * 4096 + 64 + (line % 16 * 2 + core) * 64);
  EXPECT_NEAR(static_cast<double>(trace.clocks[2] - begin) / 400, 2 * 256, 10);
}

TEST(Bandwidth, ACoreThatIsBehindDoesNotWaitForWhatIsAskedForLater) {
  Arena arena;
  Bandwidth memory;
  memory.init(arena, 1000);
  for (unsigned i = 0; i < 100; ++i) memory.wait(100'000 + i, 64);
  EXPECT_EQ(memory.wait(1000, 64), 0u);
}

TEST(Bandwidth, TheSumOfWaitsIsTheSameInAnyOrderOfCalls) {
  const auto total = [](std::vector<std::uint64_t> times) {
    Arena arena;
    Bandwidth memory;
    memory.init(arena, 4000);
    std::uint64_t latest = 0;
    for (const std::uint64_t time : times) latest = std::max(latest, time + memory.wait(time, 64));
    return latest;
  };
  std::vector<std::uint64_t> times;
  for (std::uint64_t i = 0; i < 1000; ++i) times.push_back(i * 7);
  const std::uint64_t forwards = total(times);
  std::vector<std::uint64_t> groups;  // as cores that run ahead by 200 cycles
  for (std::uint64_t i = 0; i < 1000; i += 40)
    for (std::uint64_t core = 0; core < 4; ++core)
      for (std::uint64_t k = core; k < 40; k += 4) groups.push_back((i + k) * 7);
  EXPECT_NEAR(static_cast<double>(total(groups)), static_cast<double>(forwards), 64);
  EXPECT_NEAR(static_cast<double>(forwards), 1000 * 16, 64);
}

}  // namespace
}  // namespace loam::simulator
