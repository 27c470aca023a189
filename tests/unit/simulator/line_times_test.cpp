// How long cores are at a line that another core uses, too.
#include "simulator/model/line_times.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace loam::simulator {
namespace {

class LineTimesTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kWindow = 1000;
  const std::unique_ptr<LineTimes> times_ = std::make_unique<LineTimes>(kWindow);

  void write(unsigned core, std::uint64_t line, std::uint64_t now) { times_->access(core, line, true, now); }
  void read(unsigned core, std::uint64_t line, std::uint64_t now) { times_->access(core, line, false, now); }
};

TEST_F(LineTimesTest, TheTimeFromAnAccessToTheNextIsTheFirstOnesLines) {
  write(0, 7, 100);
  write(1, 7, 150);  // shared from here on
  write(1, 8, 190);  // 40 cycles at line 7, then alone at line 8
  write(1, 9, 999);
  EXPECT_EQ(times_->shared_cycles(7), 40u);
  EXPECT_EQ(times_->shared_cycles(8), 0u);
  EXPECT_EQ(times_->shared_cycles(6), 0u);
}

TEST_F(LineTimesTest, WhoWaitsAtALineIsThereAllTheWhile) {
  write(0, 7, 0);
  for (std::uint64_t now = 10; now <= 500; now += 10) read(1, 7, now);
  EXPECT_EQ(times_->shared_cycles(7), 490u);
}

TEST_F(LineTimesTest, ALineThatIsOnlyReadIsNotShared) {
  read(0, 7, 0);
  read(1, 7, 10);
  read(1, 7, 20);
  EXPECT_EQ(times_->shared_cycles(7), 0u);
  write(1, 7, 30);  // but a read by another core counts for who writes
  write(1, 8, 50);
  EXPECT_EQ(times_->shared_cycles(7), 20u);
}

TEST_F(LineTimesTest, AUseThatIsLongPastDoesNotCount) {
  write(0, 7, 0);
  write(1, 7, kWindow + 1);
  write(1, 8, kWindow + 100);
  EXPECT_EQ(times_->shared_cycles(7), 0u);
  write(0, 9, kWindow);
  write(1, 9, 2 * kWindow);
  write(1, 8, 2 * kWindow + 5);
  EXPECT_EQ(times_->shared_cycles(9), 5u);
}

TEST_F(LineTimesTest, OfTwoUsersTheOtherOneCounts) {
  write(0, 7, 0);
  write(1, 7, 10);
  write(1, 7, 20);  // the last user is this core itself; the one before is not
  write(1, 8, 35);
  EXPECT_EQ(times_->shared_cycles(7), 25u);
  write(1, 7, kWindow + 5);  // the other one's use is long past; the two own ones before this are not
  write(1, 8, kWindow + 20);
  EXPECT_EQ(times_->shared_cycles(7), 25u);
}

TEST_F(LineTimesTest, LinesBeyondThoseThatItFollowsAreLeftOut) {
  for (std::uint64_t line = 1; line <= LineTimes::kLines; ++line) write(0, line, line);
  const std::uint64_t now = LineTimes::kLines + 1, last = LineTimes::kLines;
  write(1, last, now);
  write(1, last + 1, now + 3);
  write(0, last + 1, now + 4);
  write(0, last, now + 9);
  EXPECT_EQ(times_->shared_cycles(last), 3u);
  EXPECT_EQ(times_->shared_cycles(last + 1), 0u);
}

}  // namespace
}  // namespace loam::simulator
