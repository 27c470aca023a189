// The steps of a transaction, each so that callgrind can count the instructions of that step alone.
//   Every case runs the same transaction with a few and with more of one step, straight-line; the difference is the
//   step. Run by test_instruction_counts.py under `valgrind --tool=callgrind --instr-atstart=no`; each dump is named
//   "CASE;few or more;number of steps". Alone it does the same and counts nothing.
#include "runtime/tm/tm.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <valgrind/callgrind.h>

namespace {

using namespace loam;
using Txs = tm::Driver<tm::DefaultAlgorithm>;

constexpr unsigned kFew = 8, kMore = 16;
constexpr int kTransactions = 64 * 64;  // a multiple of every reclamation batch

struct alignas(64) Node {
  Node* next;
  std::uint64_t key;
  std::uint64_t spare[6];
};
Node nodes[kMore + 1];

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

// transaction(integral constant n): one transaction with n of the step.
template <unsigned kLess, unsigned kGreater, class Transaction>
void compare(const char* name, Transaction transaction) {
  count<kLess>(name, "few", transaction);
  count<kGreater>(name, "more", transaction);
}

void transactions() {
  // Straight-line copies of a whole transaction: what a loop costs falls out.
  compare<1, 2>("empty read-only transaction",
                [](auto n) { straight<n>([](auto) LOAM_STEP { Txs::read_only([](auto&) {}); }); });
  compare<1, 2>("empty update transaction",
                [](auto n) { straight<n>([](auto) LOAM_STEP { Txs::update([](auto&) {}); }); });
}

void reads() {
  // Pointer chasing: the address of a read is the value of the one before, as in a list.
  compare<kFew, kMore>("read, read-only", [](auto n) {
    Txs::read_only([&](auto& tx) LOAM_STEP {
      Node* node = opaque(&nodes[0]);
      straight<n>([&](auto) LOAM_STEP { node = tx.read(node->next); });
      opaque(node);
    });
  });
  compare<kFew, kMore>("read, logged", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* node = opaque(&nodes[0]);
      straight<n>([&](auto) LOAM_STEP { node = tx.read(node->next); });
      opaque(node);
    });
  });
  // The first read of a pair logs the stripe, the second finds it logged: only the second is counted.
  compare<kFew, kMore>("read, logged, same stripe as the one before", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* node = opaque(&nodes[0]);
      straight<kMore>([&](auto i) LOAM_STEP {
        if constexpr (i < n) opaque(tx.read(node->key));
        node = tx.read(node->next);
      });
      opaque(node);
    });
  });
}

void writes() {
  compare<0, 1>("first write, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      if constexpr (n > 0) tx.write(node->key, std::uint64_t{1});
    });
  });
  compare<kFew, kMore>("further write of another stripe, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { tx.write(node[i].key, std::uint64_t{i}); });
    });
  });
  compare<1, 2>("further write of the same stripe, with its commit", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      straight<n>([&](auto i) LOAM_STEP { tx.write(node->spare[2 + i], std::uint64_t{i}); });
    });
  });
  compare<kFew, kMore>("read after write", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      tx.write(node->key, std::uint64_t{1});
      straight<n>([&](auto) LOAM_STEP { opaque(tx.read(node->key)); });
    });
  });
  compare<kFew, kMore>("write after write", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      Node* const node = opaque(&nodes[0]);
      tx.write(node->key, std::uint64_t{1});
      straight<n>([&](auto i) LOAM_STEP { tx.write(node->key, std::uint64_t{i}); });
    });
  });
  compare<0, 8>("allocation and free of 16 bytes", [](auto n) {
    Txs::update([&](auto& tx) LOAM_STEP {
      struct Pair {
        std::uint64_t a, b;
      };
      straight<n>([&](auto i) LOAM_STEP { tx.destroy(tx.template create<Pair>(i, i)); });
    });
  });
}

}  // namespace

int main() {
  // The counts are of the algorithm alone; what waiting for older attempts costs is another matter.
  tm::configure({.privatization = tm::Privatization::none});
  for (unsigned i = 0; i < kMore; ++i) nodes[i].next = &nodes[i + 1];
  transactions();
  reads();
  writes();
  std::printf("compiler: GCC %s\n", __VERSION__);
}
