// Accesses of code compiled with -fgnu-tm on our libitm.so.1, to be counted by test_itm_counts.py (steps.hpp says how).
// with_barriers.hpp makes them use barriers although there is only one thread.
#include "tests/golden/steps.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <cstdint>
#include <cstdio>

namespace {

using namespace loam::golden;

// GCC requires this mark on functions that transactions call, also on inlined ones.
#define LOAM_SAFE [[gnu::transaction_safe, gnu::always_inline]] inline

template <unsigned kSteps>
LOAM_SAFE Node* chased(Node* node) {
  if constexpr (kSteps == 1)
    return node->next;
  else
    return chased<kSteps - 1>(node->next);
}

std::uint32_t halves[kMore];

template <unsigned kSteps>
LOAM_SAFE std::uint32_t sum(const std::uint32_t* half) {
  if constexpr (kSteps == 1)
    return *half;
  else
    return *half + sum<kSteps - 1>(half + 1);
}

template <unsigned kSteps>
LOAM_SAFE void set_keys(Node* node) {
  node->key = kSteps;
  if constexpr (kSteps > 1) set_keys<kSteps - 1>(node + 1);
}

template <unsigned kSteps>
[[gnu::noinline]] void reads_only() {
  Node* const start = opaque(&nodes[0]);
  Node* end;
  __transaction_atomic { end = chased<kSteps>(start); }
  opaque(end);
}

// Transactions write keys, and follow links.
template <unsigned kSteps>
[[gnu::noinline]] void reads_then_writes() {
  Node* const start = opaque(&nodes[0]);
  __transaction_atomic { chased<kSteps>(start)->key = 1; }
}

template <unsigned kSteps>
[[gnu::noinline]] void writes_then_reads() {
  Node* const start = opaque(&nodes[0]);
  Node* end;
  __transaction_atomic {
    start->key = 1;
    end = chased<kSteps>(start);
  }
  opaque(end);
}

template <unsigned kSteps>
[[gnu::noinline]] void reads_halves() {
  const std::uint32_t* const start = opaque(&halves[0]);
  std::uint32_t all;
  __transaction_atomic { all = sum<kSteps>(start); }
  opaque(all);
}

template <unsigned kSteps>
[[gnu::noinline]] void writes() {
  Node* const start = opaque(&nodes[0]);
  __transaction_atomic { set_keys<kSteps>(start); }
}

}  // namespace

int main(int count, char**) {
  link_nodes();
  timed = count > 1;
  compare<kFew, kMore>("read of a word, read-only", [](auto n) { reads_only<n>(); });
  compare<kFew, kMore>("read of a word, before the first write", [](auto n) { reads_then_writes<n>(); });
  compare<kFew, kMore>("read of a word, after the first write", [](auto n) { writes_then_reads<n>(); });
  compare<kFew, kMore>("read of 4 bytes, read-only", [](auto n) { reads_halves<n>(); });
  compare<2, 8>("write of a word, the second to the eighth, with its commit", [](auto n) { writes<n>(); });
  compare<1, 2>("transaction of one read", [](auto n) { straight<n>([](auto) LOAM_STEP { reads_only<1>(); }); });
  compare<1, 2>("transaction of one write", [](auto n) { straight<n>([](auto) LOAM_STEP { writes<1>(); }); });
  std::printf("compiler: GCC %s\n", __VERSION__);
}
