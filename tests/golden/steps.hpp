// steps: how a step of a transaction is isolated, so that callgrind can count the instructions of that step alone.
//   A case runs the same transaction with a few and with more of one step, straight-line; the difference is the step.
//   Under `valgrind --tool=callgrind --instr-atstart=no` each dump is named "CASE;few or more;number of steps". Alone,
//   the same is timed: steps() may then be asked for nanoseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <valgrind/callgrind.h>

namespace loam::golden {

constexpr unsigned kFew = 8, kMore = 16;
constexpr int kTransactions = 64 * 64;  // a multiple of every reclamation batch

struct alignas(64) Node {
  Node* next;
  std::uint64_t key;
  std::uint64_t spare[6];
};
inline Node nodes[kMore + 1];

inline void link_nodes() {
  for (unsigned i = 0; i < kMore; ++i) nodes[i].next = &nodes[i + 1];
}

// Print the nanoseconds of each step instead of having it counted.
inline bool timed = false;

// The scaffolding leaves no instruction behind, and a body becomes part of its attempt, as in the workloads.
#define LOAM_STEP __attribute__((always_inline))

// What the compiler may not know in advance, so that it computes addresses as it would for a real structure.
template <class T>
[[gnu::always_inline]] inline T opaque(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

// step(integral constant i) for i in [0, kCount), straight-line.
template <unsigned kCount, class Step>
[[gnu::always_inline]] inline void straight(Step&& step) {
  [&]<unsigned... kIndex>(std::integer_sequence<unsigned, kIndex...>) LOAM_STEP {
    (step(std::integral_constant<unsigned, kIndex>{}), ...);
  }(std::make_integer_sequence<unsigned, kCount>{});
}

template <unsigned kSteps, class Transaction>
[[gnu::noinline]] void repeat(Transaction transaction) {
  for (int i = 0; i < kTransactions; ++i) transaction(std::integral_constant<unsigned, kSteps>{});
}

// Nanoseconds of `kSteps` steps in each of many transactions: the least of several tries.
template <unsigned kSteps, class Transaction>
double nanoseconds(Transaction transaction) {
  constexpr int kTries = 60;
  double least = 1e18;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    repeat<kSteps>(transaction);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count() / kTransactions);
  }
  return least;
}

template <unsigned kSteps, class Transaction>
void count(const char* name, const char* amount, Transaction transaction) {
  char dump[96];
  std::snprintf(dump, sizeof dump, "%s;%s;%u", name, amount, kSteps * kTransactions);
  for (int warm = 0; warm < 2; ++warm) repeat<kSteps>(transaction);
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  repeat<kSteps>(transaction);
  CALLGRIND_DUMP_STATS_AT(dump);
  CALLGRIND_STOP_INSTRUMENTATION;
}

// transaction(integral constant n): one transaction with n of the step. name: of the case
template <unsigned kLess, unsigned kGreater, class Transaction>
void compare(const char* name, Transaction transaction) {
  if (timed) {
    const double step = (nanoseconds<kGreater>(transaction) - nanoseconds<kLess>(transaction)) / (kGreater - kLess);
    std::printf("%s;%.2f\n", name, step);
    return;
  }
  count<kLess>(name, "few", transaction);
  count<kGreater>(name, "more", transaction);
}

}  // namespace loam::golden
