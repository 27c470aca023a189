// hybrid-norec behind -fgnu-tm: hardware attempts of plain and of instrumented code beside software transactions
// (runtime/itm/hardware.hpp).
#include "runtime/platform/machine.hpp"
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include <unistd.h>

extern "C" {
[[gnu::transaction_pure]] unsigned _ITM_inTransaction();
}

namespace {

using namespace loam::tests;

// Before the first transaction, whatever this program is run for.
[[maybe_unused]] const int with_hybrid = ::setenv("LOAM_ITM_ALGORITHM", "hybrid-norec", 1);

Padded left_counter, right_counter;

[[gnu::transaction_pure, gnu::noinline]] bool in_hardware_now() { return loam::platform::in_transaction(); }
[[gnu::transaction_pure, gnu::noinline]] void calls_the_system() { ::getppid(); }

// interrupts: no hardware attempt of it commits.
[[gnu::noipa]] bool adds_to_both(bool interrupts = false) {
  bool hardware = false;
  __transaction_atomic {
    left_counter.value += 1;
    if (interrupts) calls_the_system();
    right_counter.value += 1;
    hardware = in_hardware_now();
  }
  return hardware;
}

class Hybrid : public ::testing::Test {
 protected:
  // A processor without hardware transactions does not know the question either.
  void SetUp() override {
    if (!__builtin_cpu_supports("rtm")) GTEST_SKIP() << "this processor has no hardware transactions";
    int hardware = 0;
    for (int i = 0; i < 1000; ++i) hardware += adds_to_both() ? 1 : 0;
    if (hardware == 0) GTEST_SKIP() << "no transaction of a thousand commits in hardware";
    EXPECT_GT(hardware, 500);
    left_counter.value = right_counter.value = 0;
  }
};

std::function<void()> meanwhile;
[[gnu::transaction_pure, gnu::noinline]] void run_meanwhile() { meanwhile(); }

// It could be cancelled, so it runs in software; noipa: the compiler must not make a copy that cannot.
[[gnu::noipa]] long difference_in_software(bool cancels) {
  long found = 0;
  __transaction_atomic {
    const long left = left_counter.value;
    run_meanwhile();
    found = left - right_counter.value;
    if (cancels) __transaction_cancel;
  }
  return found;
}

TEST_F(Hybrid, ACommitInHardwareIsSeenAsAWholeBySoftware) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> turn{0};
    std::atomic<bool> ready{false};
    std::thread writer([&] {
      // The first one of a thread is software's; the first one of a place that is interrupted runs alone, which would now
      // wait for the reader.
      for (int i = 0; i < 2; ++i) adds_to_both(true);
      ready = true;
      while (turn != 1) std::this_thread::yield();
      while (!adds_to_both()) {
      }
      turn = 2;
    });
    meanwhile = [&] {
      if (turn == 2) return;
      turn = 1;
      while (turn != 2) std::this_thread::yield();
    };
    while (!ready) std::this_thread::yield();
    EXPECT_EQ(difference_in_software(false), 0);
    writer.join();
  }
}

[[gnu::noipa]] long difference() {
  long found = 0;
  __transaction_atomic { found = left_counter.value - right_counter.value; }
  return found;
}

[[gnu::transaction_unsafe, gnu::noinline]] void adds_unsafely() { left_counter.value += 1; }
[[gnu::noipa]] void adds_irrevocably() {
  __transaction_relaxed {
    adds_unsafely();
    right_counter.value += 1;
  }
}
[[gnu::noipa]] void adds_in_software(bool cancels) {
  __transaction_atomic {
    left_counter.value += 1;
    right_counter.value += 1;
    if (cancels) __transaction_cancel;
  }
}

TEST_F(Hybrid, HardwareSoftwareAndIrrevocableOnesLoseNothing) {
  constexpr int kTimes = 20'000;
  std::atomic<long> torn{0}, hardware{0}, added{0};
  on_threads(4, [&](int thread) {
    long mine = 0, in_hardware = 0;
    for (int n = 0; n < kTimes; ++n) {
      switch ((n + thread) % 8) {
        case 0:
          adds_in_software(n % 3 == 0);
          mine += n % 3 == 0 ? 0 : 1;
          break;
        case 1:
          if (n % 64 == 1) adds_irrevocably(), ++mine;
          break;
        case 2:
        case 3:
          if (difference() != 0) ++torn;
          break;
        default:
          in_hardware += adds_to_both() ? 1 : 0;
          ++mine;
      }
    }
    hardware += in_hardware;
    added += mine;
  });
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(left_counter.value, added);
  EXPECT_EQ(right_counter.value, added);
  EXPECT_GT(hardware, kTimes / 8);
}

struct Node {
  long value, same;
  Node* next;
  char padding[4000];
};
Node* first_node;

[[gnu::noipa]] void pushes(Node* node) {
  __transaction_atomic {
    node->next = first_node;
    first_node = node;
  }
}
[[gnu::noipa]] void pops() {
  __transaction_atomic {
    Node* const node = first_node;
    if (node != nullptr) {
      first_node = node->next;
      std::free(node);
    }
  }
}
[[gnu::noipa]] long mismatches(bool cancels) {
  long found = 0;
  __transaction_atomic {
    for (Node* node = first_node; node != nullptr; node = node->next) found += node->value != node->same ? 1 : 0;
    if (cancels) __transaction_cancel;
  }
  return found;
}

TEST_F(Hybrid, WhatIsFreedIsNotReadInSoftware) {
  first_node = nullptr;
  std::atomic<long> wrong{0};
  on_threads(4, [&](int thread) {
    for (long n = 0; n < 3'000; ++n) {
      if (thread == 3) {
        wrong += mismatches(false);
        continue;
      }
      auto* const node = static_cast<Node*>(std::malloc(sizeof(Node)));
      node->value = node->same = n;
      pushes(node);
      pops();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(first_node, nullptr);
}

SAFE void adds_and_cancels_inside(bool cancel) {
  __transaction_atomic {
    left_counter.value += 100;
    if (cancel) __transaction_cancel;
  }
}
[[gnu::noipa]] bool adds_around(bool cancel) {
  bool hardware = true;
  __transaction_atomic {
    right_counter.value += 1;
    adds_and_cancels_inside(cancel);
    hardware = in_hardware_now();
  }
  return hardware;
}

TEST_F(Hybrid, ANestedCancelIsLeftToSoftware) {
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(adds_around(true));
  EXPECT_EQ(left_counter.value, 0);
  EXPECT_EQ(right_counter.value, 50);
  EXPECT_FALSE(adds_around(false));
  EXPECT_EQ(left_counter.value, 100);
}

SAFE void nest(int depth) {
  __transaction_atomic {
    if (depth > 0) nest(depth - 1);
    left_counter.value += 1;
  }
}
[[gnu::noipa]] bool nests(int depth) {
  bool hardware = false;
  __transaction_atomic {
    nest(depth);
    hardware = in_hardware_now();
  }
  return hardware;
}

TEST_F(Hybrid, NestedOnesAreFlat) {
  int hardware = 0;
  for (int i = 0; i < 100; ++i) hardware += nests(20) ? 1 : 0;
  EXPECT_EQ(left_counter.value, 2100);
  EXPECT_GT(hardware, 50);
  EXPECT_EQ(_ITM_inTransaction(), 0u);
}

// 64 lines of one set of the first-level cache, more than any has ways.
constexpr std::size_t kLines = 64, kApart = 4096 / sizeof(long);
long numbers[kLines * kApart];
[[gnu::noipa]] bool adds_to_many() {
  bool hardware = true;
  __transaction_atomic {
    for (std::size_t line = 0; line < kLines; ++line) numbers[line * kApart] += 1;
    hardware = in_hardware_now();
  }
  return hardware;
}

TEST_F(Hybrid, WhatDoesNotFitRunsInSoftware) {
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(adds_to_many());
  for (std::size_t line = 0; line < kLines; ++line) ASSERT_EQ(numbers[line * kApart], 200);
}

// On every machine.
TEST(WithoutHardware, HybridRunsInSoftwareAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("LOAM_HTM", "off", 1);
  const auto runs = [] {
    left_counter.value = 0;
    on_threads(2, [](int) {
      for (int i = 0; i < 100; ++i) adds_in_software(false);
    });
    ::_exit(left_counter.value == 200 ? 0 : 3);
  };
  EXPECT_EXIT(runs(), ::testing::ExitedWithCode(0),
              "hybrid-norec: hardware transactions are switched off by LOAM_HTM=off; transactions run in software");
  ::unsetenv("LOAM_HTM");
}

}  // namespace
