// The gate: who is alone, and its window, when it closes again before who has waited at it is through.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>

namespace loam::tm {
namespace {

using tests::x, tests::y;

struct GateTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, GateTest, testing::ValuesIn(tests::variants({"table", "small_table"})),
                         tests::variant_name);

// Runs body(tx) in a thread that has waited at the gate; when that is at `point`, the gate closes once more.
//   alone(gate): the body of who closes it then, in place; may wait for what it likes.
template <class Driver, class Alone, class Body>
bool behind_a_gate_that_closes_again(const char* point, const char* alone_is_at, Alone alone, Body body) {
  std::atomic<bool> at_the_gate{false}, closed_again{false};
  std::thread closes, waits;
  bool reached = false;
  Driver::irrevocable([&](auto&) {
    waits = std::thread([&] {
      const tests::Interpose arrives("tm.at_the_gate", 0, [&] { at_the_gate = true; });
      const tests::Interpose window(point, 0, [&] {
        closes = std::thread([&] {
          const tests::Interpose has_closed("tm.gate_closed", 0, [&] {
            if (alone_is_at == std::string_view("closed")) closed_again = true;
          });
          Driver::irrevocable([&](auto& tx) {
            closed_again = true;
            alone(tx);
          });
        });
        while (!closed_again) platform::yield();
      });
      Driver::update([&](auto& tx) { body(tx); });
      reached = window.reached();
    });
    while (!at_the_gate) platform::yield();
  });
  waits.join();
  if (closes.joinable()) closes.join();
  return reached;
}

TEST_P(GateTest, WhoHasSeenTheGateOpenLooksAgainOnceItIsAnnounced) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Nobody was announced when the gate closed: nothing holds up who closed it, and nobody may run beside it.
    std::atomic<bool> is_alone{false}, beside{false};
    EXPECT_TRUE(behind_a_gate_that_closes_again<Driver>(
        "tm.gate_open", "inside",
        [&](auto& tx) {
          is_alone = true;
          const auto deadline = platform::monotonic_ns() + 5'000'000;
          while (!beside && platform::monotonic_ns() < deadline) platform::yield();
          is_alone = false;
          tx.write(x, Word{1});
        },
        [&](auto& tx) {
          if (is_alone) beside = true;
          tx.write(y, tx.read(x) + 1);
        }));
    EXPECT_FALSE(beside);
    EXPECT_EQ(y, 2u);
  });
}

TEST_P(GateTest, WhoIsAnnouncedWhenTheGateClosesLetsItGoFirst) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Who closes the gate waits for who is announced; that one, who has not begun, looks again and gives way.
    EXPECT_TRUE(behind_a_gate_that_closes_again<Driver>(
        "tm.announced", "closed", [](auto& tx) { tx.write(x, Word{1}); },
        [](auto& tx) { tx.write(y, tx.read(x) + 1); }));
    EXPECT_EQ(y, 2u) << "it ran before who had closed the gate";
  });
}

TEST_P(GateTest, WhoIsThroughIsWaitedFor) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<bool> at_the_gate{false}, has_closed{false}, is_alone{false}, beside{false};
    std::thread closes, waits;
    const auto close = [&] {
      const tests::Interpose closed("tm.gate_closed", 0, [&] { has_closed = true; });
      Driver::irrevocable([&](auto&) { is_alone = true; });
    };
    Driver::irrevocable([&](auto&) {
      waits = std::thread([&] {
        const tests::Interpose arrives("tm.at_the_gate", 0, [&] { at_the_gate = true; });
        Driver::update([&](auto& tx) {
          if (!closes.joinable()) closes = std::thread(close);
          // Until then a slow start of the thread would count as its patience.
          while (!has_closed) platform::yield();
          const auto deadline = platform::monotonic_ns() + 5'000'000;
          while (!is_alone && platform::monotonic_ns() < deadline) platform::yield();
          if (is_alone) beside = true;
          tx.write(y, Word{1});
        });
      });
      while (!at_the_gate) platform::yield();
    });
    waits.join();
    closes.join();
    EXPECT_FALSE(beside);
    EXPECT_TRUE(is_alone);
  });
}

// What the rest of the runtime asks: who is alone, whether it can be taken back, and how often anybody was.
TEST_P(GateTest, WhoIsAloneIsKnownAndCounted) {
  tests::in_variant(GetParam(), []<class Driver>() {
    const auto is_alone = [] { return serial::holds(Descriptor::current_or_detached()); };
    Driver::update([&](auto& tx) {
      tx.write(x, Word{1});
      EXPECT_FALSE(is_alone());
      EXPECT_FALSE(serial::revocable());
      EXPECT_FALSE(serial::closed());
    });
    const std::uint64_t before = serial::generation();
    Driver::update([](auto& tx) { tx.write(x, Word{2}); });
    EXPECT_EQ(serial::generation(), before) << "an ordinary transaction leaves other traces";
    Driver::irrevocable([&](auto&) {
      EXPECT_TRUE(is_alone());
      EXPECT_TRUE(serial::closed());
      EXPECT_FALSE(serial::revocable());
      std::thread([&] { EXPECT_FALSE(is_alone()) << "another thread is not"; }).join();
    });
    EXPECT_FALSE(is_alone());
    EXPECT_EQ(serial::generation(), before + 1);
    bool was_revocable = false;
    Driver::update([&](auto& tx) {
      tx.write(x, Word{3});
      if (serial::closed()) was_revocable = serial::revocable();
      Driver::irrevocable([&](auto&) { EXPECT_FALSE(serial::revocable()); });
      EXPECT_FALSE(serial::revocable());
    });
    EXPECT_TRUE(was_revocable) << "until its irrevocable part begins";
    EXPECT_FALSE(serial::revocable()) << "nothing runs";
    EXPECT_EQ(serial::generation(), before + 2);
    serial::acquire_for_change();
    EXPECT_TRUE(serial::closed());
    EXPECT_FALSE(is_alone()) << "a change is no transaction's";
    serial::release_after_change();
    EXPECT_FALSE(serial::closed());
    EXPECT_EQ(serial::generation(), before + 3);
    serial::acquire_for_fork(Descriptor::current_or_detached());
    EXPECT_TRUE(serial::closed());
    EXPECT_FALSE(is_alone());
    serial::release_after_fork();
    EXPECT_FALSE(serial::closed());
    EXPECT_EQ(serial::generation(), before + 3) << "a fork changes nothing";
  });
}

}  // namespace
}  // namespace loam::tm
