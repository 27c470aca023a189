// The causes of aborts have one table, runtime/tm/abort_cause.hpp: schema, descriptions, metrics and records must say
// what it says.
#include "runtime/tm/abort_cause.hpp"

#include "tests/unit/workloads/executables.hpp"

#include <gtest/gtest.h>
#include <set>

namespace loam::tests {
namespace {

using tm::kAbortCauseTable;

std::set<std::string> counters() {
  std::set<std::string> all;
  for (const auto& row : kAbortCauseTable) all.insert(std::string(row.counter));
  return all;
}

bool counts_a_cause(const std::string& name) { return name.starts_with("aborts_") && name != "aborts_per_attempt"; }

TEST(Causes, TheSchemaHasThemAll) {
  const Json schema = Json::parse(read_file(std::filesystem::path(LOAM_SOURCE_ROOT) / "schema" / "record.schema.json"));
  const Json& properties = schema["$defs"]["tm_iteration"]["properties"];
  std::set<std::string> names;
  for (const auto& [name, property] : properties.object())
    if (counts_a_cause(name)) names.insert(name);
  EXPECT_EQ(names, counters());
  for (const auto& row : kAbortCauseTable)
    EXPECT_EQ(properties[row.counter]["description"].string(), row.meaning) << row.counter;
}

TEST(Causes, ADescriptionHasThemInTheirOrderAndTheirMetrics) {
  const Json description = Json::parse(run(executable("etl-wb") + " --describe").out);
  const auto& causes = description["sync"]["tm"]["abort_causes"].array();
  ASSERT_EQ(causes.size(), kAbortCauseTable.size());
  for (std::size_t i = 0; i < causes.size(); ++i) {
    EXPECT_EQ(causes[i]["name"].string(), kAbortCauseTable[i].name());
    EXPECT_EQ(causes[i]["words"].string(), kAbortCauseTable[i].words);
    EXPECT_EQ(causes[i]["meaning"].string(), kAbortCauseTable[i].meaning);
  }
  std::set<std::string> metrics;
  for (const auto& metric : description["workloads"].array().at(0)["metrics"].array())
    if (counts_a_cause(metric["name"].string())) metrics.insert(metric["name"].string());
  EXPECT_EQ(metrics, counters());
}

TEST(Causes, ARecordCountsThemAll) {
  const auto one = record(run(executable("etl-wb") + " intset -p operations=100"), "iteration");
  std::set<std::string> names;
  for (const auto& [name, value] : one["tm"].object())
    if (counts_a_cause(name)) names.insert(name);
  EXPECT_EQ(names, counters());
}

TEST(Causes, WordsTellThemApart) {
  std::set<std::string_view> words, names;
  for (const auto& row : kAbortCauseTable) {
    words.insert(row.words);
    names.insert(row.name());
  }
  EXPECT_EQ(words.size(), kAbortCauseTable.size());
  EXPECT_EQ(names.size(), kAbortCauseTable.size());
}

}  // namespace
}  // namespace loam::tests
