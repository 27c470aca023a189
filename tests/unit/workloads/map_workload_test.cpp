// The map workload on every synchronisation that offers it.
#include "tests/unit/workloads/objects.hpp"

namespace loam::tests {
namespace {

TEST(MapWorkload, IsVerifiedEverywhere) {
  const auto all = offers("map");
  ASSERT_GE(all.size(), 2U);
  for (const Offer& offer : all) {
    // Few keys and buckets, so that threads meet.
    const std::string start =
        "map " + offer.threads() + "-p operations=3000 -p range=64 -p elements=16 -p buckets=8 -p update_percent=60 ";
    const auto iteration = expect_verified(offer.name, start);
    for (const char* const operation : {"find", "insert", "remove"}) expect_latency(iteration, operation);
    if (offer.counts_turns()) expect_fairness(iteration, offer);
    if (offer.kind != "transactional") expect_verified(offer.name, start + "-p alloc=client -p think=0");
  }
  EXPECT_EQ(names_of(all, "structure"), (std::vector<std::string>{"lock-free-epoch"}));
}

TEST(MapWorkload, WhatContradictsItselfIsRefused) {
  expect_refused(executable("etl-wb") + " map -p alloc=client", kClientsOfTransactions);
  expect_refused(executable("cc-synch") + " map -p range=100 -p elements=51",
                 "-p elements=51: the even keys of the range are fewer (give at most half of range)");
  expect_refused(executable("cc-synch") + " map -p buckets=1000",
                 "-p buckets=1000: no power of two (for example 4096)");
}

TEST(MapWorkload, RunsForATime) {
  const auto iteration = expect_verified(
      "cc-synch", "map --threads 2 --warmup-ms 5 -p duration_ms=20 -p latency_every=0 -p update_percent=0");
  EXPECT_EQ(iteration["live_bytes"].number(), 1024 * 24);
}

}  // namespace
}  // namespace loam::tests
