// The allocation workloads: what they count, that they find faults of an allocator, and what they reject.
#include "workloads/allocation/shared/allocation.hpp"

#include "tests/harness/instrumented.hpp"
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <map>

namespace loam::tests {
namespace {

using namespace workloads::allocation;

constexpr bool kOwnAllocator = !tests::kInstrumented;  // the sanitizer's serves the process

struct Row {
  std::string arguments;
  double operations;  // per thread; 0: the parameters do not say
};

// Each workload, and each way through it.
const std::vector<Row> kSmall = {{"larson -p operations=3000 -p blocks=200 -p round=700", 3000},
                                 {"larson -p operations=500 -p blocks=1 -p size_min=8 -p size_max=8", 500},
                                 {"xmalloc -p operations=3000", 3000},
                                 {"xmalloc -p operations=999 -p batch=10 -p queue=1", 999},
                                 {"cache-scratch -p operations=1003 -p writes=10", 1003},
                                 {"cache-thrash -p operations=1003 -p writes=10 -p size=24", 1003},
                                 {"sh6 -p operations=5000 -p window=20", 5000},
                                 {"sh6 -p operations=500 -p window=1 -p run=1 -p large_percent=100", 500},
                                 {"sh8 -p operations=5000 -p window=20", 5000},
                                 {"malloc-loop -p pattern=lifo -p operations=2500", 2500},
                                 {"malloc-loop -p pattern=fifo -p operations=2500 -p size=1024", 2500},
                                 {"malloc-loop -p pattern=random -p operations=2500 -p size=17", 2500},
                                 {"malloc-loop -p pattern=random -p operations=300 -p size=32768 -p blocks=20", 300},
                                 {"malloc-latency -p operations=3000 -p window=200", 3000},
                                 {"fragmentation -p live_kib=256 -p rounds=2", 0}};

Finished run_small(const std::string& arguments, const std::string& environment = "") {
  return run(environment + " " + executable("none") + " " + arguments);
}

TEST(Allocation, EveryWorkloadIsVerifiedAndCountsItsOperations) {
  const Schema schema = record_schema();
  for (const auto& [arguments, operations] : kSmall)
    for (const int threads : {1, 2, 3}) {
      const auto finished = run_small(arguments + " --threads " + std::to_string(threads));
      ASSERT_EQ(finished.status, 0) << arguments << ": " << finished.err << finished.out;
      for (const auto& one : records(finished)) EXPECT_EQ(schema.violation(one), "") << arguments;
      const auto end = record(finished, "end");
      EXPECT_TRUE(end["verified"].boolean()) << arguments;
      EXPECT_EQ(end["live_blocks_delta"].number(), 0) << arguments;
      const auto one = record(finished, "iteration");
      if (operations != 0) {
        EXPECT_EQ(one["operations"].number(), operations * threads) << arguments;
      }
      EXPECT_NEAR(one["ops_per_s"].number() * one["elapsed_s"].number(), one["operations"].number(), 1) << arguments;
      EXPECT_GT(one["thread_cpu_s"].number(), 0) << arguments;
    }
}

TEST(Allocation, ADurationIsKept) {
  for (const std::string name : {"larson", "xmalloc", "cache-scratch", "cache-thrash", "sh6", "sh8", "malloc-loop",
                                 "malloc-loop -p pattern=fifo", "malloc-latency"})
    for (const int threads : {1, 2}) {
      const auto one_run = [&name, threads] {
        const auto finished =
            run_small(name + " -p duration_ms=60 --warmup-ms 10 --threads " + std::to_string(threads));
        EXPECT_EQ(finished.status, 0) << name << ": " << finished.err << finished.out;
        auto one = record(finished, "iteration");
        EXPECT_GT(one["operations"].number(), 0) << name;
        return one;
      };
      EXPECT_GE(longest_measured_s(0.059, one_run), 0.059) << name;
    }
}

// The help of `operations` says how many there are by default; a run with it is not over in no time.
TEST(Allocation, FixedWorkIsTheDefaultAndAsItsHelpSays) {
  const Json description = Json::parse(run(executable("none") + " --describe").out);
  int seen = 0;
  for (const auto& workload : description["workloads"].array())
    for (const auto& parameter : workload["parameters"].array()) {
      const std::string help = parameter["help"].string();
      const auto at = help.find("0: "), end = help.find(", or use duration_ms");
      if (parameter["name"].string() != "operations" || end == std::string::npos) continue;
      const auto& name = workload["name"].string();
      const auto one = record(run_small(name), "iteration");
      EXPECT_EQ(one["operations"].number(), std::stod(help.substr(at + 3, end - at - 3))) << name;
      ++seen;
    }
  EXPECT_EQ(seen, 8) << "all but fragmentation";
}

TEST(Allocation, ASeedDecidesTheBlocks) {
  const auto live_bytes = [](const std::string& arguments, int seed) {
    return record(run_small(arguments + " --threads 2 --seed " + std::to_string(seed)), "iteration")["live_bytes"]
        .number();
  };
  for (const std::string arguments :
       {"larson -p operations=3000 -p blocks=100 -p round=500", "sh6 -p operations=3000 -p window=20",
        "malloc-latency -p operations=3000 -p window=20 -p exchanged_percent=0",
        "fragmentation -p live_kib=64 -p rounds=1"}) {
    EXPECT_EQ(live_bytes(arguments, 1), live_bytes(arguments, 1)) << arguments;
    EXPECT_NE(live_bytes(arguments, 1), live_bytes(arguments, 2)) << arguments;
  }
}

TEST(Allocation, LarsonMakesAThreadForEachRound) {
  const auto made = [](const std::string& round) {
    return record(run_small("larson --threads 2 -p operations=1000 -p round=" + round), "iteration")["threads_made"]
        .number();
  };
  EXPECT_EQ(made("1000"), 2);
  EXPECT_EQ(made("300"), 8);
}

// A round that begins as the timed phase ends replaces nothing; the run has to end all the same.
TEST(Allocation, LarsonEndsAlthoughItsLastRoundsReplaceNothing) {
  double operations = 0;  // of all runs: one may be over before its threads get a processor
  for (int seed = 1; seed <= 5; ++seed) {
    const auto finished =
        run_small("larson --threads 2 --warmup-ms 1 -p duration_ms=5 -p round=1 --seed " + std::to_string(seed));
    EXPECT_EQ(finished.status, 0) << finished.err;
    operations += record(finished, "iteration")["operations"].number();
  }
  EXPECT_GT(operations, 0);
}

TEST(Allocation, LarsonTellsItsOwnHandoversFromWaitingForOthers) {
  constexpr double kShortestHandover_s = 1e-6;
  bool mostly_its_own = false;
  for (int tries = 0; tries < 20 && !mostly_its_own; ++tries) {  // for others it waits only where there are some
    const auto line = record(run_small("larson --threads 1 -p operations=20000 -p round=20"), "iteration");
    if (!line.has("run_delay_s")) GTEST_SKIP() << "this kernel does not count what threads wait";
    EXPECT_GT(line["handover_delay_s"].number(), line["threads_made"].number() * kShortestHandover_s);
    mostly_its_own = line["run_delay_s"].number() < line["handover_delay_s"].number() / 2;
  }
  EXPECT_TRUE(mostly_its_own);
}

TEST(Allocation, FreesByOtherThreadsAreCounted) {
  const auto remote = [](const std::string& arguments) {
    return record(run_small(arguments), "iteration")["freed_remotely"].number();
  };
  EXPECT_EQ(remote("xmalloc --threads 1 -p operations=2000"), 0);
  EXPECT_EQ(remote("xmalloc --threads 2 -p operations=2000"), 4000);
  EXPECT_EQ(remote("xmalloc --threads 3 -p operations=2000"), 6000);
  EXPECT_EQ(remote("sh8 --threads 1 -p operations=20000"), 0);
  EXPECT_GT(remote("sh8 --threads 2 -p operations=200000"), 0);
}

TEST(Allocation, LiveBytesAreThoseOfTheBlocksHeld) {
  const auto live_bytes = [](const std::string& arguments) {
    return record(run_small(arguments), "iteration")["live_bytes"].number();
  };
  EXPECT_EQ(live_bytes("larson --threads 2 -p operations=100 -p size_min=48 -p size_max=48 -p blocks=300"), 28800);
  EXPECT_EQ(live_bytes("malloc-loop --threads 3 -p pattern=fifo -p operations=100 -p size=48 -p blocks=10"), 1440);
  EXPECT_EQ(live_bytes("cache-thrash --threads 2 -p operations=100 -p size=16 -p blocks=4"), 128);
  EXPECT_EQ(live_bytes("sh6 -p operations=100 -p size_max=8 -p run=1 -p large_percent=0 -p window=7"), 56);
}

TEST(Fragmentation, IsMemoryTakenOverMemoryUsed) {
  for (const int threads : {1, 2}) {
    const auto finished = run_small("fragmentation -p live_kib=4096 -p rounds=3 --threads " + std::to_string(threads));
    const auto one = record(finished, "iteration");
    const double asked = threads * 4096 * 1024.0, live = one["live_bytes"].number();
    EXPECT_GE(live, asked);
    EXPECT_LT(live, asked + threads * 2048);
    EXPECT_NEAR(one["fragmentation"].number(), one["resident_peak_bytes"].number() / live, 1e-9);
    EXPECT_GE(one["fragmentation"].number(), 1) << "every page of every block was touched";
    EXPECT_LT(one["live_end_bytes"].number(), asked / 32);

    const auto rows = record(finished, "series")["rows"].array();
    ASSERT_EQ(rows.size(), 12u);
    double most = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& row = rows[i].array();
      EXPECT_EQ(row[0].number(), static_cast<double>(i / 4));
      EXPECT_EQ(row[1].number(), static_cast<double>(i % 4));
      // A and C fill; B leaves a tenth and D a sixty-fourth of the blocks.
      const double part = i % 2 == 0 ? 1.0 : i % 4 == 1 ? 0.1 : 1.0 / 64;
      EXPECT_NEAR(row[2].number() / asked, part, 0.02) << i;
      most = std::max(most, row[3].number());
    }
    EXPECT_EQ(one["resident_peak_bytes"].number(), most);
    EXPECT_EQ(one["resident_end_bytes"].number(), rows.back().array()[3].number());
  }
}

// ---- faults

std::string preloaded(const std::string& fault) {
  return "LD_PRELOAD=" + (build_folder() / "loam-faulty-malloc.so").string() + " LOAM_FAULT=" + fault;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (!kOwnAllocator) GTEST_SKIP() << "the sanitizer's allocator cannot be replaced";
  }
};

TEST_F(Faults, OfTheAllocatorAreFoundByEveryWorkload) {
  const std::map<std::string, std::string> messages = {
      {"twice", "handed out twice"}, {"misaligned", "not aligned"}, {"null", "malloc failed"}};
  for (const auto& [arguments, operations] : kSmall) {
    // Of these either each block is freed before the next one comes, or 8 bytes are alignment enough.
    const bool one_at_a_time = arguments.find("blocks=1 ") != std::string::npos,
               small = one_at_a_time || arguments.starts_with("cache-scratch");
    if (arguments.find("window=1 ") != std::string::npos) continue;
    for (const int threads : {1, 2}) {
      const std::string command = arguments + " --threads " + std::to_string(threads);
      EXPECT_EQ(run_small(command, preloaded("none")).status, 0) << "without a fault: " << command;
      for (const auto& [fault, message] : messages) {
        if ((fault == "twice" && one_at_a_time) || (fault == "misaligned" && small)) continue;
        const auto finished = run_small(command, preloaded(fault));
        ASSERT_EQ(finished.status, workloads::kExitNotVerified) << fault << " " << command << ": " << finished.err;
        const auto end = record(finished, "end");
        EXPECT_FALSE(end["verified"].boolean());
        EXPECT_NE(end["message"].string().find(message), std::string::npos) << command << end["message"].string();
      }
    }
  }
}

// SuperMalloc's blocks of 24 bytes begin at multiples of 8: paper 004 measures larson under it all the same.
TEST_F(Faults, LarsonCountsMisalignedBlocksWhereItIsToldTo) {
  const std::string command = "larson -p operations=3000 -p blocks=200 -p misaligned=counted";
  const auto finished = run_small(command, preloaded("misaligned"));
  ASSERT_EQ(finished.status, 0) << finished.err;
  EXPECT_GT(record(finished, "iteration")["misaligned"].number(), 20);  // one call in a hundred
  EXPECT_EQ(record(run_small(command, preloaded("none")), "iteration")["misaligned"].number(), 0);
  EXPECT_EQ(run_small(command, preloaded("twice")).status, workloads::kExitNotVerified) << "other faults still fail it";
}

// An allocator that never uses memory again: the blocks of A and nine tenths of those of C, round after round.
TEST_F(Faults, MemoryThatIsNeverUsedAgainIsFragmentation) {
  for (const int rounds : {1, 3}) {
    const auto one =
        record(run_small("fragmentation -p live_kib=8192 -p size_min=512 -p rounds=" + std::to_string(rounds),
                         preloaded("none")),
               "iteration");
    EXPECT_GT(one["fragmentation"].number(), 1.88 * rounds);
    EXPECT_LT(one["fragmentation"].number(), 2.05 * rounds);
    EXPECT_NEAR(one["resident_end_bytes"].number(), one["resident_peak_bytes"].number(), 1 << 16);
  }
}

// Flips a bit of a block between malloc and free. returns how many blocks the ledger found wrong
std::uint64_t wrong_after_flip(std::size_t size, std::size_t byte) {
  Ledger& ledger = open_ledgers(1)[0];
  const Held held = ledger.allocate(size);
  auto* const bytes = static_cast<unsigned char*>(held.block);
  if (byte < size) bytes[byte] ^= 0x10;
  ledger.release(held);
  const Totals totals({&ledger, 1});
  EXPECT_EQ(totals.allocated, 1u);
  EXPECT_EQ(totals.freed, 1u);
  EXPECT_EQ(ledger.live_bytes(), 0);
  return totals.wrong;
}

TEST(Ledger, FindsAFlippedBitInTheFirstAndTheLastBytes) {
  for (const std::size_t size : {8, 9, 15, 16, 17, 1000, 32768}) {
    EXPECT_EQ(wrong_after_flip(size, size), 0u) << "nothing flipped: " << size;
    EXPECT_EQ(wrong_after_flip(size, 0), 1u) << size;
    EXPECT_EQ(wrong_after_flip(size, 7), 1u) << size;
    EXPECT_EQ(wrong_after_flip(size, size - 1), 1u) << size;
    if (size >= 16) {
      EXPECT_EQ(wrong_after_flip(size, size - 8), 1u) << size;
    }
  }
}

TEST(Ledger, TagsOfBlocksDiffer) {
  const auto ledgers = open_ledgers(2);
  const Held held[] = {ledgers[0].allocate(16), ledgers[0].allocate(16), ledgers[1].allocate(16),
                       ledgers[1].allocate(24)};
  for (const Held& one : held) EXPECT_EQ(std::ranges::count(held, one.tag, &Held::tag), 1);
  for (const Held& one : held) ledgers[0].release(one);
  EXPECT_EQ(ledgers[0].live_bytes(), -40) << "the other thread's blocks";
  EXPECT_EQ(live_bytes(ledgers), 0u);
}

TEST(Ledger, KnowsWhatTheWorkloadAdded) {
  Ledger& ledger = open_ledgers(1)[0];
  for (const Word added : {0, 1, 1000}) {
    const Held held = ledger.allocate(8);
    *static_cast<Word*>(held.block) += 1;
    ledger.release(held, added);
  }
  EXPECT_EQ(Totals({&ledger, 1}).wrong, 2u);
}

TEST(SkewedSizes, GoFromTheLeastToTheLargestWithMostOfThemSmall) {
  const SkewedSizes sizes(8, 1024);
  EXPECT_EQ(sizes.of(0), 8u);
  EXPECT_EQ(sizes.of(~0u), 1024u);
  EXPECT_NEAR(static_cast<double>(sizes.of(1u << 31)), std::sqrt(8.0 * 1024), 2) << "the median is the geometric mean";
  for (std::uint32_t i = 1; i < 256; ++i) EXPECT_GE(sizes.of(i << 24), sizes.of((i - 1) << 24));
  EXPECT_EQ(SkewedSizes(100, 100).of(12345u << 16), 100u);
}

// ---- what is rejected

TEST(Allocation, RejectsWhatItCannotRun) {
  struct Rejected {
    const char* arguments;
    const char* begins;
    const char* contains;
  };
  for (const auto& [arguments, begins, contains] : std::initializer_list<Rejected>{
           {"larson -p size_min=7", "-p size_min=7", "from 8 to"},
           {"larson -p size_min=500 -p size_max=499", "-p size_max=499", "at least size_min, which is 500"},
           {"larson -p size_max=1048577", "-p size_max=1048577", "to 1048576"},
           {"larson -p blocks=0", "-p blocks=0", "from 1 to"},
           {"larson -p round=0", "-p round=0", "from 1 to"},
           {"larson -p duration_ms=-1", "-p duration_ms=-1", "from 0 to"},
           {"larson -p size=8", "-p size=8", "no such parameter"},
           {"xmalloc -p size_min=2000", "-p size_max=1024", "raise size_max or lower size_min"},
           {"xmalloc -p size_max=0", "-p size_max=0", "from 8 to"},
           {"xmalloc -p batch=0", "-p batch=0", "from 1 to"},
           {"xmalloc -p queue=0", "-p queue=0", "from 1 to 1024"},
           {"cache-scratch -p size=4", "-p size=4", "from 8 to"},
           {"cache-scratch -p blocks=65", "-p blocks=65", "from 1 to 64"},
           {"cache-thrash -p writes=0", "-p writes=0", "from 1 to"},
           {"sh6 -p size_max=7", "-p size_max=7", "from 8 to"},
           {"sh6 -p size_min=64 -p size_max=32", "-p size_max=32", "which is 64"},
           {"sh6 -p large_size=999", "-p large_size=999", "at least size_max, which is 1000"},
           {"sh6 -p window=0", "-p window=0", "from 1 to 1024"},
           {"sh8 -p run=257", "-p run=257", "from 1 to 256"},
           {"sh8 -p large_percent=101", "-p large_percent=101", "from 0 to 100"},
           {"malloc-loop -p size=15", "-p size=15", "from 16 to 32768"},
           {"malloc-loop -p pattern=lif", "-p pattern=lif", "did you mean lifo?"},
           {"malloc-loop -p blocks=0", "-p blocks=0", "from 1 to"},
           {"malloc-latency -p window=0", "-p window=0", "from 1 to"},
           {"malloc-latency -p timed_one_in=0", "-p timed_one_in=0", "from 1 to 65536"},
           {"malloc-latency -p size_max=8", "-p size_max=8", "no such parameter"},
           {"fragmentation -p rounds=0", "-p rounds=0", "from 1 to 64"},
           {"fragmentation -p growth=9", "-p growth=9", "from 1 to 8"},
           {"fragmentation -p size_min=2048", "-p size_max=1024", "which is 2048"},
           {"fragmentation -p live_kib=16 -p size_max=10000", "-p live_kib=16", "which is 20"},
           {"fragmentation -p operations=5", "-p operations=5", "no such parameter"}}) {
    const auto finished = run_small(arguments);
    EXPECT_EQ(finished.status, workloads::kExitBadInput) << arguments;
    EXPECT_TRUE(finished.err.starts_with("error: " + std::string(begins))) << arguments << ": " << finished.err;
    EXPECT_NE(finished.err.find(contains), std::string::npos) << arguments << ": " << finished.err;
    EXPECT_EQ(finished.out, "") << arguments;
  }
}

}  // namespace
}  // namespace loam::tests
