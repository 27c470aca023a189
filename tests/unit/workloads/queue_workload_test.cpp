// The queue workload on every synchronisation that offers it.
#include "tests/unit/workloads/objects.hpp"

namespace loam::tests {
namespace {

TEST(QueueWorkload, IsVerifiedEverywhere) {
  const auto all = offers("queue");
  ASSERT_GE(all.size(), 2U);
  for (const Offer& offer : all) {
    const std::string start = "queue " + offer.threads() + "-p operations=2000 ";
    expect_verified(offer.name, start + "-p elements=100");
    if (offer.kind != "transactional") expect_verified(offer.name, start + "-p alloc=client -p think=0");
    if (offer.counts_turns()) {
      const auto iteration = expect_verified(offer.name, start);
      expect_fairness(iteration, offer);
      expect_latency(iteration, "enqueue");
      expect_latency(iteration, "dequeue");
    }
  }
  EXPECT_EQ(names_of(all, "structure"), (std::vector<std::string>{"lock-free-epoch", "lock-free-hazard", "two-lock"}));
}

TEST(QueueWorkload, HeadAndTailMayBeTwoObjects) {
  expect_verified("cc-synch", "queue --threads 3 -p operations=3000 -p domains=2 -p alloc=client");
  expect_verified("cc-synch", "queue --threads 3 -p operations=3000 -p domains=2");
  expect_refused(executable("global-lock") + " queue -p domains=2",
                 "-p domains=2: this synchronisation has one object for all data (a combining scheme or one of its "
                 "locks has two)");
}

TEST(QueueWorkload, ATransactionMakesItsOwnElements) {
  expect_refused(executable("etl-wb") + " queue -p alloc=client", kClientsOfTransactions);
}

TEST(QueueWorkload, RunsForATime) {
  expect_verified("cc-synch", "queue --threads 2 --warmup-ms 5 -p duration_ms=20 -p latency_every=0");
}

TEST(QueueWorkload, PausesAreThoseAskedFor) {
  const auto iteration = expect_verified("server", "queue --threads 1 -p operations=200 -p pauses=7");
  EXPECT_EQ(iteration["pauses_per_look"].number(), 7);
}

// One package of processors for H-Synch: it runs, and says what it is then.
TEST(QueueWorkload, HSynchSaysWhatOnePackageMakesOfIt) {
  const auto sync = Json::parse(run(executable("h-synch") + " --describe").out)["sync"];
  ASSERT_TRUE(sync.has("caution"));
  const std::string caution = sync["caution"].string();
  EXPECT_TRUE(caution.empty() || caution.starts_with("one package of processors: one list")) << caution;
  expect_verified("h-synch", "queue --threads 3 -p operations=2000 -p lists=2");
  EXPECT_FALSE(Json::parse(run(executable("cc-synch") + " --describe").out)["sync"].has("caution"));
}

// A server and its clients on one processor.
TEST(QueueWorkload, AServerKeepsAProcessorForItself) {
  const auto refused = run(executable("server") + " queue --threads 1 --cpus 0 -p operations=100");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err,
            "error: --cpus: server keeps 1 of them for itself, and there are 1 (its threads need at least one more)\n");
}

}  // namespace
}  // namespace loam::tests
