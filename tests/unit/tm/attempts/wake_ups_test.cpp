// waiting::wait() by itself: a change with its wake-up at every moment of a wait, also at those where no point is.
//   The algorithm's part is played: the look at the read set and the marks. So the change comes exactly before or behind
//   a look, whatever stands next to it in the source. Who sleeps through it is found after six seconds, and woken.
#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/tm.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace loam::tm::waiting {
namespace {

// Moments of a wait, in their order; each look has one before and one behind it.
enum Moment : int { kBeforeMarks, kBehindMarks, kBeforeLook, kBehindLook };

std::atomic<bool> changed;
int change_at, looks_before_change;  // the moment, and of a look how many come first
int looks;
alignas(64) Orec record;

void change() {
  changed = true;
  wake_all();
}

void mark_all(Descriptor&) {
  if (change_at == kBeforeMarks) change();
  mark(record);
  if (change_at == kBehindMarks) change();
}

bool unchanged(Descriptor&) {
  const bool is_this = looks++ == looks_before_change;
  if (is_this && change_at == kBeforeLook) change();
  const bool same = !changed;
  if (is_this && change_at == kBehindLook) change();
  return same;
}

// Whether a wait during which the change comes at this moment ends by itself.
bool ends(const Awaited& awaited, int moment, int look) {
  change_at = moment;
  looks_before_change = look;
  looks = 0;
  changed = false;
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    Driver<EtlWb<false>>::update([](auto&) {});
    Descriptor& d = Descriptor::current();
    d.generation = serial::generation();
    wait(awaited, d);
    ended = true;
  });
  const auto deadline = platform::monotonic_ns() + 6'000'000'000;  // for a busy machine
  while (!ended && platform::monotonic_ns() < deadline) platform::sleep_ns(20'000);
  const bool by_itself = ended;
  while (!ended) {
    change();
    platform::sleep_ns(1'000'000);
  }
  waiter.join();
  return by_itself;
}

void expect_no_wake_up_is_lost(const Awaited& awaited) {
  for (const int moment : {kBeforeLook, kBehindLook}) EXPECT_TRUE(ends(awaited, moment, 0)) << "moment " << moment;
  if (awaited.mark_all == nullptr) return;
  for (const int moment : {kBeforeMarks, kBehindMarks}) EXPECT_TRUE(ends(awaited, moment, 0)) << "moment " << moment;
}

TEST(WakeUps, NoneIsLostWhereMarksSayWhoIsMeant) { expect_no_wake_up_is_lost({&unchanged, &mark_all}); }

TEST(WakeUps, NoneIsLostWhereEveryCommitWakes) { expect_no_wake_up_is_lost({&unchanged, nullptr}); }

TEST(WakeUps, NoneIsLostAfterOthersForNothing) {
  // Woken for nothing it polls; the change comes at each of its looks then.
  for (int look = 1; look < 6; ++look)
    for (const int moment : {kBeforeLook, kBehindLook}) {
      std::atomic<bool> stop{false};
      std::thread others([&] {
        while (!stop) {
          wake_all();
          platform::sleep_ns(100'000);
        }
      });
      EXPECT_TRUE(ends({&unchanged, &mark_all}, moment, look)) << "look " << look << ", moment " << moment;
      stop = true;
      others.join();
    }
}

}  // namespace
}  // namespace loam::tm::waiting
