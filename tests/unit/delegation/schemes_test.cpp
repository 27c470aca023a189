// What every scheme promises, over every scheme: D1 to D3 of runtime/delegation/types.hpp, results, exceptions, nested
// calls, threads that come and go.
#include "runtime/delegation/schemes.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace loam::delegation {
namespace {

#ifdef LOAM_INSTRUMENTED
constexpr int kShare = 10;
#else
constexpr int kShare = 1;
#endif

// call.operator()<Scheme>() for each scheme, with the policy that sleeps: spinning ones are slow where threads outnumber
// processors.
template <class Call>
void for_each_scheme(Call&& call) {
  Schemes::for_each([&]<template <class> class SchemeOf>() {
    using Scheme = SchemeOf<SpinThenSleep>;
    SCOPED_TRACE(std::string(Scheme::kDescription.name));
    call.template operator()<Scheme>();
  });
}

template <class Body>
void in_threads(unsigned count, Body&& body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (auto& thread : threads) thread.join();
}

TEST(Schemes, OperationsAreExecutedOnceAndOneAtATime) {
  for_each_scheme([]<class S>() {
    S scheme{Settings{}};
    constexpr int kThreads = 4, kEach = 5'000 / kShare;
    long plain = 0;
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};
    in_threads(kThreads, [&](unsigned) {
      for (int i = 0; i < kEach; ++i)
        scheme.apply([&] {
          if (inside.fetch_add(1, std::memory_order_relaxed) != 0) overlapped = true;
          ++plain;
          inside.fetch_sub(1, std::memory_order_relaxed);
        });
    });
    EXPECT_EQ(plain, long{kThreads} * kEach);
    EXPECT_FALSE(overlapped);
  });
}

TEST(Schemes, WhatAnOperationDidIsSeenByItsClientAndByTheNext) {
  for_each_scheme([]<class S>() {
    S scheme{Settings{}};
    long last = 0;
    std::atomic<int> wrong{0};
    in_threads(3, [&](unsigned) {
      long mine = 0;
      for (int i = 0; i < 2'000 / kShare; ++i) {
        long plain = -1;
        const long seen = scheme.apply([&] {
          plain = ++last;
          return last;
        });
        if (plain != seen || seen <= mine) ++wrong;
        mine = seen;
      }
    });
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Schemes, ResultsOfEveryKindComeBack) {
  for_each_scheme([]<class S>() {
    S scheme{Settings{}};
    std::atomic<int> wrong{0};
    int object = 0;
    struct Wide {
      std::int64_t words[16];
    };
    struct Five {
      std::int64_t words[5];
    };
    // Several threads, so that results come from the executor's own operation and from those it does for others.
    in_threads(3, [&](unsigned index) {
      for (int i = 0; i < 400 / kShare; ++i) {
        if (scheme.apply([i] { return i + 1; }) != i + 1) ++wrong;
        if (scheme.apply([i] { return std::string(100, 'a') + std::to_string(i); }) !=
            std::string(100, 'a') + std::to_string(i))
          ++wrong;
        if (&scheme.apply([&object]() -> int& { return object; }) != &object) ++wrong;
        if (*scheme.apply([i] { return std::make_unique<int>(i); }) != i) ++wrong;
        const Wide wide = scheme.apply([i] { return Wide{{i, i + 1, i + 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i}}; });
        if (wide.words[1] != i + 1 || wide.words[15] != i) ++wrong;
        const Five five = scheme.apply([i, index] { return Five{{i, index, 2, 3, i + 4}}; });
        if (five.words[0] != i || five.words[1] != index || five.words[4] != i + 4) ++wrong;
        Wide argument{};
        argument.words[9] = i;
        if (scheme.apply([argument] { return argument.words[9]; }) != i) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Schemes, AnExceptionGoesToItsClientAlone) {
  for_each_scheme([]<class S>() {
    S scheme{Settings{}};
    std::atomic<int> wrong{0};
    long done = 0;
    constexpr int kThreads = 3, kEach = 1'000 / kShare;
    in_threads(kThreads, [&](unsigned index) {
      for (int i = 0; i < kEach; ++i) {
        const bool throws = index == 0 || i % 3 == 0;
        try {
          const int got = scheme.apply([&done, throws, i] {
            ++done;
            if (throws) throw std::runtime_error("operation " + std::to_string(i));
            return i;
          });
          if (throws || got != i) ++wrong;
        } catch (const std::runtime_error& error) {
          if (!throws || error.what() != "operation " + std::to_string(i)) ++wrong;
        }
        // The same where the closure stays in the client's frame.
        try {
          scheme.apply([&done, throws, text = std::string("long enough to live on the heap")] {
            ++done;
            if (throws) throw text;
          });
          if (throws) ++wrong;
        } catch (const std::string&) {
          if (!throws) ++wrong;
        }
      }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(done, 2L * kThreads * kEach);
  });
}

TEST(Schemes, ANestedCallOfTheSameObjectIsAnErrorAndOfAnotherOneWorks) {
  for_each_scheme([]<class S>() {
    S outer{Settings{}}, inner{Settings{}};
    std::atomic<int> refused{0};
    long deep = 0;
    in_threads(3, [&](unsigned) {
      for (int i = 0; i < 300 / kShare; ++i) {
        try {
          outer.apply([&] { outer.apply([] {}); });
        } catch (const Nested& error) {
          if (std::string(error.what()).find("executing") != std::string::npos) ++refused;
        }
        outer.apply([&] { inner.apply([&] { ++deep; }); });
      }
    });
    EXPECT_EQ(refused, 3 * (300 / kShare));
    EXPECT_EQ(deep, 3 * (300 / kShare));
  });
}

TEST(Schemes, ThreadsComeAndGo) {
  for_each_scheme([]<class S>() {
    S scheme{Settings{}};
    long plain = 0;
    const auto wave = [&] {
      in_threads(8, [&](unsigned) {
        for (int i = 0; i < 10; ++i) scheme.apply([&plain] { ++plain; });
      });
    };
    wave();
    const std::size_t mapped = Cells::mapped();
    for (int i = 0; i < 40 / kShare; ++i) wave();
    EXPECT_EQ(plain, 80 * (40 / kShare + 1));
    EXPECT_EQ(Cells::mapped(), mapped) << "threads that ended have given their cells back";
  });
}

TEST(Schemes, ObjectsComeAndGoUnderThreadsThatStay) {
  for_each_scheme([]<class S>() {
    long plain = 0;
    const auto round = [&] {
      S scheme{Settings{}};
      in_threads(2, [&](unsigned) {
        for (int i = 0; i < 3; ++i) scheme.apply([&plain] { ++plain; });
      });
      scheme.apply([&plain] { ++plain; });
    };
    for (int i = 0; i < 10; ++i) round();
    const std::size_t mapped = Cells::mapped();
    for (int i = 0; i < 600 / kShare; ++i) round();
    EXPECT_EQ(plain, 7 * (600 / kShare + 10));
    EXPECT_EQ(Cells::mapped(), mapped);
  });
}

TEST(Schemes, ASleepingThreadIsWoken) {
  for_each_scheme([]<class S>() {
    Settings settings;
    settings.waiting.spin_ns = 0;  // sleeps at once
    S scheme{settings};
    long plain = 0;
    in_threads(6, [&](unsigned) {
      for (int i = 0; i < 2'000 / kShare; ++i) scheme.apply([&plain] { ++plain; });
    });
    EXPECT_EQ(plain, 6L * (2'000 / kShare));
  });
}

// Who sleeps would first have to be woken and get a processor: a combiner does not hand over to it what it can do itself.
TEST(Schemes, ACombinerServesAClientThatSleeps) {
  for_each_scheme([]<class S>() {
    if constexpr (S::kDescription.means == Means::combining) {
      Settings settings;
      settings.waiting.spin_ns = 0;  // sleeps at once
      settings.clusters = 1;
      S scheme{settings};
      bool served = false;
      // On a busy machine the client may not have come so far.
      for (int round = 1; round <= 100 && !served; ++round) {
        std::atomic<bool> begun{false};
        std::thread::id executor;
        std::thread client;
        scheme.apply([&] {
          client = std::thread([&] {
            begun = true;
            scheme.apply([&] { executor = std::this_thread::get_id(); });
          });
          while (!begun) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(round));
        });
        client.join();
        served = executor == std::this_thread::get_id();
      }
      EXPECT_TRUE(served);
    }
  });
}

// Many clients wait, and the combiner executes turn_max of their operations, no more.
TEST(Schemes, ATurnIsNoLongerThanAskedFor) {
  for_each_scheme([]<class S>() {
    if constexpr (S::kDescription.means == Means::combining) {
      constexpr unsigned kClients = 6, kTurn = 2;
      Settings settings;
      settings.turn_max = kTurn;
      settings.clusters = 1;
      settings.waiting.spin_ns = 0;  // sleeping clients do not take over
      S scheme{settings};
      unsigned longest = 0;
      // On a busy machine the clients may not have come so far.
      for (int round = 1; round <= 100 && longest < kTurn; ++round) {
        std::atomic<unsigned> begun{0}, by_the_combiner{0};
        const std::thread::id combiner = std::this_thread::get_id();
        std::vector<std::thread> clients;
        scheme.apply([&] {
          for (unsigned i = 0; i < kClients; ++i)
            clients.emplace_back([&] {
              ++begun;
              scheme.apply([&] { by_the_combiner += std::this_thread::get_id() == combiner ? 1 : 0; });
            });
          while (begun != kClients) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(4 * round));
        });
        for (auto& client : clients) client.join();
        longest = std::max(longest, by_the_combiner.load());
      }
      EXPECT_EQ(longest, kTurn);
    }
  });
}

TEST(Schemes, AShortTurnHandsOver) {
  for_each_scheme([]<class S>() {
    Settings settings;
    settings.turn_max = 1;
    S scheme{settings};
    long plain = 0;
    in_threads(4, [&](unsigned) {
      for (int i = 0; i < 1'000 / kShare; ++i) scheme.apply([&plain] { ++plain; });
    });
    EXPECT_EQ(plain, 4L * (1'000 / kShare));
  });
}

#ifndef LOAM_TSAN  // it does not follow forks of threads
// Of schemes with a server: delegated_test.cpp.
TEST(Schemes, TheChildOfAForkGoesOn) {
  for_each_scheme([]<class S>() {
    if constexpr (S::kDescription.means != Means::server) {
      S scheme{Settings{}};
      long plain = 0;
      in_threads(2, [&](unsigned) { scheme.apply([&plain] { ++plain; }); });
      EXPECT_EXIT(
          {
            scheme.apply([&plain] { ++plain; });
            // Threads of the child's own, which have to wait for each other.
            in_threads(2, [&](unsigned) { scheme.apply([&plain] { ++plain; }); });
            std::_Exit(plain == 5 ? 0 : 1);
          },
          testing::ExitedWithCode(0), "");
    }
  });
}
#endif

TEST(Schemes, ThePublishedPolicyWorksToo) {
  Schemes::for_each([]<template <class> class SchemeOf>() {
    Settings settings;
    settings.waiting = {.pauses = 64, .first_delay_ns = 100, .spin_ns = WaitingSettings::kNeverSleep};
    SchemeOf<Spin> scheme{settings};
    long plain = 0;
    in_threads(2, [&](unsigned) {
      for (int i = 0; i < 50; ++i) scheme.apply([&plain] { ++plain; });
    });
    EXPECT_EQ(plain, 2L * 50) << SchemeOf<Spin>::kDescription.name;
  });
}

}  // namespace
}  // namespace loam::delegation
