// What the litmus tests share: one dangerous interleaving each, forced at test points, in every variant.
//   Names are the anomalies'. x, y, z lie on different records; a pair (x, y) is only ever written together.
#pragma once

#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

struct LitmusTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, LitmusTest, testing::ValuesIn(tests::variants()), tests::variant_name);

// In one array, so that no two share a record of the small table.
alignas(1024) Word words[64];
[[maybe_unused]] Word& x = words[0];
[[maybe_unused]] Word& y = words[16];
[[maybe_unused]] Word& z = words[32];

// Another thread's transaction, from begin to end. returns whether it committed: always, unless this thread stands in
// an attempt that keeps writers from what it has read
template <class Driver>
bool commit_pair(Word value) {
  return tests::commit_amid<Driver>([&](auto& tx) {
    tx.write(x, value);
    tx.write(y, value);
  });
}

template <class Driver>
bool add_one(Word& word) {
  return tests::commit_amid<Driver>([&](auto& tx) { tx.write(word, tx.read(word) + 1); });
}

// A door that one thread waits at and another opens; after a while it opens by itself, because with a correct runtime
// the one who should open it may have been aborted before.
class Gate {
 public:
  void open() {
    open_.store(1, std::memory_order_release);
    platform::futex_wake(open_, 16);
  }
  void wait() const {
    const auto deadline = platform::monotonic_ns() + 200'000'000;
    while (open_.load(std::memory_order_acquire) == 0 && platform::monotonic_ns() < deadline)
      platform::futex_wait(open_, 0, 10'000'000);
  }

 private:
  std::atomic<std::uint32_t> open_{0};
};

}  // namespace
}  // namespace loam::tm
