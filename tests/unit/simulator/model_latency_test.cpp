// What an access costs: each level of the hierarchy, distances, atomics, fences, the store buffer, translations.
#include "traces.hpp"

namespace loam::simulator {
namespace {

// The average cost of a read in a walk over so many bytes, line after line, after one round that fills the caches.
double ladder(Trace& trace, unsigned core, std::uintptr_t bytes) {
  for (std::uintptr_t at = 0; at < bytes; at += 64) trace.read(core, kBase + at);
  std::uint64_t cycles = 0;
  for (std::uintptr_t at = 0; at < bytes; at += 64) cycles += trace.read(core, kBase + at);
  return static_cast<double>(cycles) / static_cast<double>(bytes / 64);
}

TEST(LatencyLadder, EachLevelCostsWhatTheMachineSays) {
  struct Row {
    std::uintptr_t bytes;
    double cycles;
  };
  for (const Row row : {Row{16 << 10, 3}, {32 << 10, 3}, {128 << 10, 14}, {1 << 20, 40}, {16 << 20, 200}}) {
    Trace trace(kSmall);
    EXPECT_EQ(ladder(trace, 0, row.bytes), row.cycles) << row.bytes;
  }
}

TEST(LatencyLadder, MemoryCostsByTheDistanceOfTheCoreThatTouchedThePageFirst) {
  Trace trace(kSmall);
  EXPECT_EQ(trace.read(0, kBase), 200u);
  EXPECT_EQ(trace.read(3, kBase + 64), 310u);  // the same page
  EXPECT_EQ(trace.read(3, kBase + 4096), 200u);
  EXPECT_EQ(trace.model.counts(3).from_memory[0], 1u);
  EXPECT_EQ(trace.model.counts(3).from_memory[1], 1u);
}

TEST(LatencyLadder, APageOfManyBlocksHasOneHome) {
  Trace trace(std::string(kSmall) + "page.bytes=2097152");
  EXPECT_EQ(trace.read(0, kBase + 8192), 200u);
  EXPECT_EQ(trace.read(3, kBase + 65536), 310u);
}

TEST(LatencyLadder, UniformMemoryIsTheSameForAll) {
  Trace trace(std::string(kSmall) + "memory.uniform=1");
  EXPECT_EQ(trace.read(0, kBase), 200u);
  EXPECT_EQ(trace.read(3, kBase + 64), 200u);
}

TEST(LatencyLadder, DistancesOfMoreThanOneStepAreTold) {
  Trace trace(
      "cores=4;nodes=4;l1.bytes=4096;l1.ways=4;l1.cycles=3;transfer.cycles=9,9,100,200;invalidate.cycles=9,9,80,160;"
      "memory.cycles=130,240,330;node.distances=0,1,1,2, 1,0,2,1, 1,2,0,1, 2,1,1,0");
  trace.read(0, kBase);
  EXPECT_EQ(trace.read(1, kBase + 64), 240u);
  EXPECT_EQ(trace.read(3, kBase + 128), 330u);
  trace.write(0, kBase);
  trace.meet();
  EXPECT_EQ(trace.read(3, kBase), 200u);
}

TEST(Cost, AnAtomicWaitsForItsLineAndCostsItsOwnTime) {
  Trace trace(std::string(kSmall) + "atomic.cycles=18");
  EXPECT_EQ(trace.atomic(0, kBase), 218u);
  EXPECT_EQ(trace.atomic(0, kBase), 21u);
}

TEST(Cost, AnAccessAcrossLinesIsOneOfEach) {
  Trace trace(kSmall);
  EXPECT_EQ(trace.read(0, kBase + 60, 8), 400u);
  EXPECT_EQ(trace.read(0, kBase + 60, 8), 6u);
  EXPECT_EQ(trace.read(0, kBase, 256), 3u + 3u + 200u + 200u);
  EXPECT_EQ(trace.model.counts(0).reads, 8u);
}

TEST(StoreBuffer, AWriteDoesNotWaitForItsLineUntilTheBufferIsFull) {
  Trace trace(std::string(kSmall) + "store_buffer.entries=2;fence.cycles=5;atomic.cycles=18");
  EXPECT_EQ(trace.write(0, kBase), 3u);
  EXPECT_EQ(trace.write(0, kBase + 64), 3u);         // done at 400, one after the other
  EXPECT_EQ(trace.write(0, kBase + 128), 3u + 194);  // at 6: the first leaves at 200
  EXPECT_EQ(trace.read(0, kBase), 3u);
  EXPECT_EQ(trace.clocks[0], 206u);
  EXPECT_EQ(trace.model.fence(0, 206), 600u - 206 + 5);
  EXPECT_EQ(trace.atomic(0, kBase), 600u - 206 + 3 + 18);
  EXPECT_EQ(trace.model.fence(0, 1000), 5u);
}

TEST(Translations, ThePageThatWasNotUsedForLongestLeaves) {
  Trace trace(std::string(kSmall) + "tlb.entries=4;tlb.ways=4;tlb.walk_cycles=30");
  const auto walks = [&](unsigned page) {
    const std::uint64_t before = trace.model.counts(0).walks;
    trace.read(0, kBase + page * 4096);
    return trace.model.counts(0).walks - before;
  };
  for (const unsigned page : {0u, 1u, 2u, 3u}) EXPECT_EQ(walks(page), 1u);
  for (const unsigned page : {0u, 1u, 0u}) EXPECT_EQ(walks(page), 0u);  // used again
  EXPECT_EQ(walks(4), 1u);                                              // page 2 leaves
  for (const unsigned page : {0u, 1u, 3u}) EXPECT_EQ(walks(page), 0u) << page;
  EXPECT_EQ(walks(2), 1u);  // in place of page 4
  for (const unsigned page : {0u, 1u, 3u}) EXPECT_EQ(walks(page), 0u) << page;
}

TEST(Translations, TwoLevelsAndAWalk) {
  Trace trace(std::string(kSmall) +
              "tlb.entries=4;tlb.ways=4;tlb2.entries=16;tlb2.ways=4;tlb2.cycles=7;tlb.walk_cycles=30");
  EXPECT_EQ(trace.read(0, kBase), 230u);
  EXPECT_EQ(trace.read(0, kBase + 8), 3u);
  for (unsigned page = 1; page < 5; ++page) trace.read(0, kBase + page * 4096);  // five pages, four entries
  EXPECT_EQ(trace.read(0, kBase), 3u + 7);
  for (unsigned page = 5; page < 40; ++page) trace.read(0, kBase + page * 4096 + page * 64);
  EXPECT_EQ(trace.read(0, kBase), 3u + 30);
  EXPECT_EQ(trace.model.counts(0).walks, 41u);
}

}  // namespace
}  // namespace loam::simulator
