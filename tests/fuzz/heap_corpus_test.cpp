// HeapOperations with the compiler of all tests, on both heaps: over the inputs of corpus/heap, over changed ones, and
// over random ones. LOAM_FUZZ_SEED and LOAM_TEST_ALL=1 give others and more.
#include "tests/fuzz/heap_operations.hpp"
#include "tests/harness/instrumented.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace loam::tests {
namespace {

using Input = std::vector<std::uint8_t>;

std::uint64_t seed() {
  const char* const asked = std::getenv("LOAM_FUZZ_SEED");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 1;
}
constexpr unsigned kMany = tests::kInstrumented ? 2000 : 20000;
// The guarded heap takes several times as long for one.
template <class Heap>
unsigned inputs() {
  return (std::getenv("LOAM_TEST_ALL") != nullptr ? kMany : 300) / (std::is_same_v<Heap, GuardedHeap> ? 5 : 1);
}

std::vector<Input> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LOAM_FUZZ_CORPUS)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Input> found;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    found.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return found;
}

template <class Heap>
class HeapCorpus : public testing::Test {
 public:
  static HeapOperations<Heap>& operations() {
    static HeapOperations<Heap> all;
    return all;
  }
};

struct Names {
  template <class Heap>
  static std::string GetName(int) {
    return std::is_same_v<Heap, GuardedHeap> ? "Guarded" : "Open";
  }
};
using Heaps = testing::Types<OpenHeap, GuardedHeap>;
TYPED_TEST_SUITE(HeapCorpus, Heaps, Names);

TYPED_TEST(HeapCorpus, EveryInputEndsWell) {
  const std::vector<Input> all = corpus();
  ASSERT_GE(all.size(), 3u) << LOAM_FUZZ_CORPUS;
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_STREQ(this->operations().run(all[i]), nullptr) << "input " << i;
}

TYPED_TEST(HeapCorpus, ChangedInputsEndWell) {
  const std::vector<Input> all = corpus();
  for (unsigned i = 0; i < inputs<TypeParam>() && !this->HasFailure(); ++i) {
    base::Random random(seed(), i);
    Input input = all[random.below(static_cast<std::uint32_t>(all.size()))];
    for (unsigned changes = 1 + random.below(8); changes > 0 && !input.empty(); --changes)
      input[random.below(static_cast<std::uint32_t>(input.size()))] = static_cast<std::uint8_t>(random());
    EXPECT_STREQ(this->operations().run(input), nullptr) << "seed " << seed() << ", input " << i;
  }
}

TYPED_TEST(HeapCorpus, RandomInputsEndWell) {
  for (unsigned i = 0; i < inputs<TypeParam>() && !this->HasFailure(); ++i) {
    base::Random random(seed() + 1, i);
    Input input(random.below(400));
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
    EXPECT_STREQ(this->operations().run(input), nullptr) << "seed " << seed() << ", input " << i;
  }
}

}  // namespace
}  // namespace loam::tests
