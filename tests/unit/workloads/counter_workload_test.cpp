// The counter workload on every synchronisation that offers it.
#include "tests/unit/workloads/objects.hpp"

namespace loam::tests {
namespace {

TEST(CounterWorkload, IsVerifiedEverywhere) {
  const auto all = offers("counter");
  ASSERT_GE(all.size(), 2U);
  for (const Offer& offer : all) {
    const auto iteration = expect_verified(offer.name, "counter " + offer.threads() + "-p operations=2001");
    EXPECT_EQ(iteration["operations"].number(), 2001 * (offer.name == "sequential" ? 1 : 3)) << offer.name;
    expect_latency(iteration, "add");
    if (offer.counts_turns()) expect_fairness(iteration, offer);
  }
  EXPECT_EQ(names_of(all, "structure"), (std::vector<std::string>{"fetch-add"}));
}

TEST(CounterWorkload, ASchemeWithAServerHasSeveralRequestsInFlight) {
  unsigned servers = 0;
  for (const Offer& offer : offers("counter")) {
    const auto description = Json::parse(run(executable(offer.name) + " --describe").out);
    if (description["sync"]["cpus_reserved"].number() == 0) {
      expect_refused(
          executable(offer.name) + " counter -p in_flight=2",
          "-p in_flight=2: this synchronisation has executed a request when it returns (a scheme with a server has "
          "several in flight)");
      continue;
    }
    ++servers;
    const auto iteration = expect_verified(offer.name, "counter --threads 2 -p in_flight=16 -p operations=2001");
    EXPECT_EQ(iteration["operations"].number(), 2 * 2001) << offer.name;
  }
  EXPECT_GE(servers, 1U);
}

TEST(CounterWorkload, RunsForATime) {
  expect_verified("cc-synch", "counter --threads 2 --warmup-ms 5 -p duration_ms=20 -p latency_every=0 -p think=0");
}

}  // namespace
}  // namespace loam::tests
