// What the instructions between accesses cost: two loops with the same accesses, one with a calculation beside each.
//   blocks WORDS   prints few=CYCLES many=CYCLES, the rounds of the calculation for each word, and how instructions are charged
// Run by tests/lab/simulator/test_block_costs.py.
#include "runtime/platform/machine_simulated.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr unsigned kRounds = 16;

[[gnu::noipa]] std::uint64_t few(const std::uint64_t* words, std::size_t count) {
  std::uint64_t mixed = 1;
  for (std::size_t i = 0; i < count; ++i) mixed += words[i];
  return mixed;
}

// A round is three shifts and three exclusive ors, each of which needs the one before.
[[gnu::noipa]] std::uint64_t many(const std::uint64_t* words, std::size_t count) {
  std::uint64_t mixed = 1;
  for (std::size_t i = 0; i < count; ++i) {
    mixed += words[i];
    for (unsigned round = 0; round < kRounds; ++round) {
      mixed ^= mixed << 13;
      mixed ^= mixed >> 7;
      mixed ^= mixed << 17;
    }
  }
  return mixed;
}

template <class Loop>
std::uint64_t cycles_of(Loop loop, const std::vector<std::uint64_t>& words) {
  [[maybe_unused]] static volatile std::uint64_t kept;
  kept = loop(words.data(), words.size());  // the second time every word is in the cache
  const std::uint64_t begun = loam_simulator_ticks();
  kept = loop(words.data(), words.size());
  return loam_simulator_ticks() - begun;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::uint64_t> read(count == 2 ? std::strtoul(words[1], nullptr, 10) : 1, 3);
  std::printf("few=%llu many=%llu rounds=%u\n%s\n", static_cast<unsigned long long>(cycles_of(few, read)),
              static_cast<unsigned long long>(cycles_of(many, read)), kRounds, loam_simulator_costs());
  return 0;
}
