// The checker of histories, calibrated: what is wrong must be found, what is right must pass. Histories by hand.
#include "tests/model/opacity.hpp"

#include <gtest/gtest.h>

namespace loam::tests {
namespace {

constexpr auto r = [](unsigned variable, std::uint64_t value) { return Event{EventKind::read, variable, value}; };
constexpr auto w = [](unsigned variable, std::uint64_t value) { return Event{EventKind::write, variable, value}; };

constexpr bool kCommitted = true, kAborted = false;

struct Case {
  const char* name;
  const char* complaint;  // part of it; "" if the history is opaque
  History history;
};

// Columns: thread, begin, end, committed, cancelled, events.
const Case kCases[] = {
    {"empty", "", {}},
    {"one_after_the_other",
     "",
     {{0, 1, 2, kCommitted, false, {r(0, 0), w(0, 10)}}, {1, 3, 4, kCommitted, false, {r(0, 10), w(0, 20)}}}},
    {"overlapping_in_either_order",
     "",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10)}}, {1, 2, 3, kCommitted, false, {r(0, 0)}}}},
    {"a_reader_may_be_put_before_a_writer_that_ended_later",
     "",
     {{0, 1, 9, kCommitted, false, {r(0, 0), r(1, 0)}}, {1, 2, 3, kCommitted, false, {r(0, 0), w(0, 10)}}}},
    {"an_aborted_reader_of_one_time",
     "",
     {{0, 1, 9, kAborted, false, {r(0, 0), r(1, 0)}},
      {1, 2, 3, kCommitted, false, {r(0, 0), w(0, 10), r(1, 0), w(1, 11)}}}},
    {"own_writes",
     "",
     {{0, 1, 2, kCommitted, false, {r(0, 0), w(0, 10), r(0, 10), w(0, 11), r(0, 11)}},
      {1, 3, 4, kCommitted, false, {r(0, 11)}}}},
    {"lost_update",
     "lost update",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10)}}, {1, 2, 3, kCommitted, false, {r(0, 0), w(0, 20)}}}},
    {"write_skew",
     "cycle",
     {{0, 1, 4, kCommitted, false, {r(0, 0), r(1, 0), w(0, 10)}},
      {1, 2, 3, kCommitted, false, {r(0, 0), r(1, 0), w(1, 20)}}}},
    {"torn_pair",
     "cycle",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10), r(1, 0), w(1, 11)}},
      {1, 2, 3, kCommitted, false, {r(0, 0), r(1, 11)}}}},
    {"zombie_read_in_an_attempt_that_aborts",
     "cycle",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10), r(1, 0), w(1, 11)}},
      {1, 2, 3, kAborted, false, {r(0, 0), r(1, 11)}}}},
    {"zombie_read_in_an_attempt_that_is_cancelled",
     "cycle",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10), r(1, 0), w(1, 11)}},
      {1, 2, 3, kAborted, true, {r(1, 11), r(0, 0)}}}},
    {"real_time_inversion",
     "cycle",
     {{0, 1, 2, kCommitted, false, {r(0, 0), w(0, 10)}}, {1, 3, 4, kCommitted, false, {r(0, 0)}}}},
    {"an_older_version_after_a_newer_one_in_one_thread",
     "cycle",
     {{0, 1, 9, kCommitted, false, {r(0, 0), w(0, 10)}},
      {1, 2, 3, kCommitted, false, {r(0, 10)}},
      {1, 4, 5, kCommitted, false, {r(0, 0)}}}},
    {"two_values_in_one_attempt",
     "cycle",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10)}}, {1, 2, 3, kAborted, false, {r(0, 0), r(0, 10)}}}},
    {"read_from_aborted",
     "did not commit",
     {{0, 1, 4, kAborted, false, {r(0, 0), w(0, 10)}}, {1, 2, 3, kCommitted, false, {r(0, 10)}}}},
    {"read_from_cancelled",
     "did not commit",
     {{0, 1, 2, kAborted, true, {r(0, 0), w(0, 10)}}, {1, 3, 4, kAborted, false, {r(0, 10)}}}},
    {"intermediate_value",
     "intermediate",
     {{0, 1, 4, kCommitted, false, {r(0, 0), w(0, 10), w(0, 11)}}, {1, 2, 3, kCommitted, false, {r(0, 10)}}}},
    {"value_from_nowhere", "nobody wrote", {{0, 1, 2, kCommitted, false, {r(0, 7)}}}},
    {"value_of_another_variable",
     "another variable",
     {{0, 1, 2, kCommitted, false, {r(0, 0), w(0, 10)}}, {1, 3, 4, kCommitted, false, {r(1, 10)}}}},
    {"own_write_not_read_back", "did not read back", {{0, 1, 2, kCommitted, false, {r(0, 0), w(0, 10), r(0, 0)}}}},
    {"three_attempts_in_a_ring",
     "cycle",
     {{0, 1, 9, kCommitted, false, {r(0, 0), r(1, 0), w(1, 10)}},
      {1, 2, 8, kCommitted, false, {r(1, 0), r(2, 0), w(2, 20)}},
      {2, 3, 7, kCommitted, false, {r(2, 0), r(0, 0), w(0, 30)}}}},
    {"blind_writes_in_either_order",
     "",
     {{0, 1, 4, kCommitted, false, {w(0, 10)}},
      {1, 2, 3, kCommitted, false, {w(0, 20)}},
      {0, 5, 6, kCommitted, false, {r(0, 20)}}}},
    {"blind_writes_read_in_two_orders",
     "no order",
     {{0, 1, 9, kCommitted, false, {w(0, 10), w(1, 11)}},
      {1, 2, 8, kCommitted, false, {w(0, 20), w(1, 21)}},
      {2, 3, 4, kCommitted, false, {r(0, 10), r(1, 21)}}}},
    {"blind_write_overtakes_real_time",
     "no order",
     {{0, 1, 2, kCommitted, false, {w(0, 10)}},
      {1, 3, 4, kCommitted, false, {w(0, 20)}},
      {0, 5, 6, kCommitted, false, {r(0, 10)}}}},
};

struct OpacityCheckerTest : testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, OpacityCheckerTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(OpacityCheckerTest, Verdict) {
  const auto violation = opacity_violation(GetParam().history);
  if (*GetParam().complaint == '\0') {
    EXPECT_FALSE(violation.has_value()) << *violation;
  } else {
    ASSERT_TRUE(violation.has_value()) << "found nothing wrong";
    EXPECT_NE(violation->find(GetParam().complaint), std::string::npos) << *violation;
  }
}

TEST(HistoryTest, OverlapAndAbortsAreCounted) {
  const History apart{{0, 1, 2, true, false, {r(0, 0), w(0, 1)}}, {1, 3, 4, true, false, {r(0, 1)}}};
  EXPECT_FALSE(has_overlapping_conflict(apart, 2));
  History over{{0, 1, 3, true, false, {r(0, 0), w(0, 1)}}, {1, 2, 4, true, false, {r(0, 1)}}};
  EXPECT_TRUE(has_overlapping_conflict(over, 2));
  over[1].events = {r(1, 0)};
  EXPECT_FALSE(has_overlapping_conflict(over, 2)) << "another variable";
  EXPECT_FALSE(has_abort(over));
  over[1].committed = false;
  EXPECT_TRUE(has_abort(over));
  over[1].cancelled = true;
  EXPECT_FALSE(has_abort(over)) << "asked for";
}

}  // namespace
}  // namespace loam::tests
