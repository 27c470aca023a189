// The text of a machine: what it may say, and what is said of a mistake.
#include "traces.hpp"

namespace loam::simulator {
namespace {

std::string problem_of(const std::string& text) {
  Machine machine;
  char buffer[512];
  return std::string(parse_machine(text, machine, buffer));
}

const std::string kLeast = "l1.bytes=32768;l1.ways=8;l1.cycles=3;memory.cycles=200;";

TEST(MachineText, LinesCommentsAndDecimalsAreRead) {
  const Machine machine =
      machine_of("# a machine\nname = two words \n cores=8 # eight\n" + kLeast +
                 "\nmemory.bytes_per_cycle=5.3\ntransactions.policy=committer-wins\ntransfer.cycles = 1, 2, 3\n");
  EXPECT_STREQ(machine.name, "two words");
  EXPECT_EQ(machine.cores, 8u);
  EXPECT_EQ(machine.memory_bytes_per_cycle_milli, 5300u);
  EXPECT_EQ(machine.transactions, Transactions::committer_wins);
  EXPECT_EQ(machine.transfer_cycles[1], 2u);
  EXPECT_EQ(machine.transfer_cycles[5], 3u);  // the last one goes on
}

TEST(MachineText, LevelsAreGroupsNodesAndDistances) {
  const Machine machine = machine_of(kLeast + "cores=8;nodes=4;l2.bytes=262144;l2.ways=8;l2.cycles=9;l2.shared_by=2;" +
                                     "node.distances=0,1,2,3,1,0,3,2,2,3,0,1,3,2,1,0");
  EXPECT_EQ(machine.level(0, 0), 0u);
  EXPECT_EQ(machine.level(0, 1), 0u);
  EXPECT_EQ(machine.level(0, 2), 2u);
  EXPECT_EQ(machine.level(0, 7), 4u);
  EXPECT_EQ(machine.level(7, 0), 4u);
}

TEST(MachineText, AMistakeIsToldWithKeyValueAndWhatIsAllowed) {
  const std::pair<std::string, std::string> rows[] = {
      {"cores=129", "cores=129: a whole number from 1 to 128 is allowed"},
      {"cores=eight", "cores=eight: a whole number from 1 to 128 is allowed"},
      {"cores", "cores: not of the form key=value"},
      {"core=8", "core=8: there is no such key"},
      {"coherence=moesi", "coherence=moesi: allowed are none, mesi"},
      {"memory.bytes_per_cycle=5.3333",
       "memory.bytes_per_cycle=5.3333: a number from 0 to 4096 with at most three decimals is allowed"},
      {"memory.cycles=1,2,3,4,5,6",
       "memory.cycles=1,2,3,4,5,6: 1 to 5 whole numbers of cycles up to 1000000, between commas, are allowed"},
      {"", "l1.bytes: this key is missing"},
      {kLeast + "l1.ways=7", "l1.bytes=32768: a multiple of line.bytes x l1.ways = 448 is allowed"},
      {kLeast + "l1.bytes=24576",
       "l1.bytes=24576: line.bytes x l1.ways x a power of two is allowed; this makes 48 sets"},
      {kLeast + "cores=8;nodes=3", "nodes=3: a divisor of cores=8 is allowed"},
      {kLeast + "line.bytes=48", "line.bytes=48: a power of two is allowed"},
      {kLeast + "cores=8;l2.bytes=65536;l2.ways=8;l2.cycles=9;l2.shared_by=3",
       "l2.shared_by=3: a divisor of the 8 cores of a node is allowed"},
      {kLeast + "l2.bytes=65536;l2.ways=8", "l2.cycles=0: at least 1 is allowed where the cache is there"},
      {kLeast + "tlb.entries=48;tlb.ways=4", "tlb.entries=48: tlb.ways = 4 times a power of two, or 0, is allowed"},
      {kLeast + "cores=2;nodes=2;node.distances=0,1,2",
       "node.distances=0,1,2: 2 x 2 numbers between commas, row by row, are allowed"},
      {kLeast + "cores=2;nodes=2;node.distances=0,1,2,0",
       "node.distances=0,1,2,0: from 0 to 1 it says 1; 0 to itself, 1 to 4 to another, and the same back are allowed"},
      {kLeast + "coherence=none;transactions.policy=requester-wins",
       "transactions.policy: only none is allowed where coherence=none"},
      {kLeast + "transactions.reads=l2", "transactions.reads=l2: l1 or unlimited is allowed where there is no l2"},
      {"l1.bytes=32768;l1.ways=8;l1.cycles=3", "memory.cycles: this key is missing, or begins with 0"},
  };
  for (const auto& [text, said] : rows) EXPECT_EQ(problem_of(text), said) << text;
}

TEST(Cores, ASetHasUpTo128) {
  CoreSet set;
  for (const unsigned core : {0u, 63u, 64u, 127u}) set.add(core);
  EXPECT_EQ(set.size(), 4u);
  std::string seen;
  set.for_each([&](unsigned core) {
    seen += std::to_string(core) + " ";
    set.remove(core);
  });
  EXPECT_EQ(seen, "0 63 64 127 ");
  EXPECT_TRUE(set.empty());
}

TEST(Cores, A128CoreMachineTakesEveryCore) {
  Trace trace(
      "cores=128;nodes=16;l1.bytes=4096;l1.ways=4;l1.cycles=3;memory.cycles=200,300;transfer.cycles=9,20,90;"
      "invalidate.cycles=9,20,90");
  for (unsigned core = 0; core < 128; ++core) {
    trace.atomic(core, kBase);
    trace.meet();
  }
  EXPECT_EQ(trace.model.total().invalidations, 127u);
  LineReport top[3];
  ASSERT_EQ(trace.model.top_lines(LineOrder::transfers, top), 1u);
  EXPECT_EQ(top[0].takers.size(), 127u);
  EXPECT_EQ(top[0].transfers, 127u);
}

TEST(Attribution, LinesAreOrderedAndNamePlacesInTheCode) {
  Trace trace(kSmall);
  for (unsigned line = 0; line < 5; ++line)
    for (unsigned turn = 0; turn <= 10 * line; ++turn) {
      trace.write(turn % 2, kBase + line * 64);
      trace.meet();
    }
  LineReport top[3];
  ASSERT_EQ(trace.model.top_lines(LineOrder::transfers, top), 3u);
  EXPECT_EQ(top[0].address, kBase + 4 * 64);
  EXPECT_EQ(top[0].transfers, 40u);
  EXPECT_EQ(top[1].transfers, 30u);
  EXPECT_EQ(top[2].transfers, 20u);
  EXPECT_EQ(top[0].sites[0].count, 20u);
  EXPECT_EQ(top[0].sites[0].pc + top[0].sites[1].pc, 0x4000u + 0x4001u);
  trace.model.reset_counts();
  EXPECT_EQ(trace.model.top_lines(LineOrder::transfers, top), 0u);
  EXPECT_EQ(trace.model.total().misses, 0u);
}

}  // namespace
}  // namespace loam::simulator
