// bayes: records have the published score; counts are those of a search of all records; the network refuses circles and
// its check finds what is wrong.
#include "tests/unit/structures/runners.hpp"
#include "workloads/applications/shared/bayes_network.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace loam::workloads::bayes {
namespace {

constexpr DataSettings kSmall{.variables = 12, .records = 200, .parents_max = 3, .parent_percent = 50, .seed = 1};

TEST(Bayes, RecordsHaveThePublishedScore) {
  const DataSettings settings{.variables = 32, .records = 1024, .parents_max = 10, .parent_percent = 40, .seed = 1};
  const Data data = make_data(settings);
  ASSERT_EQ(data.records.size(), 1024u);
  // Of each row of parents' values the records and those whose variable is 1.
  double likelihood = 0;
  std::size_t edges = 0;
  for (unsigned id = 0; id < settings.variables; ++id) {
    const auto& parents = data.parents[id];
    edges += parents.size();
    std::vector<double> all(std::size_t{1} << parents.size()), ones(all.size());
    for (const Variables record : data.records) {
      std::size_t row = 0;
      for (const unsigned parent : parents) row = row * 2 + (record >> parent & 1);
      all[row] += 1;
      ones[row] += static_cast<double>(record >> id & 1);
    }
    for (std::size_t row = 0; row < all.size(); ++row)
      for (const double count : {ones[row], all[row] - ones[row]})
        if (count > 0) likelihood += count * std::log(count / all[row]);
  }
  const double score = likelihood - 0.5 * std::log(1024.0) * static_cast<double>(edges);
  EXPECT_EQ(edges, 87u);
  EXPECT_NEAR(score, -16161.78, 0.02);  // the published one is computed in floats
}

// Every value of every variable depends on its parents alone, so all records can be drawn: the network has no circle.
TEST(Bayes, DenseNetworksAreDrawnToo) {
  const Data data = make_data({.variables = 64, .records = 10, .parents_max = 16, .parent_percent = 100, .seed = 3});
  std::size_t edges = 0;
  for (const auto& parents : data.parents) {
    EXPECT_TRUE(std::ranges::is_sorted(parents));
    edges += parents.size();
  }
  EXPECT_GT(edges, 300u);
}

TEST(Bayes, CountsAreThoseOfASearch) {
  const Data data = make_data(kSmall);
  const Counts counts(data.records, kSmall.variables);
  EXPECT_EQ(counts.count({}), kSmall.records);
  EXPECT_GT(counts.blocks(), kSmall.records);
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) {
    const Variables known = random() & random() & ((Variables{1} << kSmall.variables) - 1);
    const Assignment asked{known, random() & known};
    const auto expected =
        std::ranges::count_if(data.records, [&](Variables record) { return (record & known) == asked.values; });
    ASSERT_EQ(counts.count(asked), static_cast<std::uint32_t>(expected));
  }
}

TEST(Bayes, LikelihoodOfASmallTable) {
  // Variable 1 follows variable 0 in 3 of 4 records.
  const std::vector<Variables> records{0b00, 0b11, 0b11, 0b01};
  const Counts counts(records, 2);
  const auto term = [](double share, double part) { return share * std::log(part); };
  EXPECT_FLOAT_EQ(counts.log_likelihood(1, {}), static_cast<float>(term(0.5, 0.5) + term(0.5, 0.5)));
  const unsigned parent = 0;
  EXPECT_FLOAT_EQ(counts.log_likelihood(1, {&parent, 1}),
                  static_cast<float>(term(0.25, 1) + term(0.5, 2.0 / 3) + term(0.25, 1.0 / 3)));
}

TEST(Bayes, ParentsStayInOrder) {
  Parents parents;
  for (const unsigned id : {9u, 3u, 63u, 0u, 5u}) parents.add(id);
  EXPECT_TRUE(std::ranges::equal(parents.all(), std::vector<unsigned>{0, 3, 5, 9, 63}));
  parents.remove(5);
  parents.remove(63);
  parents.remove(4);
  EXPECT_TRUE(std::ranges::equal(parents.all(), std::vector<unsigned>{0, 3, 9}));
}

Task task(Change change, int from, int to) { return {change, 0, from, to}; }

TEST(Bayes, NetworkRefusesCirclesAndWhatIsNotThere) {
  structures::PlainAccess access;
  Network network(access, 4);
  const auto apply = [&](Change change, int from, int to) { return network.apply(access, task(change, from, to)); };
  EXPECT_TRUE(apply(Change::insert, 0, 1));
  EXPECT_TRUE(apply(Change::insert, 1, 2));
  EXPECT_FALSE(apply(Change::insert, 0, 1));
  EXPECT_FALSE(apply(Change::insert, 2, 0));
  EXPECT_TRUE(apply(Change::insert, 0, 2));
  EXPECT_FALSE(apply(Change::reverse, 0, 2));  // 0 -> 1 -> 2 would close it
  EXPECT_FALSE(apply(Change::reverse, 3, 2));
  EXPECT_FALSE(apply(Change::remove, 3, 2));
  EXPECT_EQ(network.verify().edges, 3);
  EXPECT_TRUE(apply(Change::remove, 1, 2));
  EXPECT_TRUE(apply(Change::reverse, 0, 2));
  EXPECT_TRUE(network.has_edge(access, 2, 0));
  EXPECT_TRUE(network.leads(access, 2, 1));
  EXPECT_FALSE(network.leads(access, 1, 2));
  EXPECT_EQ(network.reachable(access, 2), Variables{0b111});
  EXPECT_EQ(network.verify().broken, "");
}

TEST(Bayes, VerifyFindsACircle) {
  structures::PlainAccess access;
  Network circle(access, 3);
  circle.insert(access, 0, 1);
  circle.insert(access, 1, 2);
  ASSERT_EQ(circle.verify().broken, "");
  circle.insert(access, 2, 0);
  EXPECT_EQ(circle.verify().broken.substr(0, 2), "N1");
}

TEST(Bayes, TasksAreInOrderOfTheirScores) {
  const Task high{Change::insert, 5, 0, 1}, low{Change::insert, -5, 0, 0}, same{Change::insert, 5, 0, 2};
  EXPECT_LT(TaskOrder::compare(&high, &low), 0);
  EXPECT_GT(TaskOrder::compare(&low, &high), 0);
  EXPECT_LT(TaskOrder::compare(&high, &same), 0);
  EXPECT_EQ(TaskOrder::compare(&same, &same), 0);
}

// Threads that insert, remove and reverse at random, in transactions: no circle ever comes of it, no block is lost.
TEST(Bayes, NetworkStaysWithoutCirclesUnderThreads) {
  constexpr unsigned kVariables = 10, kThreads = 3;
  const std::int64_t before = structures::Transaction::live_blocks();
  structures::PlainAccess setup;
  Network network(setup, kVariables);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 1500; ++i) {
        const auto from = static_cast<int>(random() % kVariables), to = static_cast<int>(random() % kVariables);
        const auto change = static_cast<Change>(1 + random() % 3);
        if (from == to) continue;
        structures::Transaction::update([&](auto& access) { return network.apply(access, task(change, from, to)); });
      }
      structures::Transaction::thread_exit();
    });
  for (auto& thread : threads) thread.join();
  const auto found = network.verify();
  EXPECT_EQ(found.broken, "");
  EXPECT_GT(found.edges, 0);
  EXPECT_EQ(structures::Transaction::live_blocks() - before, 2 * found.edges);
}

}  // namespace
}  // namespace loam::workloads::bayes
