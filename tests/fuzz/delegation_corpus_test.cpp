// DelegationOperations with the compiler of all tests, over random inputs: short ones for each scheme and its settings, and long
// ones. LOAM_FUZZ_SEED and LOAM_TEST_ALL=1 give others and more.
#include "tests/fuzz/delegation_operations.hpp"

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

const char* play(std::uint64_t number, unsigned scheme, unsigned settings, std::size_t bytes) {
  base::Random random(seed(), number);
  std::vector<std::uint8_t> input(bytes);
  for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
  input[0] = static_cast<std::uint8_t>(scheme);
  input[1] = static_cast<std::uint8_t>(settings);
  return DelegationOperations(input).run();
}

TEST(DelegationCorpus, ShortInputsEndWellWithEachSchemeAndItsSettings) {
  for (unsigned round = 0; round < times(); ++round)
    for (unsigned scheme = 0; scheme < 64; ++scheme)
      for (unsigned settings = 0; settings < 8; ++settings)
        ASSERT_STREQ(play(round * 512 + scheme * 8 + settings, scheme, settings, 60), nullptr)
            << "seed " << seed() << ", " << scheme << " " << settings;
}

TEST(DelegationCorpus, LongInputsEndWell) {
  const unsigned inputs = 40 * times();
  for (unsigned i = 0; i < inputs; ++i)
    ASSERT_STREQ(play((1 << 20) + i, i, i / 8, 600), nullptr) << "seed " << seed() << ", " << i;
}

}  // namespace
}  // namespace loam::tests
