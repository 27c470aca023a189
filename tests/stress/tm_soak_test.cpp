// Soaks: structures under transactions with threads that come and go. What each proves at its end: nothing lost,
// nothing read after it was freed (address sanitizer), nothing leaked (counts), invariants held in every attempt.
//   LOAM_TEST_ALL=1 makes each twenty times as long.
#include "runtime/base/random.hpp"
#include "structures/sorted_list.hpp"
#define LOAM_TEST_DIRECT 1  // races of the code that programs run
#include "tests/harness/instrumented.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

constexpr int kEffort = tests::kInstrumented ? 25 : 200;

int rounds(int few) {
  static const bool all = std::getenv("LOAM_TEST_ALL") != nullptr;
  return few * kEffort * (all ? 20 : 1);
}

// An algorithm that switches also as it judges.
std::vector<tests::Variant> soaked() {
  auto all = tests::variants_for(4, {"table", "small_table", "shadow", "shadow_blame"});
  tests::add_switching(all, switching::Runs::judged, "judged", Privatization::commit);
  return all;
}

struct SoakTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, SoakTest, testing::ValuesIn(soaked()), tests::variant_name);

std::int64_t live_blocks() {
  const Statistics all = statistics_of_all();
  return static_cast<std::int64_t>(all.blocks_allocated - all.blocks_freed);
}

// Runs work(thread, life) in `threads` threads that each exit and start again `lives` times.
template <class Work>
void in_mortal_threads(unsigned threads, unsigned lives, Work&& work) {
  std::vector<std::thread> lines;
  for (unsigned t = 0; t < threads; ++t)
    lines.emplace_back([&, t] {
      for (unsigned life = 0; life < lives; ++life) std::thread([&] { work(t, life); }).join();
    });
  for (auto& line : lines) line.join();
}

TEST_P(SoakTest, InsertsDeletesAndLookupsWithThreadsThatExit) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr int kKeys = 64;
    std::atomic<std::int64_t> present{0};
    {
      structures::SortedList list;
      in_mortal_threads(4, 8, [&](unsigned thread, unsigned life) {
        base::Random random(11, thread * 100 + life);
        for (int i = 0; i < rounds(40); ++i) {
          const auto key = static_cast<std::int64_t>(random.below(kKeys));
          switch (random.below(3)) {
            case 0:
              present += Driver::update([&](auto& tx) { return list.insert(tx, key); });
              break;
            case 1:
              present -= Driver::update([&](auto& tx) { return list.remove(tx, key); });
              break;
            default:
              Driver::read_only([&](auto& tx) { return list.contains(tx, key); });
          }
        }
      });
      const auto verdict = list.verify();
      EXPECT_TRUE(verdict.holds()) << verdict.broken;
      EXPECT_EQ(static_cast<std::int64_t>(verdict.elements), present.load());
      EXPECT_EQ(quiesce(), 0u);
      EXPECT_EQ(live_blocks(), present.load()) << "inserted nodes that are not reachable, or the reverse";
    }
  });
}

TEST_P(SoakTest, SumsAreConservedInEveryAttempt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr unsigned kAccounts = 24;
    constexpr std::int64_t kEach = 1000;
    alignas(64) static std::int64_t accounts[kAccounts];
    for (auto& account : accounts) account = kEach;
    std::atomic<int> wrong{0};
    in_mortal_threads(4, 4, [&](unsigned thread, unsigned life) {
      base::Random random(12, thread * 100 + life);
      for (int i = 0; i < rounds(60); ++i) {
        if (thread == 0) {
          const auto sum = [&](auto& tx) {
            std::int64_t total = 0;
            for (const auto& account : accounts) total += tx.read(account);
            wrong += total != kAccounts * kEach;  // also in attempts that will abort
          };
          i % 2 == 0 ? Driver::read_only(sum) : Driver::update(sum);
        } else {
          auto& from = accounts[random.below(kAccounts)];
          auto& to = accounts[random.below(kAccounts)];
          const std::int64_t amount = random.below(50);
          Driver::update([&](auto& tx) {
            tx.write(from, tx.read(from) - amount);
            tx.write(to, tx.read(to) + amount);
          });
        }
      }
    });
    EXPECT_EQ(wrong.load(), 0);
    std::int64_t total = 0;
    for (const auto account : accounts) total += account;
    EXPECT_EQ(total, kAccounts * kEach);
  });
}

// Publication: a node is filled plainly and then linked; whoever finds it sees it whole. And recycling: each node is
// freed by a reader of it, so blocks go round between threads.
TEST_P(SoakTest, NodesArePublishedWholeAndRecycledSafely) {
  tests::in_variant(GetParam(), []<class Driver>() {
    struct Message {
      std::uint64_t number, copy, square;
    };
    constexpr unsigned kBoxes = 4;
    alignas(64) static Message* boxes[kBoxes] = {};
    std::atomic<int> torn{0};
    std::atomic<std::int64_t> sent{0}, received{0};
    in_mortal_threads(4, 6, [&](unsigned thread, unsigned life) {
      base::Random random(13, thread * 100 + life);
      for (int i = 0; i < rounds(60); ++i) {
        Message*& box = boxes[random.below(kBoxes)];
        if (thread % 2 == 0) {
          sent += Driver::update([&](auto& tx) {
            if (tx.read(box) != nullptr) return 0;
            const std::uint64_t number = random();
            tx.write(box, tx.template create<Message>(number, number, number * number));
            return 1;
          });
        } else {
          received += Driver::update([&](auto& tx) {
            Message* const message = tx.read(box);
            if (message == nullptr) return 0;
            const std::uint64_t number = tx.read(message->number);
            torn += tx.read(message->copy) != number || tx.read(message->square) != number * number;
            tx.write(box, static_cast<Message*>(nullptr));
            tx.destroy(message);
            return 1;
          });
        }
      }
    });
    EXPECT_EQ(torn.load(), 0);
    EXPECT_GT(received.load(), 0);
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(live_blocks(), sent.load() - received.load());
  });
}

TEST(SoakTest, ManyTransactionsThatFreeKeepMemoryConstant) {
  tests::in_child([] {
    std::uint64_t most = 0;
    const int transactions = 5'000 * kEffort;
    for (int i = 0; i < transactions; ++i) {
      atomically([](auto& tx) { tx.destroy(tx.template create<std::uint64_t>(1u)); });
      if (i % 1000 == 0) most = std::max(most, static_cast<std::uint64_t>(live_blocks()));
    }
    EXPECT_LT(most, 2000u);
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(live_blocks(), 0);
  });
}

TEST(SoakTest, HundredsOfThreadsOneAfterTheOtherUseNoMoreMemory) {
  tests::in_child([] {
    for (int i = 0; i < 300; ++i)
      std::thread([] {
        for (int j = 0; j < 10; ++j) atomically([](auto& tx) { tx.destroy(tx.template create<std::uint64_t>(1u)); });
      }).join();
    EXPECT_EQ(quiesce(), 0u);
    EXPECT_EQ(live_blocks(), 0);
    EXPECT_EQ(Descriptor::of_slot(2), nullptr) << "never more than two threads at a time";
  });
}

}  // namespace
}  // namespace loam::tm
