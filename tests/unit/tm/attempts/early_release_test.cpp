// Early release: a read that no longer counts.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace loam::tm {
namespace {

struct EarlyReleaseTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, EarlyReleaseTest,
                         testing::ValuesIn(tests::variants({"table", "small_table", "shadow", "table_blame"})),
                         tests::variant_name);

using tests::beside_x, tests::x, tests::y, tests::z;

// returns whether another thread has changed the word, which the caller may have read
template <class Driver>
bool add_one(Word& word) {
  return tests::commit_amid<Driver>([&](auto& tx) { tx.write(word, tx.read(word) + 1); });
}
// Of a word that was read and not released.
template <class Driver>
constexpr bool kCanChange = !readers_block_writers<typename Driver::Uses>();

TEST_P(EarlyReleaseTest, AChangeOfAReleasedReadIsNoConflict) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool released : {false, true}) {
      int attempts = 0;
      bool changed = false;
      Driver::update([&](auto& tx) {
        ++attempts;
        tx.read(x);
        if (released) Driver::release_read(&x, sizeof x);
        if (attempts == 1) changed = add_one<Driver>(x);
        tx.write(y, tx.read(y) + 1);
        if (attempts == 1) add_one<Driver>(z);  // so that nobody may skip validation
      });
      if (!released) {
        EXPECT_EQ(changed, kCanChange<Driver>);
        EXPECT_EQ(attempts, changed ? 2 : 1);
      } else if (Driver::kReleasesReads) {
        EXPECT_TRUE(changed);
        EXPECT_EQ(attempts, 1);
      }
    }
    EXPECT_EQ(y, 2u);
  });
}

TEST_P(EarlyReleaseTest, OtherReadsOfTheSameStripeGoOnToCount) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    bool changed = false;
    Driver::update([&](auto& tx) {
      ++attempts;
      const Word kept = tx.read(beside_x);
      tx.read(x);
      Driver::release_read(&x, sizeof x);
      if (attempts == 1) changed = add_one<Driver>(beside_x);
      tx.write(y, kept);
    });
    EXPECT_EQ(changed, kCanChange<Driver>);
    EXPECT_EQ(attempts, changed ? 2 : 1);
    EXPECT_EQ(y, changed ? 1u : 0u);
  });
}

TEST_P(EarlyReleaseTest, OwnWritesAreNotReleased) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    bool changed = false;
    Driver::update([&](auto& tx) {
      ++attempts;
      const Word seen = tx.read(z);
      tx.write(x, seen + 1);
      tx.read(x);
      Driver::release_read(&x, sizeof x);
      EXPECT_EQ(tx.read(x), seen + 1);
      if (attempts == 1) changed = add_one<Driver>(z);
    });
    EXPECT_EQ(changed, kCanChange<Driver>);
    EXPECT_EQ(attempts, changed ? 2 : 1);
    EXPECT_EQ(x, changed ? 2u : 1u);
    // A read-only transaction has nothing to release.
    EXPECT_EQ(Driver::read_only([](auto& tx) {
                const Word value = tx.read(x);
                Driver::release_read(&x, sizeof x);
                return value;
              }),
              x);
  });
}

}  // namespace
}  // namespace loam::tm
