// An update reads as a read-only transaction does until its first write (runtime/itm/unwritten.hpp). After that its
// reads find what it has written, and its earlier reads are still validated.
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace loam::tests;

template <class T>
SAFE void put(T* to, T value) {
  *to = value;
}
template <class T>
SAFE T get(const T* from) {
  return *from;
}

std::function<void()> meanwhile;
[[gnu::transaction_pure, gnu::noinline]] void run_meanwhile() { meanwhile(); }

template <class T>
void writes_and_reads() {
  static T place;
  place = T{1};
  T before{}, after{};
  __transaction_atomic {
    before = get(&place);
    put(&place, T{2});
    after = get(&place);
  }
  EXPECT_EQ(before, T{1});
  EXPECT_EQ(after, T{2});
  EXPECT_EQ(place, T{2});
}

TEST(Unwritten, AReadAfterTheFirstWriteSeesIt) {
  writes_and_reads<std::uint8_t>();
  writes_and_reads<std::uint16_t>();
  writes_and_reads<std::uint32_t>();
  writes_and_reads<std::uint64_t>();
  writes_and_reads<float>();
  writes_and_reads<double>();
  writes_and_reads<long double>();
}

// Far enough apart that no stripe of records covers both.
alignas(64) long number;
alignas(64) long beside;

[[gnu::noinline]] long reads_around_a_part(bool cancel) {
  long seen = 0;
  __transaction_atomic {
    if (get(&number) == 1) {
      __transaction_atomic {
        put(&number, 5L);
        if (cancel) __transaction_cancel;
      }
    }
    seen = get(&number);
    put(&beside, seen + 1);
    seen += get(&beside);
  }
  return seen;
}

TEST(Unwritten, WhatAPartHasWrittenIsThereAfterIt) {
  number = 1;
  EXPECT_EQ(reads_around_a_part(false), 5 + 6);
  EXPECT_EQ(number, 5);
  EXPECT_EQ(beside, 6);
}

TEST(Unwritten, WhatACancelledPartHasWrittenIsNot) {
  number = 1;
  EXPECT_EQ(reads_around_a_part(true), 1 + 2);
  EXPECT_EQ(number, 1);
  EXPECT_EQ(beside, 2);
}

[[gnu::noinline]] long copies() {
  long seen = 0;
  __transaction_atomic {
    const long was = get(&number);
    put(&beside, was);
    run_meanwhile();
    seen = get(&beside);
  }
  return seen;
}

// The other transaction's commit may wait for this attempt. So this one waits for the other's value, not for its end.
TEST(Unwritten, AnAttemptAfterAnAbortReadsAnew) {
  number = 10;
  // A hardware attempt that a system call ends may run alone once at this place, and nothing beside it: so here.
  meanwhile = [] { std::this_thread::yield(); };
  copies();
  std::atomic<int> attempts{0};
  std::thread other;
  meanwhile = [&] {
    if (++attempts > 1) return;
    other = std::thread([] {
      __transaction_atomic { put(&number, 20L); }
    });
    while (std::atomic_ref(number).load() != 20) std::this_thread::yield();
  };
  EXPECT_EQ(copies(), 20);
  other.join();
  EXPECT_EQ(beside, 20);
  EXPECT_GE(attempts, 2);
}

Padded left, right;
std::atomic<int> have_read{0};

// Waits for the other thread, but not for ever: if one transaction runs alone, the other cannot have begun.
[[gnu::transaction_pure, gnu::noinline]] void meet() {
  ++have_read;
  for (int look = 0; look < 2'000 && have_read < 2; ++look) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

[[gnu::noinline]] void raise(Padded* own, const Padded* other) {
  __transaction_atomic {
    const long seen = get(&other->value);
    meet();
    if (seen == 0) put(&own->value, 1L);
  }
}

// Each transaction has read before the other one writes.
long raised() {
  left.value = right.value = 0;
  have_read = 0;
  on_threads(2, [](int thread) { thread == 0 ? raise(&left, &right) : raise(&right, &left); });
  return left.value + right.value;
}

TEST(Unwritten, OfTwoThatReadWhatTheOtherWritesOneSeesIt) {
  EXPECT_EQ(raised(), 1);
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // runs in a separate process, which chooses its algorithm
  const char* const chosen = std::getenv("LOAM_ITM_ALGORITHM");
  const std::string before = chosen != nullptr ? chosen : "";
  for (const char* const algorithm : {"norec", "etl-wb", "etl-wt", "tl2", "swisstm"}) {
    SCOPED_TRACE(algorithm);
    ::setenv("LOAM_ITM_ALGORITHM", algorithm, 1);
    EXPECT_EXIT(std::_Exit(raised() == 1 ? 0 : 1), testing::ExitedWithCode(0), "");
  }
  ::setenv("LOAM_ITM_ALGORITHM", before.c_str(), 1);
}

}  // namespace
