// Writes that wait for a line which comes from another core: what they cost, and what bounds how far a core runs ahead.
#include "traces.hpp"

#include <algorithm>

namespace loam::simulator {
namespace {

// Four entries; a line stays for two cycles, so two writes drain each time that it is there.
const std::string kBuffered =
    std::string(kSmall) + "store_buffer.entries=4;line.stay_cycles=2;atomic.cycles=18;fence.cycles=5;";

// Core 0 has written the line, and core 3 takes it: it is there 170 cycles after `asked`. Core 0 then takes it back, so
// core 3 has lost it before it came.
struct Contended {
  explicit Contended(std::string_view text) : trace(text) {
    trace.write(0, kBase);
    trace.meet();
    asked = trace.clocks[3];
    EXPECT_EQ(trace.write(3, kBase + 8), 3u);
    EXPECT_EQ(trace.write(0, kBase), 3u);
  }
  std::uint64_t now() const { return trace.clocks[3]; }

  Trace trace;
  std::uint64_t asked = 0;
};

TEST(SharedStore, AWriteDoesNotWaitForALineOfAnotherCoreUntilTheBufferIsFull) {
  Contended one(kBuffered);
  EXPECT_EQ(one.trace.model.fence(3, one.now()), one.asked + 170 - one.now() + 5);
}

TEST(SharedStore, WritesDrainTogetherWhenTheLineComesThoughTheNextCoreHasAsked) {
  Contended one(kBuffered);
  const std::uint64_t transfers = one.trace.model.total().transfers[2];
  EXPECT_EQ(one.trace.write(3, kBase + 8), 3u);
  EXPECT_EQ(one.trace.model.total().transfers[2], transfers);
  EXPECT_EQ(one.trace.model.fence(3, one.now()), one.asked + 170 - one.now() + 5);
}

TEST(SharedStore, AfterABurstTheCoreWaitsForTheLineAndAsksAgain) {
  Contended one(kBuffered);
  one.trace.write(3, kBase + 8);
  const std::uint64_t transfers = one.trace.model.total().transfers[2];
  EXPECT_EQ(one.trace.write(3, kBase + 8), one.asked + 170 - (one.asked + 6) + 3);
  EXPECT_EQ(one.trace.model.total().transfers[2], transfers + 1);
  // Core 0 has it until 340 after the first request; then it comes here once more.
  EXPECT_EQ(one.trace.model.fence(3, one.now()), one.asked + 510 - one.now() + 5);
}

TEST(SharedStore, IfNobodyElseAsksTheLineIsWaitedForOnce) {
  Trace trace(kBuffered);
  trace.write(0, kBase);
  trace.meet();
  const std::uint64_t asked = trace.clocks[3];
  for (int i = 0; i < 2; ++i) EXPECT_EQ(trace.write(3, kBase + 8), 3u) << i;
  EXPECT_EQ(trace.write(3, kBase + 8), 170u - 6 + 3);
  EXPECT_EQ(trace.clocks[3], asked + 173);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(trace.write(3, kBase + 8), 3u) << i;
  EXPECT_EQ(trace.model.total().transfers[2], 1u);
}

TEST(SharedStore, PrivateWritesBehindItTakeEntries) {
  Trace trace(kBuffered);
  trace.write(3, kBase + 4096);
  trace.write(0, kBase);
  trace.meet();
  trace.clocks[3] += 1000;  // the private line is there
  trace.write(3, kBase);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(trace.write(3, kBase + 4096), 3u) << i;
  EXPECT_EQ(trace.write(3, kBase + 4096), 170u - 12 + 3);
}

TEST(SharedStore, AFullBufferWaitsBeforeTheLineIsAskedFor) {
  Trace trace(kBuffered);
  trace.write(3, kBase + 8192);
  trace.write(0, kBase);
  trace.write(0, kBase + 4096);
  trace.meet();
  trace.clocks[3] += 1000;  // the private line is there
  trace.write(3, kBase);
  for (int i = 0; i < 3; ++i) trace.write(3, kBase + 8192);
  const std::uint64_t misses = trace.model.counts(3).misses;
  EXPECT_TRUE(trace.once(3, kBase + 4096, Access::Kind::write).again);
  EXPECT_EQ(trace.model.counts(3).misses, misses);
  EXPECT_FALSE(trace.once(3, kBase + 4096, Access::Kind::write).again);
  EXPECT_EQ(trace.model.counts(3).misses, misses + 1);
}

TEST(SharedStore, AReadOfItsBytesIsAnsweredFromTheBuffer) {
  Contended one(kBuffered);
  EXPECT_EQ(one.trace.read(3, kBase + 8), 3u);
  EXPECT_EQ(one.trace.read(3, kBase + 12, 4), 3u);
  // Other bytes of the line, and one byte behind: when the line is there.
  EXPECT_EQ(one.trace.read(3, kBase + 9, 8), one.asked + 170 - (one.asked + 9));
  EXPECT_EQ(one.trace.read(3, kBase + 16), 170u + 170u);  // it has gone on to core 0: a transfer behind that one
}

TEST(SharedStore, AnAtomicDrainsTheBufferFirst) {
  Contended one(kBuffered);
  // There at 170, with core 0 until 340, here again at 510.
  EXPECT_EQ(one.trace.atomic(3, kBase + 8), one.asked + 510 - (one.asked + 3));
}

TEST(SharedStore, ALateWriteIsNoSharingForItsOwnCore) {
  Contended one(kBuffered);
  one.trace.write(3, kBase + 8);
  one.trace.meet();
  one.trace.clocks[3] += 1000;
  one.trace.read(3, kBase + 8);
  one.trace.model.settle();
  EXPECT_EQ(one.trace.model.counts(3).true_sharing, 0u);
  EXPECT_EQ(one.trace.model.counts(3).false_sharing, 1u);
}

TEST(SharedStore, ALateWriteIsSharingForAThirdCore) {
  Trace trace(kBuffered);
  trace.write(1, kBase);
  trace.meet();
  trace.write(3, kBase + 8);  // core 1 loses it
  trace.write(0, kBase);
  trace.write(3, kBase + 16);  // late: core 0 has asked
  trace.meet();
  trace.clocks[1] += 1000;
  trace.read(1, kBase + 16);
  EXPECT_EQ(trace.model.counts(1).true_sharing, 1u);
}

// Cores in the order of their clocks store to words so many bytes apart. returns the cycles of a store
double cycles_of_a_store(Trace& trace, unsigned cores, std::uintptr_t stride) {
  constexpr unsigned kStores = 2000;
  constexpr std::uint64_t kBeside = 3;  // an access of the loop around
  std::vector<unsigned> left(cores, kStores);
  for (unsigned done = 0; done < cores;) {
    unsigned first = cores;
    for (unsigned core = 0; core < cores; ++core)
      if (left[core] != 0 && (first == cores || trace.clocks[core] < trace.clocks[first])) first = core;
    const Outcome outcome = trace.once(first, kBase + first * stride, Access::Kind::write);
    if (outcome.again) continue;
    trace.clocks[first] += kBeside;
    if (--left[first] == 0) ++done;
  }
  return static_cast<double>(*std::max_element(trace.clocks.begin(), trace.clocks.end())) / kStores;
}

// As machines/xeon-e5405.toml.
constexpr std::string_view kXeon =
    "cores=8;nodes=2;l1.bytes=32768;l1.ways=8;l1.cycles=3;l2.bytes=6291456;l2.ways=24;l2.shared_by=2;l2.cycles=15;"
    "transfer.cycles=24,160,180;invalidate.cycles=20,140,160;memory.cycles=240;memory.uniform=1;store_buffer.entries="
    "20;"
    "line.stay_cycles=4,18,18";

TEST(SharedStore, EightCoresThatStoreIntoOneLineAreSlowerByThePublishedFactor) {
  Trace alone(kXeon), together(kXeon), apart(kXeon);
  const double one = cycles_of_a_store(alone, 1, 8);
  const double factor = cycles_of_a_store(together, 8, 8) / one;
  EXPECT_GT(factor, 3);
  EXPECT_LT(factor, 20);
  EXPECT_NEAR(cycles_of_a_store(apart, 8, 64) / one, 1, 0.1);
}

TEST(SharedStore, ADeeperBufferLetsACoreRunFurtherAhead) {
  const auto ahead = [](std::string_view entries) {
    Trace trace(std::string(kSmall) + "store_buffer.entries=" + std::string(entries));
    trace.write(3, kBase + 4096);
    trace.write(0, kBase);
    trace.meet();
    trace.clocks[3] += 1000;
    trace.write(3, kBase);
    for (int i = 0; i < 16; ++i) trace.write(3, kBase + 4096);
    return trace.clocks[3];
  };
  EXPECT_GT(ahead("8"), ahead("20"));
}

}  // namespace
}  // namespace loam::simulator
