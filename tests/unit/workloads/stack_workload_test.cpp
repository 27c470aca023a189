// The stack workload on every synchronisation that offers it.
#include "tests/unit/workloads/objects.hpp"

namespace loam::tests {
namespace {

TEST(StackWorkload, IsVerifiedEverywhere) {
  const auto all = offers("stack");
  ASSERT_GE(all.size(), 2U);
  for (const Offer& offer : all) {
    const std::string start = "stack " + offer.threads() + "-p operations=2000 ";
    expect_verified(offer.name, start + "-p elements=100");
    if (offer.kind != "transactional") expect_verified(offer.name, start + "-p alloc=client -p think=0");
    if (offer.counts_turns()) {
      const auto iteration = expect_verified(offer.name, start);
      expect_fairness(iteration, offer);
      expect_latency(iteration, "push");
      expect_latency(iteration, "pop");
    }
  }
  EXPECT_EQ(names_of(all, "structure"), (std::vector<std::string>{"lock-free-epoch", "lock-free-hazard"}));
}

TEST(StackWorkload, ATransactionMakesItsOwnElements) {
  expect_refused(executable("etl-wb") + " stack -p alloc=client", kClientsOfTransactions);
}

TEST(StackWorkload, RunsForATime) {
  const auto iteration = expect_verified(
      "cc-synch", "stack --threads 2 --warmup-ms 5 -p duration_ms=20 -p latency_every=0 -p elements=50");
  EXPECT_EQ(iteration["live_bytes"].number(), 50 * 16);
  EXPECT_FALSE(iteration.has("push_p50_ns"));
}

}  // namespace
}  // namespace loam::tests
