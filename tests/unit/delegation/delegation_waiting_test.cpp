// How often a thread looks: as asked for, or as suits the processor.
#include "runtime/delegation/waiting.hpp"

#include <gtest/gtest.h>

namespace loam::delegation {
namespace {

TEST(Waiting, PausesSuitTheProcessor) {
  struct Row {
    double pause_ns;
    std::uint32_t pauses;
  };
  // Processors of 140 cycles, of 30, of 10, and one whose pause does nothing.
  for (const auto& [pause_ns, pauses] : {Row{44, 1}, Row{13.2, 1}, Row{3.5, 4}, Row{0.1, 130}})
    EXPECT_EQ(pauses_for(pause_ns), pauses) << pause_ns;
}

TEST(Waiting, PausesAreThoseAskedFor) {
  EXPECT_EQ(pauses_of({.pauses = 0}), 0U);
  EXPECT_EQ(pauses_of({.pauses = 64}), 64U);
  EXPECT_EQ(pauses_of({}), pauses_for(pause_ns()));
  EXPECT_GE(pauses_of({}), 1U);
}

TEST(Waiting, LooksLastAsLongAsAskedFor) {
  EXPECT_GE(looks_in(0, 4), 1U) << "one look in any case";
  const double looks = looks_in(1'000'000, 1);
  EXPECT_NEAR(looks * (pause_ns() + 2), 1'000'000, 100'000);
  EXPECT_EQ(SpinThenSleep(WaitingSettings{.spin_ns = WaitingSettings::kNeverSleep}).looks(), ~0U);
  EXPECT_EQ(SpinThenSleep(WaitingSettings{.pauses = 3, .spin_ns = 50'000}).looks(), looks_in(50'000, 3));
}

}  // namespace
}  // namespace loam::delegation
