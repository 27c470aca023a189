// Bad input: exit status 2, one line on standard error with subject, value, limit and a hint, no records.
#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <algorithm>

namespace loam::tests {
namespace {

struct Row {
  const char* arguments;
  const char* begins;    // of standard error
  const char* contains;  // the hint or the limit
};

void check(const std::string& name, std::initializer_list<Row> rows) {
  for (const auto& row : rows) {
    const auto finished = run(executable(name) + " " + row.arguments);
    EXPECT_EQ(finished.status, 2) << row.arguments;
    EXPECT_TRUE(finished.err.starts_with("error: " + std::string(row.begins))) << row.arguments << ": " << finished.err;
    EXPECT_NE(finished.err.find(row.contains), std::string::npos) << row.arguments << ": " << finished.err;
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
    EXPECT_EQ(finished.out, "") << row.arguments;
  }
}

TEST(BadInput, NamesWithTheNearest) {
  check("etl-wb", {{"", "WORKLOAD", "--describe"},
                   {"intst", "WORKLOAD=intst", "did you mean intset?"},
                   {"zebra", "WORKLOAD=zebra", "known: array-counters bayes "},
                   {"intset --treads 2", "--treads", "did you mean --threads?"},
                   {"intset extra", "extra", "no such option"},
                   {"intset -p mappin=table", "-p mappin=table", "did you mean mapping?"},
                   {"intset -p structure=lst", "-p structure=lst", "did you mean list?"},
                   {"intset -p structure=", "-p structure", "hash, list, tree"},
                   {"intset -p structure", "-p=structure", "key=value"},
                   {"threadtest", "WORKLOAD=threadtest", "known: array-counters bayes "}});
  check("none", {{"thredtest", "WORKLOAD=thredtest", "did you mean threadtest?"},
                 {"zebra", "WORKLOAD=zebra", "known: blocks cache-scratch cache-thrash fragmentation larson"},
                 {"threadtest -p structure=list", "-p structure=list", "known: size"}});
}

TEST(BadInput, NumbersOutOfRange) {
  check("etl-wb", {{"intset --threads 0", "--threads=0", "from 1 to 1024"},
                   {"intset --threads 1025", "--threads=1025", "from 1 to 1024"},
                   {"intset --threads 1024", "--threads=1024", "at most 1023"},
                   {"intset --threads two", "--threads=two", "integer"},
                   {"intset --threads -1", "--threads=-1", "integer"},
                   {"intset --threads", "--threads", "needs a value"},
                   {"intset --blame --explain 0", "--explain=0", "from 1 to"},
                   {"intset --explain 5", "--explain", "add --blame"},
                   {"intset --blame --explain", "--explain", "needs a value"},
                   {"intset --seed 1x", "--seed=1x", "integer"},
                   {"intset --seed 18446744073709551616", "--seed=18446744073709551616", "integer"},
                   {"intset --warmup-ms -5", "--warmup-ms=-5", "integer"},
                   {"intset -p shift=2", "-p shift=2", "from 3 to 12"},
                   {"intset -p shift=13", "-p shift=13", "from 3 to 12"},
                   {"intset -p records_log2=27", "-p records_log2=27", "from 10 to 26"},
                   {"intset -p update_percent=101", "-p update_percent=101", "from 0 to 100"},
                   {"intset -p update_percent=5.5", "-p update_percent=5.5", "integer"},
                   {"intset -p range=0", "-p range=0", "from 1 to"}});
  check("none", {{"threadtest -p size=7", "-p size=7", "from 8 to"},
                 {"threadtest -p batch=0", "-p batch=0", "from 1 to"},
                 {"blocks -p size=0", "-p size=0", "from 1 to"},
                 {"blocks -p count=1", "-p count=1", "from 2 to 64"}});
}

TEST(BadInput, ValuesThatContradictEachOther) {
  const auto finished = run(executable("sequential") + " intset -p elements=9000");
  EXPECT_EQ(finished.status, 2);
  EXPECT_NE(finished.err.find("9000 distinct keys do not fit into range=8192"), std::string::npos) << finished.err;
  EXPECT_EQ(finished.out, "");
}

TEST(BadInput, WhatTheSynchronisationCannotDo) {
  check("sequential", {{"intset --threads 2", "--threads=2", "at most 1 thread"},
                       {"intset --blame", "--blame", "no blame mode"},
                       {"intset -p mapping=table", "-p mapping=table", "no such parameter"}});
}

TEST(BadInput, Processors) {
  check("sequential", {{"intset --cpus 0,,1", "--cpus=0,,1", "list of processor numbers"},
                       {"intset --cpus 1023", "--cpus=1023", "usable:"}});
}

TEST(BadInput, RecordsThatCannotBeWritten) {
  check("sequential", {{"intset --records /nonexistent/folder/file", "--records=/nonexistent", "No such file"},
                       {"intset --records 999", "--records=999", "no open descriptor"},
                       {"intset --records /dev/full", "--records=/dev/full", "No space left"}});
}

}  // namespace
}  // namespace loam::tests
