// ManagedOperations with the compiler of all tests, over random inputs: short ones for each setting of heap and logs, and
// long ones. LOAM_FUZZ_SEED and LOAM_TEST_ALL=1 give others and more.
#include "tests/fuzz/managed_operations.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace loam::tests {
namespace {

std::uint64_t seed() {
  const char* const asked = std::getenv("LOAM_FUZZ_SEED");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 1;
}
unsigned times() { return std::getenv("LOAM_TEST_ALL") == nullptr ? 1 : 10; }

const char* play(std::uint64_t number, unsigned settings, std::size_t bytes) {
  base::Random random(seed(), number);
  std::vector<std::uint8_t> input(bytes);
  for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
  input.front() = static_cast<std::uint8_t>(settings);
  return ManagedOperations(input).run();
}

TEST(ManagedCorpus, ShortInputsEndWellWithEachSetting) {
  for (unsigned round = 0; round < times(); ++round)
    for (unsigned settings = 0; settings < 256; ++settings)
      ASSERT_STREQ(play(round * 256 + settings, settings, 80), nullptr) << "seed " << seed() << ", " << settings;
}

TEST(ManagedCorpus, LongInputsEndWell) {
  const unsigned inputs = 50 * times();
  for (unsigned i = 0; i < inputs; ++i)
    ASSERT_STREQ(play((1 << 20) + i, i * 11, 600), nullptr) << "seed " << seed() << ", " << i;
}

}  // namespace
}  // namespace loam::tests
