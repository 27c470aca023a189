// Lines that move between cores: counts and costs derived by hand.
#include "traces.hpp"

namespace loam::simulator {
namespace {

TEST(Coherence, ATransferCostsByTheLevelOfTheOwner) {
  struct Row {
    unsigned reader;
    std::uint64_t cycles;
  };
  for (const Row row : {Row{1, 25}, {2, 170}, {3, 170}}) {
    Trace trace(kSmall);
    trace.write(0, kBase);
    trace.meet();
    EXPECT_EQ(trace.read(row.reader, kBase), row.cycles) << row.reader;
    EXPECT_EQ(trace.read(row.reader, kBase), 3u);
    trace.meet();
    EXPECT_EQ(trace.read(0, kBase), 3u);  // the owner keeps a shared copy
  }
}

TEST(Coherence, AnUpgradeCostsTheFurthestCopy) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  trace.meet();
  trace.read(1, kBase);
  trace.meet();
  EXPECT_EQ(trace.write(0, kBase), 20u);  // core 1, same group
  EXPECT_EQ(trace.write(0, kBase), 3u);
  trace.meet();
  trace.read(1, kBase);
  trace.read(3, kBase);
  trace.meet();
  EXPECT_EQ(trace.write(0, kBase), 150u);  // core 3, another node
  EXPECT_EQ(trace.model.counts(0).upgrades, 2u);
  EXPECT_EQ(trace.model.counts(1).invalidations, 2u);
  EXPECT_EQ(trace.model.counts(3).invalidations, 1u);
}

TEST(Coherence, ALineThatOneCoreUsesIsWrittenWithoutAsking) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  EXPECT_EQ(trace.write(0, kBase), 3u);
  EXPECT_EQ(trace.model.counts(0).upgrades, 0u);
}

TEST(Coherence, AfterASilentWriteNobodyReadsTheOldLine) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  trace.write(0, kBase);
  trace.meet();
  EXPECT_EQ(trace.read(2, kBase), 170u);  // from the owner, not from memory
  EXPECT_EQ(trace.model.counts(2).transfers[2], 1u);
}

// Two cores take turns: read the flag, write the data, write the flag. Per turn the flag moves twice (read, upgrade) and the
// data once; both misses are true sharing.
TEST(Coherence, PingPong) {
  Trace trace(kSmall);
  constexpr unsigned kTurns = 1000;
  const std::uintptr_t flag = kBase, data = kBase + 64;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    const unsigned core = turn % 2 == 0 ? 0 : 2;
    trace.read(core, flag);
    trace.write(core, data);
    trace.write(core, flag);
    trace.meet();
  }
  trace.model.settle();
  const Counts all = trace.model.total();
  EXPECT_EQ(all.misses, 2 * kTurns);
  EXPECT_EQ(all.cold, 4u);
  EXPECT_EQ(all.true_sharing, 2 * kTurns - 4);
  EXPECT_EQ(all.false_sharing, 0u);
  EXPECT_EQ(all.upgrades, kTurns - 1);  // the first turn has the flag alone
  EXPECT_EQ(all.transfers[2], 2 * kTurns - 2);
  EXPECT_EQ(all.invalidations, 2 * kTurns - 2);
}

// Each core increments its own counter; the counters lie in one line. Each increment is a read that misses and an upgrade.
TEST(Coherence, FalseSharing) {
  Trace trace(kSmall);
  constexpr unsigned kRounds = 500;
  for (unsigned round = 0; round < kRounds; ++round)
    for (unsigned core = 0; core < 4; ++core) {
      trace.read(core, kBase + core * 8);
      trace.write(core, kBase + core * 8);
      trace.meet();
    }
  trace.model.settle();
  const Counts all = trace.model.total();
  EXPECT_EQ(all.cold, 4u);
  EXPECT_EQ(all.false_sharing, 4 * kRounds - 4);
  EXPECT_EQ(all.true_sharing, 0u);
  EXPECT_EQ(all.upgrades, 4 * kRounds - 1);
}

TEST(Coherence, PaddedCountersDoNotMove) {
  Trace trace(kSmall);
  for (unsigned round = 0; round < 500; ++round)
    for (unsigned core = 0; core < 4; ++core) {
      trace.read(core, kBase + core * 64);
      trace.write(core, kBase + core * 64);
    }
  const Counts all = trace.model.total();
  EXPECT_EQ(all.misses, 4u);
  EXPECT_EQ(all.upgrades + all.invalidations, 0u);
}

TEST(Coherence, ReadSharingCostsOneMissEach) {
  Trace trace(kSmall);
  for (unsigned round = 0; round < 10; ++round)
    for (unsigned core = 0; core < 4; ++core)
      for (unsigned line = 0; line < 64; ++line) trace.read(core, kBase + line * 64);
  const Counts all = trace.model.total();
  EXPECT_EQ(all.misses, 4u * 64);
  EXPECT_EQ(all.cold, 4u * 64);
}

TEST(Coherence, OneTransferPerFetchAdd) {
  Trace trace(kSmall);
  for (unsigned turn = 0; turn < 1000; ++turn) {
    trace.atomic(turn % 4, kBase);
    trace.meet();
  }
  const Counts all = trace.model.total();
  EXPECT_EQ(all.misses, 1000u);
  EXPECT_EQ(all.true_sharing, 996u);
  EXPECT_EQ(all.transfers[0] + all.transfers[1] + all.transfers[2], 999u);
}

// Dubois: whether a miss is true sharing is decided by what is used until the line leaves again.
TEST(Sharing, AMissBecomesTrueWhenAByteOfTheOthersIsUsedLater) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  trace.meet();
  trace.write(1, kBase + 8);
  trace.meet();
  trace.read(0, kBase);  // open
  EXPECT_EQ(trace.model.counts(0).true_sharing, 0u);
  trace.read(0, kBase + 16);
  EXPECT_EQ(trace.model.counts(0).true_sharing, 0u);
  trace.read(0, kBase + 12, 1);
  EXPECT_EQ(trace.model.counts(0).true_sharing, 1u);
  trace.model.settle();
  EXPECT_EQ(trace.model.counts(0).false_sharing, 0u);
}

TEST(Sharing, BytesThatOthersWroteBeforeTheLossDoNotCount) {
  Trace trace(kSmall);
  for (const std::uintptr_t written : {8, 8, 16}) {
    trace.write(1, kBase + written);
    trace.meet();
    trace.read(0, kBase + 8);
    trace.meet();
  }
  trace.model.settle();
  EXPECT_EQ(trace.model.counts(0).cold, 1u);
  EXPECT_EQ(trace.model.counts(0).true_sharing, 1u);
  EXPECT_EQ(trace.model.counts(0).false_sharing, 1u);
}

TEST(Sharing, WritesOfAThirdCoreCountWhoeverTheLineComesFrom) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  trace.meet();
  trace.write(1, kBase + 8);
  trace.meet();
  trace.write(2, kBase + 16);
  trace.meet();
  trace.read(0, kBase + 8);  // written by core 1, comes from core 2
  EXPECT_EQ(trace.model.counts(0).true_sharing, 1u);
}

// A line may be lost to another core first, and for lack of room afterwards: each miss is of its own kind.
TEST(Sharing, ALossIsForgottenWithTheMissThatItCaused) {
  for (const unsigned read_at : {0u, 8u}) {  // the byte that core 1 wrote, and another
    Trace trace(kSmall);
    trace.read(0, kBase);
    trace.meet();
    trace.write(1, kBase);
    trace.meet();
    trace.read(0, kBase + read_at);
    for (unsigned line = 1; line < 9; ++line) trace.read(0, kBase + line * 4096);  // its set is full
    trace.read(0, kBase + read_at);
    EXPECT_EQ(trace.model.counts(0).capacity, 1u) << read_at;
    EXPECT_EQ(trace.model.counts(0).true_sharing, read_at == 0 ? 1u : 0u);
    EXPECT_EQ(trace.model.counts(0).false_sharing, read_at == 0 ? 0u : 1u);
  }
}

TEST(Sharing, AMissForLackOfRoomIsNoSharing) {
  Trace trace(kSmall);
  for (unsigned line = 0; line < 9; ++line) trace.read(0, kBase + line * 4096);
  trace.read(0, kBase);
  EXPECT_EQ(trace.model.counts(0).capacity, 1u);
}

TEST(Serialised, TransfersOfOneLineWaitForEachOther) {
  Trace trace(kSmall);
  trace.write(0, kBase);
  trace.meet();
  // At the same time: each waits for those before it.
  EXPECT_EQ(trace.write(2, kBase), 170u);
  EXPECT_EQ(trace.write(1, kBase), 170u + 170u);
  EXPECT_EQ(trace.write(3, kBase), 340u + 170u);
  EXPECT_EQ(trace.model.counts(3).queue_cycles, 340u);
}

TEST(Serialised, ReadersOfALineThatNobodyWritesDoNotWait) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  trace.meet();
  trace.read(1, kBase);
  trace.meet();
  const std::uint64_t begin = trace.clocks[2];
  EXPECT_EQ(trace.read(2, kBase), 170u);
  EXPECT_EQ(trace.clocks[3], begin);
  EXPECT_EQ(trace.read(3, kBase), 14u);
}

TEST(Outer, AChangedLineThatLeftTheFirstLevelIsReadFromTheNextOne) {
  Trace trace(kSmall);
  trace.write(0, kBase);
  for (unsigned line = 1; line <= 8; ++line) trace.read(0, kBase + line * 4096);
  EXPECT_EQ(trace.model.counts(0).writebacks, 1u);
  trace.meet();
  EXPECT_EQ(trace.read(1, kBase), 14u);   // the group's cache
  EXPECT_EQ(trace.read(2, kBase), 170u);  // from the other node: memory does not have it
}

TEST(Outer, AWriteTakesTheLineOutOfOthersOuterCaches) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  for (unsigned line = 1; line <= 8; ++line) trace.read(0, kBase + line * 4096);  // now in the group's cache alone
  trace.meet();
  trace.write(2, kBase);
  for (unsigned line = 1; line <= 8; ++line) trace.read(2, kBase + line * 4096);
  trace.meet();
  EXPECT_EQ(trace.read(0, kBase), 170u);
}

// Private second levels, no third. A transfer within the node (250) costs more than memory (200): it is made only if memory
// does not have the line.
constexpr std::string_view kDearTransfers =
    "cores=4;nodes=2;l1.bytes=32768;l1.ways=8;l1.cycles=3;l2.bytes=262144;l2.ways=8;l2.cycles=14;"
    "transfer.cycles=250,250,400;invalidate.cycles=20,50,150;memory.cycles=200,310";

void push_out(Trace& trace, unsigned core) {
  for (unsigned line = 1; line <= 8; ++line) trace.read(core, kBase + 0x100000 * (core + 1) + line * 4096);
  trace.meet();
}

TEST(Outer, ALineThatAnotherGroupHasIsNotExclusive) {
  Trace trace(kDearTransfers);
  trace.read(0, kBase);
  push_out(trace, 0);
  trace.read(2, kBase);
  EXPECT_EQ(trace.write(2, kBase), 150u);  // that copy has to go
}

TEST(Outer, ALineThatAnotherNodeHasIsNotExclusive) {
  Trace trace(kSmall);
  trace.read(0, kBase);
  for (unsigned line = 1; line <= 8; ++line) trace.read(0, kBase + line * 32768);  // now in the third level alone
  trace.meet();
  trace.read(2, kBase);
  EXPECT_EQ(trace.write(2, kBase), 150u);
}

TEST(Outer, AChangedLineThatLeftIsNotReadFromMemory) {
  Trace trace(kDearTransfers);
  trace.write(0, kBase);
  push_out(trace, 0);
  EXPECT_EQ(trace.read(1, kBase), 250u);
  Trace clean(kDearTransfers);
  clean.read(0, kBase);
  push_out(clean, 0);
  EXPECT_EQ(clean.read(1, kBase), 200u);
}

TEST(Outer, AChangedLineThatWasPassedOnIsNotReadFromMemory) {
  Trace trace(kDearTransfers);
  trace.write(0, kBase);
  trace.meet();
  trace.read(2, kBase);
  trace.meet();
  push_out(trace, 0);
  push_out(trace, 2);
  EXPECT_EQ(trace.read(1, kBase), 250u);
}

TEST(Outer, WhatLeavesAnInclusiveCacheLeavesTheFirstLevel) {
  Trace trace(
      "cores=2;l1.bytes=4096;l1.ways=8;l1.cycles=3;l2.bytes=4096;l2.ways=2;l2.shared_by=2;l2.cycles=14;l2.inclusive=1;"
      "transfer.cycles=25;invalidate.cycles=20;memory.cycles=200");
  for (unsigned line = 0; line < 3; ++line) trace.read(0, kBase + line * 2048);  // one set of two ways
  EXPECT_EQ(trace.read(0, kBase), 200u);
  EXPECT_EQ(trace.model.counts(0).capacity, 1u);
}

TEST(Incoherent, WhatTwoCoresUseAndOneWritesIsNotCached) {
  Trace trace(
      "cores=2;coherence=none;l1.bytes=4096;l1.ways=4;l1.cycles=2;transfer.cycles=10;invalidate.cycles=10;"
      "memory.cycles=10");
  EXPECT_EQ(trace.write(0, kBase), 10u);
  EXPECT_EQ(trace.write(0, kBase), 2u);  // its own as yet
  EXPECT_EQ(trace.read(1, kBase), 10u);
  EXPECT_EQ(trace.read(1, kBase), 10u);
  EXPECT_EQ(trace.read(0, kBase), 10u);
  EXPECT_EQ(trace.model.total().uncached, 3u);
  trace.read(0, kBase + 64);
  trace.read(1, kBase + 64);
  EXPECT_EQ(trace.read(1, kBase + 64), 2u);  // nobody writes it
  EXPECT_EQ(trace.write(1, kBase + 64), 10u);
  EXPECT_EQ(trace.read(0, kBase + 64), 10u);
}

}  // namespace
}  // namespace loam::simulator
