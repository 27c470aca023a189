// Insert and delete for ever in constant memory: what is freed comes back, whatever the allocator.
//   LOAM_TEST_ALL=1 runs 10^8 transactions per algorithm instead of 10^6: minutes.
#define LOAM_TEST_DIRECT 1  // races of the code that programs run
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <unistd.h>

namespace loam::tm {
namespace {

struct ChurnTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, ChurnTest, testing::ValuesIn(tests::variants({"table"})), tests::variant_name);

// Resident bytes of the process.
std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const int got = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return got == 2 ? resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

struct Node {
  Node* next;
  Word load[5];
};

constexpr reclaim::Limits kLimits;
// A block that is held back, with its place in the list; what the two take may be twice that (Limits).
constexpr std::size_t kHeldBlockBytes = sizeof(Node) + sizeof(reclaim::Retired);

// Memory is constant but for what is held back while a thread is not running and stands inside an attempt. That depends
// on the machine: it is measured, its bound is that of the limits, and it goes away once nobody is inside.
TEST_P(ChurnTest, InsertsAndDeletesRunInConstantMemory) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr unsigned kThreads = 2;
#ifdef LOAM_INSTRUMENTED
    const std::uint64_t transactions = 40'000;  // the allocators of sanitizers keep what is freed
    constexpr std::size_t kSlackBytes = 512 << 20;
#else
    const std::uint64_t transactions = std::getenv("LOAM_TEST_ALL") != nullptr ? 100'000'000 : 1'000'000;
    constexpr std::size_t kSlackBytes = 8 << 20;
#endif
    struct alignas(64) Head {
      Node* first = nullptr;
    };
    static Head heads[16];
    std::atomic<std::uint64_t> most_held{0};
    constexpr std::uint64_t kLookEvery = 4096;  // transactions between two looks at what is held back
    const auto churn = [&](unsigned thread, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; i += 2) {
        // Mostly each thread's own list; now and then the other's, so that blocks change hands.
        Node*& head = heads[i % 64 == 0 ? i / 64 % 16 : thread * 8 + i / 2 % 8].first;
        Driver::update([&](auto& tx) { tx.write(head, tx.template create<Node>(tx.read(head), Word{i})); });
        Driver::update([&](auto& tx) {
          Node* const first = tx.read(head);
          if (first == nullptr) return;
          tx.write(head, tx.read(first->next));
          tx.destroy(first);
        });
        if (i % kLookEvery == 0) {
          const std::uint64_t held = memory::held_back().blocks;
          std::uint64_t seen = most_held.load();
          while (seen < held && !most_held.compare_exchange_weak(seen, held)) {
          }
        }
      }
    };
    // With all others outside the list shrinks, by one part in 128 each time that a block is retired. What stays: two
    // batches that are not ripe, two that have just become so, and two that do not count as a backlog.
    constexpr std::uint64_t kSettling = 8192;
    const auto settle_down = [&](unsigned thread) {
      churn(thread, kSettling);
      EXPECT_LE(memory::held_back().blocks, 6 * kLimits.batch_blocks);
    };
    const auto run = [&](std::uint64_t count) {
      std::vector<std::thread> threads;
      std::barrier meet(kThreads);
      for (unsigned t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          churn(t, count / kThreads);
          for (unsigned turn = 0; turn < kThreads; ++turn) {
            meet.arrive_and_wait();
            if (turn == t) settle_down(t);
          }
          meet.arrive_and_wait();
        });
      for (auto& thread : threads) thread.join();
    };
    run(transactions / 20);
    const std::size_t before = resident_bytes();
    run(transactions - transactions / 20);
    const std::size_t after = resident_bytes();
    std::printf("resident: %zu KiB before, %zu KiB after; most blocks held back at once by a thread: %llu\n",
                before / 1024, after / 1024, static_cast<unsigned long long>(most_held.load()));
    const std::uint64_t peak = most_held.load() + kLookEvery / 2;  // every second transaction retires a block
    EXPECT_LT(after, before + kSlackBytes + kThreads * peak * 2 * kHeldBlockBytes);
    if (domain.stalls_reported() == 0) {
      EXPECT_LE(most_held.load() * kHeldBlockBytes, kLimits.held_bytes_max + kLimits.batch_blocks * kHeldBlockBytes);
    }
    quiesce();
    EXPECT_EQ(memory::held_back_of_all().blocks, 0u);
    const Statistics all = statistics_of_all();
    std::uint64_t reachable = 0;
    for (const Head& head : heads)
      for (const Node* node = head.first; node != nullptr; node = node->next) ++reachable;
    EXPECT_EQ(all.blocks_allocated - all.blocks_freed, reachable);
    EXPECT_EQ(all.commits, transactions + 2 * kThreads * kSettling);
  });
}

}  // namespace
}  // namespace loam::tm
