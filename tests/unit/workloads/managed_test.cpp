// The programs on the managed heap, as their users start them.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

namespace loam::tests {
namespace {

const std::vector<std::string> kTransactional{"gc-heap", "gc-dedicated", "gc-arena", "gc-nursery"};

Json iteration(const std::string& sync, const std::string& arguments) {
  const auto finished = run(executable(sync) + " " + arguments);
  EXPECT_EQ(finished.status, 0) << sync << " " << arguments << ": " << finished.err << finished.out;
  const auto schema = record_schema();
  for (const auto& one : records(finished)) EXPECT_EQ(schema.violation(one), "") << sync;
  EXPECT_TRUE(record(finished, "end")["verified"].boolean());
  return record(finished, "iteration");
}

TEST(ManagedPrograms, GcbenchComputesTheSameOnEverySynchronisation) {
  const std::string arguments = "gcbench -p size=40 -p operations=6";
  const double expected = iteration("gc-raw", arguments)["checksum"].number();
  for (const std::string sync :
       {"gc-lock", "gc-heap", "gc-dedicated", "gc-arena", "gc-nursery", "gc-unlogged", "gc-dedicated-checking"}) {
    const Json one = iteration(sync, arguments);
    EXPECT_EQ(one["checksum"].number(), expected) << sync;
    EXPECT_EQ(one["aborts"].number(), 0) << sync;
  }
}

// A read takes 4 bytes or 16, and nothing else changes.
TEST(ManagedPrograms, ShortReadsTakeAQuarterAndComputeTheSame) {
  const std::string arguments = "gcbench -p size=60 -p operations=6 -p hash=off";
  for (const auto& sync : kTransactional) {
    const Json shorts = iteration(sync, arguments), longs = iteration(sync, arguments + " -p entries=long");
    EXPECT_EQ(shorts["checksum"].number(), longs["checksum"].number()) << sync;
    EXPECT_EQ(shorts["read_entries"].number(), longs["read_entries"].number()) << sync;
    EXPECT_EQ(longs["log_bytes"].number() - shorts["log_bytes"].number(), 12 * longs["read_entries"].number()) << sync;
    iteration(sync, "stmbench7 -p size=tiny -p mix=write -p operations=300 --threads 2 -p entries=long");
  }
}

// A new object is enlisted once, and each of its two first values is an undo entry.
TEST(ManagedPrograms, GcbenchLogsFirstValuesOfNewObjectsWhereAsked) {
  const std::string usual = "gcbench -p size=40 -p operations=6";
  const std::string holding =
      "gcbench -p size=40 -p operations=1 -p update_percent=0 -p dead_percent=0 -p held_percent=100 -p insert_percent=0 "
      "-p delete_percent=0";
  for (const auto& sync : kTransactional) {
    const Json plain = iteration(sync, usual), logged = iteration(sync, usual + " -p initialisers=logged");
    EXPECT_EQ(logged["checksum"].number(), plain["checksum"].number()) << sync;
    EXPECT_GT(logged["undo_entries"].number(), plain["undo_entries"].number()) << sync;
    EXPECT_EQ(iteration(sync, holding)["update_entries"].number(), 0) << sync;
    const Json held = iteration(sync, holding + " -p initialisers=logged");
    EXPECT_EQ(held["update_entries"].number(), 40 * 40) << sync;
    EXPECT_EQ(held["undo_entries"].number(), 2 * 40 * 40) << sync;
  }
}

// Where this build has it: it finds pointers on stacks, which sanitizers change.
bool has_boehm() {
  const auto names = executable_names();
  return std::find(names.begin(), names.end(), "gc-boehm") != names.end();
}

TEST(ManagedPrograms, TransactionsRunOnBoehmsCollector) {
  if (!has_boehm()) GTEST_SKIP() << "no libgc.so.1 in this build";
  const std::string arguments = "gcbench -p size=100 -p operations=40";
  const double expected = iteration("gc-raw", arguments)["checksum"].number();
  const Json heap = iteration("gc-boehm-heap", arguments), dedicated = iteration("gc-boehm-dedicated", arguments);
  for (const Json* const one : {&heap, &dedicated}) {
    EXPECT_EQ((*one)["checksum"].number(), expected);
    EXPECT_EQ((*one)["aborts"].number(), 0);
    EXPECT_GT((*one)["gc_full"].number(), 0);
    EXPECT_GT((*one)["gc_visited_entries"].number(), 0);
  }
  EXPECT_EQ(heap["log_memory_bytes_max"].number(), 0);
  EXPECT_GT(dedicated["log_memory_bytes_max"].number(), 0);
  EXPECT_GT(heap["gc_full"].number(), dedicated["gc_full"].number());
  for (const std::string sync : {"gc-boehm-heap", "gc-boehm-dedicated"}) {
    // Boehm's collector gives nothing back to logs of a thread that begins late.
    const std::string threads = " --threads 2 -p account=heap";
    iteration(sync, arguments + threads);
    iteration(sync, "stmbench7 -p size=tiny -p mix=write -p operations=2000 -p memory_kib=8192" + threads);
    iteration(sync, "wormbench -p size=128 -p operations=300" + threads);
    const auto full = run(executable(sync) + " gcbench -p size=200 -p memory_kib=2048");
    EXPECT_EQ(full.status, 2) << sync;
    EXPECT_NE(full.err.find("the managed heap is full"), std::string::npos) << full.err;
  }
}

TEST(ManagedPrograms, GcbenchComputesTheSameOnBoehmsCollector) {
  if (!has_boehm()) GTEST_SKIP() << "no libgc.so.1 in this build";
  const std::string arguments = "gcbench -p size=60 -p operations=6";
  const Json boehm = iteration("gc-boehm", arguments);
  EXPECT_EQ(boehm["checksum"].number(), iteration("gc-raw", arguments)["checksum"].number());
  EXPECT_GT(boehm["gc_full"].number(), 0);
  EXPECT_GT(boehm["gc_pause_s"].number(), 0);
  iteration("gc-boehm", arguments + " --threads 2");
  iteration("gc-boehm", "stmbench7 -p size=tiny -p mix=write -p operations=300");
  const auto full = run(executable("gc-boehm") + " gcbench -p size=200 -p memory_kib=2048");
  EXPECT_EQ(full.status, 2);
  EXPECT_NE(full.err.find("the managed heap is full"), std::string::npos) << full.err;
}

TEST(ManagedPrograms, GcbenchRecordsWhatCollectionsCostAndWhatLogsTake) {
  const Json heap = iteration("gc-heap", "gcbench -p size=60 -p operations=6 --threads 2");
  const Json dedicated = iteration("gc-dedicated", "gcbench -p size=60 -p operations=6 --threads 2");
  EXPECT_GT(heap["gc_minor"].number(), 0);
  EXPECT_GT(heap["gc_pause_max_us"].number(), 0);
  EXPECT_GT(heap["gc_copied_log_bytes"].number(), 0);
  EXPECT_EQ(heap["log_memory_bytes_max"].number(), 0);
  EXPECT_EQ(dedicated["gc_copied_log_bytes"].number(), 0);
  EXPECT_GT(dedicated["log_memory_bytes_max"].number(), 0);
  EXPECT_GT(heap["gc_minor"].number() + heap["gc_full"].number(),
            dedicated["gc_minor"].number() + dedicated["gc_full"].number());
  EXPECT_GT(dedicated["log_share_of_allocation"].number(), 0.3);
}

TEST(ManagedPrograms, WormbenchAndLeetmVerifyOnEverySynchronisation) {
  auto syncs = kTransactional;
  syncs.push_back("gc-lock");
  for (const auto& sync : syncs) {
    const Json worms = iteration(sync, "wormbench -p size=128 -p operations=300 --threads 2");
    EXPECT_GT(worms["moves"].number(), 300) << sync;
    const Json lee = iteration(sync, "leetm -p board=crossing -p variant=opt --threads 2");
    EXPECT_EQ(lee["laid"].number() + lee["failed"].number(), 100) << sync;
    EXPECT_LE(lee["failed"].number(), 20) << sync;
  }
  for (const std::string variant : {"base", "rm", "optrm"})
    iteration("gc-nursery", "leetm -p board=crossing -p tracks=4 -p variant=" + variant + " --threads 2");
  iteration("gc-raw", "leetm -p board=crossing -p tracks=10 -p variant=base");
}

// The temporary grid of a track: 600 * 600 * 2 cells, each written once before the wave begins.
TEST(ManagedPrograms, RowMajorArraysLogTheWholeTemporaryGrid) {
  const std::string common = "leetm -p board=sparseshort -p tracks=1 -p hash=off -p bitmap=off -p variant=";
  const Json both = iteration("gc-dedicated", common + "optrm"), rm = iteration("gc-dedicated", common + "rm");
  const double more = rm["undo_entries"].number() - both["undo_entries"].number();
  EXPECT_GE(more, 720000);
  EXPECT_LT(more, 721000) << "and what the wave writes";
  const Json filtered = iteration("gc-dedicated", "leetm -p board=sparseshort -p tracks=1 -p locals=on -p variant=rm");
  EXPECT_LT(filtered["undo_entries"].number(), 100) << "where objects of the transaction are known as such";
}

// The counts follow from the published sizes: 3 * 3^6 components, 20 atomic parts in each, six indexes.
TEST(ManagedPrograms, Stmbench7HasThePublishedStructure) {
  struct Row {
    const char* only;
    double most, least;
  };
  for (const Row& row : {Row{"T1", 2187 * 20, 0}, Row{"T6", 2187, 0}, Row{"Q7", 10000, 0}, Row{"ST9", 20, 0},
                         Row{"OP4", 33333, 0}, Row{"OP5", 0, 0}, Row{"OP11", 33333, 0}, Row{"T5", 2187, 0},
                         // A document of 20 000 characters has 444 sentences of 45 characters, or 425 of 47.
                         Row{"T4", 2187 * 444, 2187 * 425},
                         // A hundredth, a tenth of the dates: 9 and 99 of 1000.
                         Row{"OP2", 130, 50}, Row{"OP3", 1090, 890}}) {
    const Json one = iteration("gc-raw", std::string("stmbench7 -p size=medium -p operations=1 -p only=") + row.only);
    EXPECT_EQ(one["succeeded"].number(), 1) << row.only;
    EXPECT_LE(one["visited"].number(), row.most) << row.only;
    EXPECT_GE(one["visited"].number(), row.least != 0 ? row.least : row.most) << row.only;
  }
}

// One operation alone, again and again: the structure is walked after each run. Its result does not depend on the
// synchronisation, and nothing of an operation that fails is left.
TEST(ManagedPrograms, EveryOperationOfStmbench7LeavesTheStructureWhole) {
  const Json described = Json::parse(run(executable("gc-raw") + " --describe").out);
  std::vector<std::string> names;
  for (const Json& workload : described["workloads"].array()) {
    if (workload["name"].string() != "stmbench7") continue;
    for (const Json& parameter : workload["parameters"].array())
      if (parameter["name"].string() == "only")
        for (const Json& choice : parameter["choices"].array()) names.push_back(choice.string());
  }
  ASSERT_EQ(names.size(), 46U);
  for (const std::string& name : names) {
    const std::string arguments = "stmbench7 -p size=tiny -p operations=30 -p only=" + name;
    const Json raw = iteration("gc-raw", arguments), logged = iteration("gc-heap", arguments);
    EXPECT_EQ(raw["checksum"].number(), logged["checksum"].number()) << name;
    EXPECT_GT(raw["succeeded"].number(), 0) << name;
  }
}

TEST(ManagedPrograms, Stmbench7ComputesTheSameOnEverySynchronisationAndVerifiesWithTwoThreads) {
  const std::string arguments = "stmbench7 -p size=tiny -p mix=write -p operations=400";
  const Json raw = iteration("gc-raw", arguments);
  EXPECT_GT(raw["failed"].number(), 20) << "some of the numbers drawn are free";
  for (const std::string texts : {"string", "array"})
    EXPECT_EQ(iteration("gc-dedicated", arguments + " -p texts=" + texts)["checksum"].number(),
              raw["checksum"].number());
  auto syncs = kTransactional;
  syncs.push_back("gc-lock");
  for (const auto& sync : syncs) {
    EXPECT_EQ(iteration(sync, arguments)["checksum"].number(), raw["checksum"].number()) << sync;
    iteration(sync, arguments + " --threads 2");
  }
  iteration("gc-lock", arguments + " --threads 3 -p locks=medium");
  // How many of ten random parts there are depends on the numbers drawn alone: an attempt that aborts draws them again.
  const std::string conflicts = "stmbench7 -p size=tiny -p only=OP15 -p operations=2000 --threads 2";
  const Json replayed = iteration("gc-dedicated", conflicts);
  EXPECT_GT(replayed["aborts"].number(), 0);
  EXPECT_EQ(replayed["checksum"].number(), iteration("gc-lock", conflicts)["checksum"].number());
  iteration("gc-heap", arguments + " -p long=off -p structural=off --threads 2");

  const auto shared = run(executable("gc-dedicated") + " stmbench7 --threads 2 -p opacity=unchecked");
  EXPECT_EQ(shared.status, 2);
  EXPECT_NE(shared.err.find("a list that never was"), std::string::npos) << shared.err;
  EXPECT_EQ(run(executable("gc-raw") + " stmbench7 -p only=T1 -p long=off").status, 2);
}

// Which operations are drawn: 10 % structural ones among updates, and half as many long traversals.
TEST(ManagedPrograms, Stmbench7DrawsItsOperationsAsPublished) {
  const std::string arguments = "stmbench7 -p size=tiny -p operations=20000 -p mix=read-write";
  EXPECT_LT(iteration("gc-raw", arguments)["sample_error"].number(), 0.01);
  const auto finished = run(executable("gc-raw") + " " + arguments + " -p long=off -p structural=off");
  double long_or_structural = 0, all = 0;
  for (const auto& one : records(finished)) {
    if (one["kind"].string() != "histogram") continue;
    const auto name = one["name"].string();
    if (name != "succeeded_of_operation" && name != "failed_of_operation") continue;
    const auto& counts = one["counts"].array();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all += counts[i].number();
      if (i < 12 || i >= 37) long_or_structural += counts[i].number();
    }
  }
  EXPECT_EQ(all, 20000);
  EXPECT_EQ(long_or_structural, 0);
}

TEST(ManagedPrograms, AHeapThatIsTooSmallAndABoardThatIsDamagedAreInput) {
  const auto full = run(executable("gc-dedicated") + " gcbench -p size=200 -p memory_kib=2048");
  EXPECT_EQ(full.status, 2);
  EXPECT_NE(full.err.find("the managed heap is full"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("memory_bytes=2097152 (set it to at least"), std::string::npos) << full.err;

  struct Refused {
    const char* arguments;
    const char* says;
  };
  for (const Refused row : {
           Refused{"gcbench -p size=200 -p entries=long -p log_kib=64", "-p log_kib: a transaction's logs have "},
           Refused{"gcbench -p chunk_bytes=257", "-p chunk_bytes=257: no multiple of 8 (take 256)"},
           Refused{"gcbench -p chunk_bytes=100", "chunk_bytes=100"},
           Refused{"gcbench -p memory_kib=4096 -p nursery_kib=3000", "-p nursery_kib=3000: more than half of"},
           Refused{"gcbench -p heap_percent=99", "heap_percent=99"},
           Refused{"gcbench -p entries=tiny", "entries=tiny"},
           Refused{"gcbench -p size=0", "size=0"},
       }) {
    const auto refused = run(executable("gc-dedicated") + " " + row.arguments);
    EXPECT_EQ(refused.status, 2) << row.arguments;
    EXPECT_NE(refused.err.find(row.says), std::string::npos) << refused.err;
  }

  const std::string path = testing::TempDir() + "board.txt";
  struct Row {
    const char* text;
    const char* says;
  };
  for (const Row row :
       {Row{"J 10 10 20 20\n", "ends without a line E"}, Row{"J 10 10\nE\n", ":1=J 10 10: a coordinate is missing"},
        Row{"P 5 5\nJ 1 1 700 5\nE\n", ":2=J 1 1 700 5: a coordinate is not inside"},
        Row{"X 1\nE\n", "an unknown kind of line"}, Row{"P 5 5\nE\n", "has no joins"},
        Row{"J 10 10 10 10\nE\n", "a join of a point with itself"}}) {
    std::ofstream(path) << row.text;
    const auto damaged = run(executable("gc-raw") + " leetm -p file=" + path);
    EXPECT_EQ(damaged.status, 2) << row.text;
    EXPECT_NE(damaged.err.find(row.says), std::string::npos) << damaged.err;
  }
  std::ofstream(path) << "# two tracks\nP 20 20\nP 40 20\nJ 20 20 40 20\nJ 100 100 100 130\nE\n";
  EXPECT_EQ(iteration("gc-raw", "leetm -p file=" + path)["laid"].number(), 2);
  std::remove(path.c_str());
  EXPECT_NE(run(executable("gc-raw") + " leetm -p file=" + path).err.find("cannot be read"), std::string::npos);

  const auto shared = run(executable("gc-raw") + " wormbench --threads 2");
  EXPECT_EQ(shared.status, 2);
  EXPECT_NE(shared.err.find("gc-raw synchronises nothing"), std::string::npos) << shared.err;
  EXPECT_EQ(run(executable("gc-raw") + " wormbench -p size=128 -p head=16").status, 2);
  EXPECT_EQ(run(executable("gc-raw") + " gcbench -p update_percent=90").status, 2);
}

}  // namespace
}  // namespace loam::tests
