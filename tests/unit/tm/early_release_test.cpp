// Early release: a read that no longer counts.
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace loam::tm {
namespace {

struct EarlyReleaseTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, EarlyReleaseTest,
                         testing::ValuesIn(tests::variants({"table", "small_table", "shadow", "table_blame"})),
                         tests::variant_name);

alignas(1024) Word words[64];
Word& x = words[0];
Word& beside_x = words[1];
Word& y = words[16];
Word& z = words[32];

template <class Driver>
void add_one(Word& word) {
  std::thread([&] { Driver::update([&](auto& tx) { tx.write(word, tx.read(word) + 1); }); }).join();
}

TEST_P(EarlyReleaseTest, AChangeOfAReleasedReadIsNoConflict) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool released : {false, true}) {
      int attempts = 0;
      Driver::update([&](auto& tx) {
        ++attempts;
        tx.read(x);
        if (released) Driver::release_read(&x, sizeof x);
        if (attempts == 1) add_one<Driver>(x);
        tx.write(y, tx.read(y) + 1);
        if (attempts == 1) add_one<Driver>(z);  // so that nobody may skip validation
      });
      if (!released) {
        EXPECT_EQ(attempts, 2);
      } else if (Driver::kReleasesReads) {
        EXPECT_EQ(attempts, 1);
      }
    }
    EXPECT_EQ(y, 2u);
  });
}

TEST_P(EarlyReleaseTest, OtherReadsOfTheSameStripeGoOnToCount) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    Driver::update([&](auto& tx) {
      ++attempts;
      const Word kept = tx.read(beside_x);
      tx.read(x);
      Driver::release_read(&x, sizeof x);
      if (attempts == 1) add_one<Driver>(beside_x);
      tx.write(y, kept);
    });
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(y, 1u);
  });
}

TEST_P(EarlyReleaseTest, OwnWritesAreNotReleased) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    Driver::update([&](auto& tx) {
      ++attempts;
      const Word seen = tx.read(z);
      tx.write(x, seen + 1);
      tx.read(x);
      Driver::release_read(&x, sizeof x);
      EXPECT_EQ(tx.read(x), seen + 1);
      if (attempts == 1) add_one<Driver>(z);
    });
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(x, 2u);
    // A read-only transaction has nothing to release.
    EXPECT_EQ(Driver::read_only([](auto& tx) {
                const Word value = tx.read(x);
                Driver::release_read(&x, sizeof x);
                return value;
              }),
              2u);
  });
}

}  // namespace
}  // namespace loam::tm
