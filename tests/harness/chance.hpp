// Chance: whether a thread that was given something to do could have done it by now, on however busy a machine.
//   Not by the clock: a thread that is ready to run may get no processor for long. It had its chance if it was found
//   asleep again and again, or has computed for far longer than any step of a test takes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include <pthread.h>
#include <time.h>

namespace loam::tests {

class Chance {
 public:
  // Between two looks.
  static constexpr std::chrono::milliseconds kSlice{20};

  // number: the thread's number for the system, 0 until it runs
  Chance(pthread_t thread, const std::atomic<long>& number)
      : thread_(thread), number_(number), computed_before_ns_(computed_ns()) {}

  // Call it after each slice.
  bool had() {
    asleep_ += is_asleep();
    return asleep_ >= kAsleep || computed_ns() >= computed_before_ns_ + kComputedNs;
  }

 private:
  static constexpr unsigned kAsleep = 20;
  static constexpr std::uint64_t kComputedNs = 200'000'000;

  std::uint64_t computed_ns() const {
    clockid_t clock{};
    timespec now{};
    if (pthread_getcpuclockid(thread_, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  }

  // Behind the name in brackets, which may hold anything, stands the state.
  bool is_asleep() const {
    const long number = number_;
    if (number == 0) return false;
    std::ifstream file("/proc/self/task/" + std::to_string(number) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t name_end = text.rfind(')');
    return name_end == std::string::npos || text.compare(name_end + 1, 2, " S") == 0;
  }

  const pthread_t thread_;
  const std::atomic<long>& number_;
  const std::uint64_t computed_before_ns_;
  unsigned asleep_ = 0;
};

}  // namespace loam::tests
