// privatize(): the explicit step of privatization, in both modes. A commit that asks for it returns once no attempt runs
// that ran beside it.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/unit/tm/attempts/privatization.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace loam::tm {
namespace {

std::vector<tests::Variant> variants_of_both_modes() {
  std::vector<tests::Variant> all;
  for (tests::Variant each : tests::variants({"table"}))
    for (const auto mode : {Privatization::none, Privatization::commit}) {
      each.privatization = mode;
      all.push_back(each);
    }
  return all;
}
struct PrivatizeTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, PrivatizeTest, testing::ValuesIn(variants_of_both_modes()), [](const auto& info) {
  return info.param.name() + (info.param.privatization == Privatization::none ? "_none" : "_commit");
});

// Who reads on an old page would fault if it were unmapped now.
TEST_P(PrivatizeTest, ReturnsOnceNobodyRunsWhoRanBesideIt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool by_proxy : {false, true}) {
      shared_flag = kShared;
      Gate read_flag, returned;
      std::thread owner([&] {
        read_flag.wait();
        const auto privatize = [](auto& tx) { tx.privatize(&data); };
        if (by_proxy)  // another one has unlinked it
          Driver::read_only(privatize);
        else
          Driver::update([&](auto& tx) {
            tx.write(shared_flag, kPrivate);
            privatize(tx);
          });
        returned.open();
      });
      bool too_early = false;
      int attempts = 0;
      Driver::read_only([&](auto& tx) {
        ++attempts;
        if (tx.read(shared_flag) != kShared) return;
        read_flag.open();
        if (attempts == 1) too_early = returned.wait();
      });
      owner.join();
      EXPECT_FALSE(too_early) << (by_proxy ? "by proxy" : "itself");
    }
  });
}

// What aborts has unlinked nothing, and what comes after it has not asked.
TEST_P(PrivatizeTest, IsForgottenWithTheAttempt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    try {
      Driver::update([](auto& tx) {
        tx.write(data, Word{1});
        tx.privatize(&data);
        throw tests::GaveUp{};
      });
    } catch (const tests::GaveUp&) {
    }
    EXPECT_FALSE(Descriptor::current().quiesces);
    Driver::update([](auto& tx) { tx.privatize(&data); });
    EXPECT_FALSE(Descriptor::current().quiesces);
    Driver::irrevocable([](auto& tx) { tx.privatize(&data); });
    EXPECT_FALSE(Descriptor::current().quiesces);
  });
}

}  // namespace
}  // namespace loam::tm
