// Hardware transactions: capacity exactly at the geometry, conflicts by coherence, who wins, what a core finds afterwards.
#include "traces.hpp"

namespace loam::simulator {
namespace {

const std::string kEager =
    std::string(kSmall) +
    "transactions.policy=requester-wins;transactions.begin_cycles=40;transactions.commit_cycles=30;"
    "transactions.abort_cycles=100;";
const std::string kLazy =
    std::string(kSmall) +
    "transactions.policy=committer-wins;transactions.begin_cycles=40;transactions.commit_cycles=30;"
    "transactions.abort_cycles=100;";

// Uses so many lines of this stride in one transaction. returns whether all of them had room
bool fits(const std::string& machine, unsigned lines, std::uintptr_t stride, Access::Kind kind) {
  Trace trace(machine);
  trace.begin(0);
  for (unsigned line = 0; line < lines; ++line) {
    trace.access(0, kBase + line * stride, 8, kind);
    if (trace.last.self_abort) {
      EXPECT_FALSE(trace.model.in_transaction(0));
      const AbortCause expected = kind == Access::Kind::read ? AbortCause::read_capacity : AbortCause::write_capacity;
      EXPECT_EQ(trace.model.last_abort(0).cause, expected);
      EXPECT_EQ(trace.model.counts(0).aborts[static_cast<unsigned>(expected)], 1u);
      return false;
    }
  }
  const Outcome end = trace.commit(0);
  EXPECT_TRUE(end.victims.empty());
  EXPECT_EQ(trace.model.counts(0).commits, 1u);
  return true;
}

TEST(Capacity, ExactlyTheLinesOfTheFirstLevel) {
  using enum Access::Kind;
  for (const std::string& machine : {kEager, kLazy})
    for (const auto kind : {read, write, atomic}) {
      EXPECT_TRUE(fits(machine, 512, 64, kind));
      EXPECT_FALSE(fits(machine, 513, 64, kind));
      EXPECT_TRUE(fits(machine, 8, 4096, kind));
      EXPECT_FALSE(fits(machine, 9, 4096, kind));
    }
}

TEST(Capacity, ReadsThatAreTrackedInTheSecondLevelHaveItsRoom) {
  using enum Access::Kind;
  const std::string machine = kEager + "transactions.reads=l2";
  EXPECT_TRUE(fits(machine, 4096, 64, read));
  EXPECT_FALSE(fits(machine, 513, 64, write));
  // A set of the second level has 8 ways at a stride of 32 KiB; what it drops while the first level has it is lost.
  EXPECT_TRUE(fits(machine, 8, 32768, read));
  EXPECT_TRUE(fits(kEager + "transactions.reads=unlimited", 20000, 64, read));
}

TEST(Capacity, WrittenLinesMayBeFewer) {
  using enum Access::Kind;
  const std::string machine = kEager + "transactions.written_lines=16";
  EXPECT_TRUE(fits(machine, 16, 64, write));
  EXPECT_FALSE(fits(machine, 17, 64, write));
  EXPECT_TRUE(fits(machine, 512, 64, read));
}

TEST(Capacity, LinesFromBeforeTheTransactionGiveWay) {
  Trace trace(kEager);
  for (unsigned line = 0; line < 1024; ++line) trace.write(0, kBase + line * 64);
  trace.begin(0);
  for (unsigned line = 0; line < 512; ++line) {
    trace.write(0, kBase + 0x100000 + line * 64);
    ASSERT_FALSE(trace.last.self_abort) << line;
  }
}

TEST(Conflict, ARequesterAbortsTheOneThatWrote) {
  for (const auto kind : {Access::Kind::read, Access::Kind::write, Access::Kind::atomic}) {
    Trace trace(kEager);
    trace.begin(0);
    trace.write(0, kBase);
    trace.meet();
    trace.access(2, kBase, 8, kind);
    CoreSet expected;
    expected.add(0);
    EXPECT_EQ(trace.last.victims, expected);
    EXPECT_FALSE(trace.last.self_abort);
    EXPECT_FALSE(trace.model.in_transaction(0));
    const Abort& why = trace.model.last_abort(0);
    EXPECT_EQ(why.cause, AbortCause::conflict);
    EXPECT_EQ(why.by, 2u);
    EXPECT_EQ(why.address, kBase);
    EXPECT_EQ(why.pc, 0x4002u);
    EXPECT_FALSE(why.false_conflict);
    EXPECT_EQ(trace.model.counts(0).aborted_cycles, 240u);  // begin, and a line from memory
  }
}

TEST(Conflict, AWriteAbortsAllThatReadAndAReadNone) {
  Trace trace(kEager);
  for (unsigned core = 0; core < 3; ++core) {
    trace.begin(core);
    trace.read(core, kBase);
    EXPECT_TRUE(trace.last.victims.empty());
    trace.meet();
  }
  trace.write(3, kBase);
  EXPECT_EQ(trace.last.victims.size(), 3u);
  EXPECT_EQ(trace.model.total().aborts[static_cast<unsigned>(AbortCause::conflict)], 3u);
}

TEST(Conflict, AWriterOfWhatItReadAbortsTheOtherReadersNotItself) {
  Trace trace(kEager);
  trace.begin(0);
  trace.begin(1);
  trace.read(0, kBase);
  trace.meet();
  trace.read(1, kBase);
  trace.meet();
  trace.write(0, kBase);
  EXPECT_EQ(trace.last.victims.size(), 1u);
  EXPECT_TRUE(trace.last.victims.contains(1));
  EXPECT_TRUE(trace.model.in_transaction(0));
}

TEST(Conflict, OtherBytesOfTheLineMakeItFalse) {
  Trace trace(kEager);
  trace.begin(0);
  trace.write(0, kBase);
  trace.meet();
  trace.read(2, kBase + 32);
  EXPECT_TRUE(trace.model.last_abort(0).false_conflict);
  EXPECT_EQ(trace.model.counts(0).false_conflicts, 1u);
  LineReport top[2];
  ASSERT_EQ(trace.model.top_lines(LineOrder::aborts, top), 1u);
  EXPECT_EQ(top[0].address, kBase);
  EXPECT_EQ(top[0].aborts, 1u);
  EXPECT_EQ(top[0].false_conflicts, 1u);
}

TEST(Conflict, AfterTheEndNobodyConflicts) {
  for (const std::string& machine : {kEager, kLazy})
    for (const bool commits : {true, false}) {
      Trace trace(machine);
      trace.begin(0);
      trace.read(0, kBase);
      trace.write(0, kBase + 64);
      if (commits)
        trace.commit(0);
      else
        trace.model.abort_transaction(0, trace.clocks[0], AbortCause::explicit_abort);
      trace.meet();
      trace.write(2, kBase);
      EXPECT_TRUE(trace.last.victims.empty());
      trace.write(2, kBase + 64);
      EXPECT_TRUE(trace.last.victims.empty());
      EXPECT_EQ(trace.model.counts(0).aborts[static_cast<unsigned>(AbortCause::explicit_abort)], commits ? 0u : 1u);
    }
}

TEST(Conflict, ReadersWhoseLineLeftTheFirstLevelAreFound) {
  Trace trace(kEager + "transactions.reads=l2");
  trace.begin(0);
  for (unsigned line = 0; line < 9; ++line) trace.read(0, kBase + line * 4096);  // the first one is dropped
  trace.meet();
  trace.read(1, kBase);  // must not make it core 1's alone
  EXPECT_TRUE(trace.last.victims.empty());
  trace.write(1, kBase);
  EXPECT_TRUE(trace.last.victims.contains(0));
}

TEST(Abort, WhatWasWrittenIsGoneAndIsMissedForThatReason) {
  Trace trace(kEager);
  trace.write(0, kBase);
  trace.begin(0);
  trace.write(0, kBase);
  trace.read(0, kBase + 64);
  trace.model.abort_transaction(0, trace.clocks[0], AbortCause::explicit_abort);
  EXPECT_EQ(trace.read(0, kBase), 14u);  // the value from before lies in the group's cache
  EXPECT_EQ(trace.model.counts(0).after_abort, 1u);
  EXPECT_EQ(trace.read(0, kBase + 64), 3u);
}

TEST(Abort, WhatWasThereBeforeIsNotReadFromMemory) {
  // A transfer between nodes costs more than memory: it is made only if memory does not have the line.
  Trace trace(kEager + "transfer.cycles=25,60,400");
  trace.write(0, kBase);
  trace.begin(0);
  trace.write(0, kBase);
  trace.model.abort_transaction(0, trace.clocks[0], AbortCause::explicit_abort);
  trace.meet();
  EXPECT_EQ(trace.read(2, kBase), 400u);
}

TEST(Abort, BytesOfAnAbortedWriteAreNoSharing) {
  Trace trace(kEager);
  trace.read(1, kBase);
  trace.meet();
  trace.begin(0);
  trace.write(0, kBase);
  trace.model.abort_transaction(0, trace.clocks[0], AbortCause::explicit_abort);
  trace.meet();
  trace.read(1, kBase);
  trace.model.settle();
  EXPECT_EQ(trace.model.counts(1).true_sharing, 0u);
  EXPECT_EQ(trace.model.counts(1).false_sharing, 1u);
}

TEST(Abort, BytesOfACommittedWriteAre) {
  for (const std::string& machine : {kEager, kLazy}) {
    Trace trace(machine);
    trace.read(1, kBase);
    trace.meet();
    trace.begin(0);
    trace.write(0, kBase);
    trace.commit(0);
    trace.meet();
    trace.read(1, kBase);
    EXPECT_EQ(trace.model.counts(1).true_sharing, 1u);
  }
}

TEST(Abort, AnInterruptEndsTheTransactionThatItMeets) {
  Trace trace(kEager + "interrupt.every_cycles=1000");
  trace.clocks[0] = 900;
  trace.begin(0);
  trace.read(0, kBase);  // 940 to 1140
  EXPECT_FALSE(trace.last.self_abort);
  trace.read(0, kBase);
  EXPECT_TRUE(trace.last.self_abort);
  EXPECT_EQ(trace.last.cycles, 100u);
  EXPECT_EQ(trace.model.last_abort(0).cause, AbortCause::interrupt);
  trace.begin(0);
  trace.read(0, kBase);
  EXPECT_FALSE(trace.last.self_abort);
}

TEST(CommitterWins, BufferedWritesDisturbNobodyUntilTheCommit) {
  Trace trace(kLazy);
  trace.begin(0);
  trace.begin(1);
  trace.write(0, kBase);
  trace.meet();
  trace.read(1, kBase);
  EXPECT_TRUE(trace.last.victims.empty());
  trace.read(2, kBase);  // outside of a transaction: the old value
  EXPECT_TRUE(trace.last.victims.empty());
  trace.meet();
  const Outcome end = trace.commit(0);
  EXPECT_TRUE(end.victims.contains(1));
  EXPECT_EQ(end.victims.size(), 1u);
  EXPECT_EQ(end.cycles, 30u + 150);  // core 2, another node
  EXPECT_FALSE(trace.model.in_transaction(1));
}

TEST(CommitterWins, TheFirstOfTwoWritersThatCommitsWins) {
  Trace trace(kLazy);
  trace.begin(0);
  trace.begin(1);
  trace.write(0, kBase);
  trace.meet();
  trace.write(1, kBase);
  trace.meet();
  EXPECT_TRUE(trace.commit(1).victims.contains(0));
  EXPECT_FALSE(trace.model.in_transaction(0));
}

TEST(CommitterWins, AWriteOutsideOfTransactionsAborts) {
  Trace trace(kLazy);
  trace.begin(0);
  trace.write(0, kBase);
  trace.meet();
  trace.write(1, kBase);
  EXPECT_TRUE(trace.last.victims.contains(0));
}

TEST(Hot, WhatMustGoInExactOrder) {
  Trace trace(kEager);
  const auto hot = [&](unsigned core, std::uintptr_t address, Access::Kind kind) {
    return trace.model.is_hot({core, address, 8, kind, trace.clocks[core], 0});
  };
  using enum Access::Kind;
  EXPECT_TRUE(hot(0, kBase, atomic));
  EXPECT_FALSE(hot(0, kBase, write));  // nobody has it
  trace.write(0, kBase);
  trace.meet();
  EXPECT_FALSE(hot(0, kBase, write));  // its own
  EXPECT_TRUE(hot(1, kBase, read));    // another core owns it
  trace.read(1, kBase);
  trace.meet();
  EXPECT_TRUE(hot(1, kBase, read));  // it just changed hands
  EXPECT_TRUE(hot(0, kBase, read));
  for (auto& clock : trace.clocks) clock += 30000;
  EXPECT_FALSE(hot(1, kBase, read));  // long ago
  EXPECT_TRUE(hot(1, kBase, write));  // an upgrade
  EXPECT_FALSE(hot(2, kBase, read));
  EXPECT_TRUE(hot(2, kBase, write));      // others have it
  EXPECT_TRUE(hot(2, kBase - 4, write));  // a part of it
}

}  // namespace
}  // namespace loam::simulator
