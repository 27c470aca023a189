// Random accesses and transactions on small caches: the invariants hold after each, and the counts add up.
#include "traces.hpp"

#include <random>

namespace loam::simulator {
namespace {

// Tiny caches, so that everything that can leave does.
const std::string kTiny =
    "cores=8;nodes=2;line.bytes=32;l1.bytes=512;l1.ways=4;l1.cycles=3;l2.bytes=1024;l2.ways=4;l2.shared_by=2;l2.cycles="
    "14;"
    "transfer.cycles=25,60,170;invalidate.cycles=20,50,150;memory.cycles=200,310;memory.bytes_per_cycle=4;"
    "link.bytes_per_cycle=2;store_buffer.entries=4;tlb.entries=4;tlb.ways=2;tlb.walk_cycles=30;";

void step(Trace& trace, std::mt19937_64& random, bool transactions) {
  const auto core = static_cast<unsigned>(random() % 8);
  if (transactions && random() % 8 == 0) {
    if (!trace.model.in_transaction(core))
      trace.begin(core);
    else if (random() % 4 == 0)
      trace.model.abort_transaction(core, trace.clocks[core], AbortCause::other);
    else
      trace.commit(core);
    return;
  }
  const auto kind = static_cast<Access::Kind>(random() % 16 < 9 ? 0 : random() % 16 < 14 ? 1 : 2);
  const unsigned bytes = 1u << random() % 5;
  const bool running = trace.model.in_transaction(core);
  trace.access(core, kBase + random() % 4096, bytes, kind);
  EXPECT_FALSE(trace.last.victims.contains(core));
  if (trace.last.self_abort) {
    EXPECT_TRUE(running);
    EXPECT_FALSE(trace.model.in_transaction(core));
  }
  trace.last.victims.for_each([&](unsigned victim) { EXPECT_FALSE(trace.model.in_transaction(victim)); });
}

void check(const std::string& machine) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Trace trace(machine);
    std::mt19937_64 random(seed);
    const bool transactions = trace.model.machine().transactions != Transactions::none;
    for (unsigned i = 0; i < 4000; ++i) {
      step(trace, random, transactions);
      char problem[256];
      ASSERT_EQ(trace.model.verify(problem), "") << machine << " seed " << seed << " step " << i;
    }
    trace.model.settle();
    const Counts all = trace.model.total();
    EXPECT_EQ(all.misses,
              all.cold + all.capacity + all.true_sharing + all.false_sharing + all.after_abort + all.uncached);
    std::uint64_t served = all.from_l2 + all.from_l3;
    for (const std::uint64_t each : all.from_memory) served += each;
    for (const std::uint64_t each : all.transfers) served += each;
    EXPECT_EQ(all.misses, served);
    std::uint64_t ended = all.commits;
    for (const std::uint64_t each : all.aborts) ended += each;
    for (unsigned core = 0; core < 8; ++core) ended += trace.model.in_transaction(core);
    EXPECT_EQ(all.begins, ended);
    if (transactions) {
      EXPECT_GT(all.aborts[static_cast<unsigned>(AbortCause::conflict)], 50u);
      EXPECT_GT(all.commits, 20u);
    }
  }
}

TEST(Invariants, Mesi) { check(kTiny); }
TEST(Invariants, InclusiveCaches) {
  check(kTiny + "l2.inclusive=1;l3.bytes=1024;l3.ways=8;l3.cycles=40;l3.inclusive=1");
}
TEST(Invariants, NoCoherence) { check(kTiny + "coherence=none"); }
TEST(Invariants, RequesterWins) { check(kTiny + "transactions.policy=requester-wins"); }
TEST(Invariants, RequesterWinsWithReadersFurtherOut) {
  for (const char* const reads : {"l2", "unlimited"})
    check(kTiny + "transactions.policy=requester-wins;interrupt.every_cycles=5000;transactions.reads=" + reads);
}
TEST(Invariants, RequesterWinsInInclusiveCaches) {
  check(kTiny +
        "transactions.policy=requester-wins;l2.inclusive=1;l3.bytes=1024;l3.ways=8;l3.cycles=40;l3.inclusive=1");
}
TEST(Invariants, CommitterWins) { check(kTiny + "transactions.policy=committer-wins"); }

TEST(Determinism, TheSameCallsGiveTheSameAnswers) {
  const auto run = [] {
    Trace trace(kTiny + "transactions.policy=requester-wins;transactions.reads=l2");
    std::mt19937_64 random(7);
    for (unsigned i = 0; i < 4000; ++i) step(trace, random, true);
    const Counts all = trace.model.total();
    LineReport top[8];
    std::vector<std::uint64_t> seen(trace.clocks);
    seen.insert(seen.end(), {all.misses, all.true_sharing, all.false_sharing, all.commits, all.stall_cycles});
    const std::size_t lines = trace.model.top_lines(LineOrder::aborts, top);
    for (std::size_t i = 0; i < lines; ++i) seen.insert(seen.end(), {top[i].address, top[i].transfers, top[i].aborts});
    return seen;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace loam::simulator
