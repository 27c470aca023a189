// How long calls take: the histogram's bound, who is to blame for a long call, and what malloc-latency makes of both.
#include "runtime/base/random.hpp"
#include "runtime/platform/machine.hpp"
#include "tests/unit/workloads/executables.hpp"
#include "workloads/allocation/shared/call_times.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

namespace loam::tests {
namespace {

using workloads::LogHistogram;
using workloads::TickClock;
using workloads::allocation::CallTimer;
using workloads::allocation::CallTimes;

// ---- the histogram

// By the same definition, from all numbers.
double exact_quantile(std::vector<std::uint64_t> numbers, double part) {
  std::ranges::sort(numbers);
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(numbers.size())));
  return static_cast<double>(numbers[std::max<std::size_t>(rank, 1) - 1]);
}

TEST(LogHistogram, QuantilesAreOffByNoMoreThanTheBound) {
  base::Random random(17);
  // The numbers of each round have up to that many bits, all lengths alike.
  for (const unsigned bits : {5u, 7u, 8u, 20u, 40u, 64u}) {
    LogHistogram histogram;
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 20000; ++i) {
      numbers.push_back(random() >> (64 - 1 - random.below(bits)));
      histogram.add(numbers.back());
    }
    EXPECT_EQ(histogram.count(), numbers.size());
    EXPECT_EQ(histogram.max(), std::ranges::max(numbers)) << bits;
    for (const double part : {0.0001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
      const double exact = exact_quantile(numbers, part);
      EXPECT_LE(std::abs(histogram.quantile(part) - exact), LogHistogram::kErrorMax * exact) << bits << " " << part;
    }
  }
}

TEST(LogHistogram, EachNumberIsFoundAgain) {
  const auto found = [](std::uint64_t number) {
    LogHistogram histogram;
    histogram.add(number);
    histogram.add(~std::uint64_t{0});  // the largest, so that the quantile is of a bucket and not of the maximum
    return histogram.quantile(0.5);
  };
  for (std::uint64_t number = 0; number < 128; ++number) EXPECT_EQ(found(number), static_cast<double>(number));
  // Around each power of two, and where its buckets meet.
  for (unsigned power = 7; power < 64; ++power)
    for (const std::uint64_t part : {0, 1, 31, 32, 63})
      for (const std::int64_t beside : {-1, 0, 1}) {
        const std::uint64_t number =
            (std::uint64_t{1} << power) + (part << (power - 6)) + static_cast<std::uint64_t>(beside);
        const auto exact = static_cast<double>(number);
        EXPECT_LE(std::abs(found(number) - exact), LogHistogram::kErrorMax * exact) << number;
      }
}

TEST(LogHistogram, OfNothingIsZeroAndTwoAddUp) {
  LogHistogram one, other;
  EXPECT_EQ(one.quantile(0.5), 0);
  for (int i = 0; i < 99; ++i) one.add(10);
  other.add(5000);
  one += other;
  EXPECT_EQ(one.count(), 100u);
  EXPECT_EQ(one.max(), 5000u);
  EXPECT_EQ(one.quantile(0.99), 10);
  EXPECT_EQ(one.quantile(0.999), 5000) << "the middle of its bucket lies above, but no number does";
}

// ---- whose doing a long call is

// Time and waiting as the test says; a tick is a nanosecond.
struct FakeThread {
  static std::uint64_t ticks() noexcept { return now_ns; }
  static std::optional<std::uint64_t> run_delay_ns() noexcept {
    if (!counted) return std::nullopt;
    return waited_ns;
  }
  // Passes time, `waiting` of it without a processor.
  static void pass(std::uint64_t ns, std::uint64_t waiting = 0) noexcept {
    now_ns += ns;
    waited_ns += waiting;
  }
  inline static std::uint64_t now_ns, waited_ns;
  inline static bool counted;
};

class LongCalls : public testing::Test {
 protected:
  void SetUp() override {
    FakeThread::now_ns = FakeThread::waited_ns = 1'000'000'000;
    FakeThread::counted = true;
  }
  void call(std::uint64_t ns, std::uint64_t waiting = 0) {
    timer_.time(times_, [&] { FakeThread::pass(ns, waiting); });
  }

  static constexpr std::uint64_t kLong = CallTimer<FakeThread>::kLongNs, kRenewal = CallTimer<FakeThread>::kRenewalNs;
  TickClock clock_{1.0, 1.0};
  CallTimer<FakeThread> timer_{clock_};
  CallTimes times_;
};

TEST_F(LongCalls, ArePausesUnlessTheThreadWaitedForHalfOfThem) {
  call(kLong);
  call(5 * kLong);
  call(5 * kLong, 2 * kLong);
  EXPECT_EQ(times_.preempted, 0u);
  EXPECT_EQ(times_.all.count(), 3u);
  EXPECT_EQ(times_.all.max(), 5 * kLong);
  call(8 * kLong, 4 * kLong);
  EXPECT_EQ(times_.preempted, 1u);
  EXPECT_EQ(times_.all.count(), 3u);
  EXPECT_EQ(times_.all.max(), 5 * kLong) << "its time is nobody's pause";
}

TEST_F(LongCalls, OfTheSameThreadDoNotInheritWhatItWaitedInThem) {
  call(8 * kLong, 8 * kLong);
  call(8 * kLong);
  EXPECT_EQ(times_.preempted, 1u);
  EXPECT_EQ(times_.all.max(), 8 * kLong);
}

TEST_F(LongCalls, DoNotInheritWhatTheThreadWaitedBetweenThem) {
  call(10);
  FakeThread::pass(10 * kLong, 10 * kLong);
  call(5 * kLong);
  EXPECT_EQ(times_.preempted, 0u);
  EXPECT_EQ(times_.all.max(), 5 * kLong);
}

// Each short wait goes unseen; only the last millisecond's can be taken for a call's.
TEST_F(LongCalls, DoNotInheritShortWaitsOfLongAgo) {
  for (std::uint64_t passed = 0; passed < 20 * kRenewal; passed += kLong) call(kLong, kLong / 100);
  const auto counted = times_.all.count();
  call(3 * kLong);
  EXPECT_EQ(times_.preempted, 0u);
  EXPECT_EQ(times_.all.count(), counted + 1);
}

TEST_F(LongCalls, ArePausesWhereTheKernelDoesNotCount) {
  FakeThread::counted = false;
  call(10 * kLong, 10 * kLong);
  EXPECT_EQ(times_.preempted, 0u);
  EXPECT_EQ(times_.all.max(), 10 * kLong);
}

TEST(TickClock, AgreesWithTheSystemsClock) {
  const TickClock clock = TickClock::calibrated();
  EXPECT_GT(clock.step_ns, 0);
  // The thread may lose its processor between two readings: one try in several is enough.
  double closest = 1;
  for (int i = 0; i < 20 && closest > 0.001; ++i) {
    const std::uint64_t ns = platform::monotonic_ns(), ticks = platform::ordered_ticks();
    platform::sleep_ns(5'000'000);
    const double passed_ns = clock.ns(static_cast<double>(platform::ordered_ticks() - ticks));
    closest = std::min(closest, std::abs(passed_ns / static_cast<double>(platform::monotonic_ns() - ns) - 1));
  }
  EXPECT_LT(closest, 0.001);
  EXPECT_NEAR(clock.ns(static_cast<double>(clock.ticks(1'000'000))), 1e6, 2 * clock.ns(1) + 1);
}

// ---- the workload

Json latency(const std::string& arguments, const std::string& environment = "") {
  const auto finished = run(environment + " " + executable("none") + " malloc-latency " + arguments);
  EXPECT_EQ(finished.status, 0) << arguments << ": " << finished.err;
  return record(finished, "iteration");
}

TEST(MallocLatency, QuantilesRiseToTheLongestCall) {
  const auto one = latency("-p operations=100000 --threads 2");
  for (const std::string call : {"malloc", "free"}) {
    double below = 0;
    for (const std::string which : {"_p50_ns", "_p99_ns", "_p999_ns", "_max_ns"}) {
      const double value = one[call + which].number();
      EXPECT_GE(value, below) << call << which;
      below = value;
    }
    EXPECT_GE(one[call + "_p50_ns"].number(), one["clock_step_ns"].number());
  }
  EXPECT_GT(one["clock_cost_ns"].number(), 0);
  EXPECT_GE(one["clock_max_ns"].number(), one["clock_cost_ns"].number());
}

TEST(MallocLatency, TimesOneCallInSoMany) {
  const auto timed = [](const std::string& one_in) {
    const auto one = latency("-p operations=50000 -p exchanged_percent=0 -p timed_one_in=" + one_in);
    return one["timed_calls"].number() + one["preempted"].number();
  };
  EXPECT_EQ(timed("1"), 100000);
  // Binomial: five standard deviations.
  EXPECT_NEAR(timed("4"), 25000, 5 * std::sqrt(100000 * 0.25 * 0.75));
  EXPECT_NEAR(timed("100"), 1000, 5 * std::sqrt(1000));
}

TEST(MallocLatency, WhatWasNeverTimedIsLeftOut) {
  const auto finished = run(executable("none") + " malloc-latency -p operations=1 -p window=1 -p timed_one_in=65536");
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(record(finished, "iteration")["timed_calls"].number(), 0);
  EXPECT_EQ(finished.out.find("malloc_p50_ns"), std::string::npos);
}

TEST(MallocLatency, BlocksAreExchangedByTheShareAskedFor) {
  EXPECT_EQ(latency("-p operations=50000 --threads 2 -p exchanged_percent=0")["freed_remotely"].number(), 0);
  EXPECT_GT(latency("-p operations=500000 --threads 2")["freed_remotely"].number(), 0);
}

#ifndef LOAM_INSTRUMENTED
// Every 100th malloc sleeps for a millisecond: one in a hundred, of malloc and not of free, and no preemption.
TEST(MallocLatency, FindsTheSlowCallsOfAnAllocator) {
  const auto preload = "LD_PRELOAD=" + (build_folder() / "loam-faulty-malloc.so").string() + " LOAM_FAULT=slow";
  const auto one = latency("-p operations=20000 -p window=100 -p timed_one_in=1", preload);
  EXPECT_LT(one["malloc_p50_ns"].number(), 500'000);
  EXPECT_GE(one["malloc_p999_ns"].number(), 1'000'000 * (1 - LogHistogram::kErrorMax));
  EXPECT_GE(one["malloc_max_ns"].number(), 1'000'000);
  EXPECT_LT(one["free_p999_ns"].number(), 500'000);
  EXPECT_LT(one["clock_max_ns"].number(), one["malloc_max_ns"].number());
}
#endif

// Two threads share a processor: most of what each is made to wait for falls into timed calls.
TEST(MallocLatency, CountsPreemptedCallsApart) {
  if (!workloads::this_thread_run_delay_ns()) GTEST_SKIP() << "this kernel does not count run delay";
  const auto cpu = std::to_string(platform::cpu_number());
  const auto one = latency("--threads 2 -p timed_one_in=1 -p duration_ms=400 --warmup-ms 0 --cpus " + cpu);
  EXPECT_GT(one["run_delay_s"].number(), 0.1);
  EXPECT_GT(one["preempted"].number(), 0);
}

}  // namespace
}  // namespace loam::tests
