// Histories of small transactional runs are opaque, in every variant.
//   LOAM_HISTORIES=N   runs per variant (4000; 1000 under sanitizers); LOAM_TEST_ALL=1 makes it twenty times as many
//   LOAM_SEED=S        another set of runs (1);  LOAM_HISTORY=I  run I alone (with its seed: the same schedule again)
#include "tests/model/opacity.hpp"
#define LOAM_TEST_DIRECT 1  // races of the code that programs run
#define LOAM_TEST_HASH
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/watchdog.hpp"
#include "tests/model/history_run.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace loam::tests {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

#ifdef LOAM_INSTRUMENTED
constexpr std::uint64_t kHistories = 1000;
#else
constexpr std::uint64_t kHistories = 4000;
#endif

// The checker is quadratic. On a machine that stalls a thread for long a history may be too large; that is counted.
constexpr std::size_t kAttemptsMax = 1000;

struct Tally {
  std::uint64_t runs = 0, conflicts = 0, aborts = 0, attempts = 0, too_large = 0;

  void add(const History& history, unsigned variables) {
    ++runs;
    attempts += history.size();
    conflicts += has_overlapping_conflict(history, variables);
    aborts += has_abort(history);
  }
};

// Checks run `index`; false if it failed.
template <class Driver>
bool check_run(HistoryRuns<Driver>& runs, std::uint64_t seed, std::uint64_t index, Tally& tally) {
  const RunShape shape(seed, index);
  const History history = runs.run(shape);
  tally.add(history, shape.variables);
  if (history.size() > kAttemptsMax) {
    ++tally.too_large;
    return true;
  }
  const auto violation = opacity_violation(history);
  if (!violation) return true;
  ADD_FAILURE() << "not opaque: " << *violation << "\nagain: LOAM_SEED=" << seed << " LOAM_HISTORY=" << index
                << (shape.scheduled ? "" : " (ran freely: may need several tries)") << "\n"
                << to_string(history);
  return false;
}

struct OpacityTest : testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(All, OpacityTest,
                         testing::ValuesIn(variants_for(HistoryRuns<tm::Transactions>::kThreads,
                                                        {"small_table", "small_hash", "shadow", "small_table_blame",
                                                         "shadow_blame"})),
                         variant_name);

TEST_P(OpacityTest, SmallRunsAreOpaque) {
  may_take(60);
  LOAM_NEEDS_POINTS();
  in_variant(GetParam(), [overlaps = description_of(GetParam()).overlaps]<class Driver>() {
    const std::uint64_t seed = number_from("LOAM_SEED", 1);
    const std::uint64_t count =
        number_from("LOAM_HISTORIES", kHistories) * (number_from("LOAM_TEST_ALL", 0) != 0 ? 20 : 1);
    const std::uint64_t alone = number_from("LOAM_HISTORY", ~0ULL);
    Tally scheduled, free;
    HistoryRuns<Driver> runs;
    if (alone != ~0ULL) {
      check_run(runs, seed, alone, scheduled);
      return;
    }
    for (std::uint64_t index = 0; index < count; ++index)
      if (!check_run(runs, seed, index, RunShape(seed, index).scheduled ? scheduled : free)) return;
    for (const Tally* tally : {&scheduled, &free})
      std::printf("  %s: %lu runs, %.1f attempts each, %.0f %% with overlapping conflicts, %.0f %% with an abort\n",
                  tally == &free ? "free" : "scheduled", tally->runs,
                  static_cast<double>(tally->attempts) / static_cast<double>(tally->runs),
                  100.0 * static_cast<double>(tally->conflicts) / static_cast<double>(tally->runs),
                  100.0 * static_cast<double>(tally->aborts) / static_cast<double>(tally->runs));
    // A checked history that holds no conflict checks little.
    EXPECT_GE((scheduled.conflicts + free.conflicts) * 100, count * 30);
    if (overlaps)
      EXPECT_GE((scheduled.aborts + free.aborts) * 100, count * 5);
    else
      EXPECT_EQ(scheduled.aborts + free.aborts, 0u) << "where one attempt runs at a time none fails";
    EXPECT_LE((scheduled.too_large + free.too_large) * 100, count) << "histories too large to check";
  });
}

TEST(OpacityTest, TheScheduleFollowsFromTheSeed) {
  LOAM_NEEDS_POINTS();
  std::vector<Variant> several = variants({"small_table"});
  // Visible readers are looked for in the order of their slots, which threads take as they start.
  std::erase_if(several, readers_block_writers);
  if (several.empty())
    GTEST_SKIP()
        << "of the chosen algorithm the schedule follows from more: its threads wait for each other's sleeps, or "
           "readers are looked for by their slots";
  in_variant(several.front(), []<class Driver>() {
    tm::contention::waits = {.owner_ns = 0, .free_ns = 0};  // how long is no matter of the schedule
    HistoryRuns<Driver> runs;
    for (std::uint64_t index : {0, 1, 2, 5, 6, 7}) {
      const RunShape shape(1, index);
      ASSERT_TRUE(shape.scheduled);
      EXPECT_EQ(to_string(runs.run(shape)), to_string(runs.run(shape)));
    }
  });
}

}  // namespace
}  // namespace loam::tests
