// The limits of what a list holds back, to the block: a full batch, the weight of large blocks, a backlog, the bound on
// bytes; and who waits for whom.
#include "runtime/base/points.hpp"
#include "tests/unit/reclaim/members.hpp"

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

namespace loam::reclaim {
namespace {

using LimboLimitsTest = DomainTest;

TEST_F(LimboLimitsTest, ABatchIsScannedWhenItIsFullAndThenAsManyGoAsAreRetired) {
  struct Row {
    std::size_t bytes, full_at;  // blocks of this size make a batch of 8
  };
  for (const Row row : {Row{16, 8}, Row{4095, 8}, Row{4096, 4}, Row{8191, 4}, Row{8192, 3}, Row{4096 * 7, 1}}) {
    freed = 0;
    const auto domain = make({.batch_blocks = 8});
    Member writer(*domain);
    for (std::size_t retired = 1; retired <= 40; ++retired) {
      writer.retire(1, row.bytes);
      writer.settle();
      // Nobody else is there: what is stamped is ripe, and each settle() frees as many as were retired since the last.
      ASSERT_EQ(freed, retired > row.full_at ? retired - row.full_at : 0) << retired << " of " << row.bytes;
      ASSERT_EQ(writer.limbo.blocks(), retired - freed);
    }
    writer.settle();
    EXPECT_EQ(freed, 40 - row.full_at) << "nothing was retired since the last one";
  }
}

TEST_F(LimboLimitsTest, TheBlocksOfACommitWeighTogether) {
  const auto domain = make({.batch_blocks = 8});
  Member writer(*domain);
  // Four of 2 KiB: 4 + 8192 / 4096 = 6, and two small ones more are a batch.
  for (int i = 0; i < 4; ++i) domain->propose(writer.limbo, nullptr, count_free, 2048);
  domain->accept(writer.limbo);
  writer.settle();
  writer.retire(1);
  writer.settle();
  writer.retire(1);
  writer.settle();  // a batch
  EXPECT_EQ(freed, 0u);
  writer.retire(1);
  writer.settle();
  EXPECT_EQ(freed, 1u);
  for (int i = 0; i < 3; ++i) writer.retire(1);
  writer.settle();
  EXPECT_EQ(freed, 4u);
}

TEST_F(LimboLimitsTest, ABacklogShrinksByAShareOfTwoBatches) {
  constexpr std::size_t kShare = 2 * Limits{}.batch_blocks;
  for (const std::size_t backlog : {std::size_t{64}, kShare - 1, kShare, 2 * kShare - 1, 2 * kShare, 10 * kShare}) {
    freed = 0;
    const auto domain = make();
    Member writer(*domain);
    for (std::size_t i = 0; i < backlog; ++i) writer.retire(1);
    writer.settle();  // finds them ripe
    ASSERT_EQ(freed, 0u);
    std::size_t expected = 0;
    for (int turn = 0; turn < 20; ++turn) {
      expected += 1 + (backlog - expected) / kShare;
      writer.retire(1);
      writer.settle();
      ASSERT_EQ(freed, expected) << "turn " << turn << " with a backlog of " << backlog;
    }
  }
}

TEST_F(LimboLimitsTest, TheListStartsEmptyAndDoublesWhenItIsFull) {
  const auto domain = make();
  Member writer(*domain), reader(*domain);
  EXPECT_EQ(writer.limbo.capacity(), 0u);
  domain->enter(reader.self);
  for (std::size_t blocks = 1; blocks <= 1025; ++blocks) {
    writer.retire(1);
    ASSERT_EQ(writer.limbo.capacity(), blocks <= 256 ? 256u : blocks <= 512 ? 512u : blocks <= 1024 ? 1024u : 2048u);
  }
  domain->leave(reader.self);
}

TEST_F(LimboLimitsTest, ProposalsAreWithdrawnToTheNumberThatIsKept) {
  const auto domain = make();
  Member writer(*domain);
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{5}}) {
    EXPECT_FALSE(writer.limbo.has_proposals());
    for (std::size_t i = 0; i < 5; ++i) domain->propose(writer.limbo, nullptr, count_free, i == 0 ? 100 : 10);
    EXPECT_TRUE(writer.limbo.has_proposals());
    domain->withdraw_to(writer.limbo, kept);
    EXPECT_EQ(writer.limbo.proposals(), kept);
    domain->accept(writer.limbo);
    EXPECT_EQ(writer.limbo.blocks(), kept);
    EXPECT_EQ(writer.limbo.bytes(), kept == 0 ? 0 : 90 + kept * (10 + sizeof(Retired)));
    EXPECT_EQ(writer.reclaim(), 0u);
  }
}

TEST_F(LimboLimitsTest, ExactlyTheLimitIsNotOverIt) {
  constexpr std::size_t kBytes = 64 + sizeof(Retired);
  for (const std::size_t less : {0u, 1u}) {
    const auto domain = make({.batch_blocks = 8, .held_bytes_max = 16 * kBytes - less, .wait_ns_max = 1'000'000});
    Member writer(*domain), stalled(*domain);
    domain->enter(stalled.self);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 16; ++i) {
      writer.retire(1, 64);
      writer.settle();
    }
    const std::string message = testing::internal::GetCapturedStderr();
    EXPECT_EQ(domain->stalls_reported(), less);
    EXPECT_EQ(message.empty(), less == 0) << message;
    domain->leave(stalled.self);
  }
}

#ifdef LOAM_CHECKED
std::atomic<unsigned> advances{0};

void note_advance(const char* point) {
  if (std::string_view(point) == "reclaim.advanced") ++advances;
}

// Runs wait_for_older() in another thread, and `meanwhile` here once that has advanced the epoch. returns whether it was
// over before
template <class Meanwhile>
bool waits_for_older(Domain& domain, const Member& waiter, Meanwhile&& meanwhile) {
  advances = 0;
  base::point_hook.store(&note_advance, std::memory_order_release);
  std::atomic<bool> is_over{false};
  std::thread waits([&] {
    domain.wait_for_older(waiter.self);
    is_over = true;
  });
  while (advances == 0) platform::yield();
  platform::sleep_ns(3'000'000);
  const bool was_over = is_over;
  meanwhile();
  waits.join();
  base::point_hook.store(nullptr, std::memory_order_release);
  return was_over;
}

TEST_F(LimboLimitsTest, WhoWaitsForOlderReadersWaitsForNoYoungerOne) {
  const auto domain = make();
  Member waiter(*domain), idle(*domain), old(*domain), young(*domain);
  domain->enter(idle.self);
  domain->leave(idle.self);
  domain->wait_for_older(waiter.self);  // nobody is inside
  domain->enter(old.self);
  EXPECT_FALSE(waits_for_older(*domain, waiter, [&] {
    domain->enter(young.self);
    domain->leave(old.self);
  })) << "a reader was inside";
  // The young one is inside still: it is an older one to whom asks now, unless it has begun anew.
  EXPECT_FALSE(waits_for_older(*domain, waiter, [&] {
    domain->leave(young.self);
    domain->enter(young.self);
  }));
  domain->leave(young.self);
}
#endif

TEST_F(LimboLimitsTest, AsManyThreadsAsThereAreSlotsAreServed) {
  const auto domain = make();
  for (unsigned slot = 0; slot < Domain::kSlots; ++slot) ASSERT_EQ(domain->acquire_slot(), slot);
  unsigned visited = 0;
  domain->for_each_slot([&](unsigned slot) { EXPECT_EQ(slot, visited++); });
  EXPECT_EQ(visited, Domain::kSlots);
  domain->forget_slot(Domain::kSlots - 1);
  EXPECT_EQ(domain->acquire_slot(), Domain::kSlots - 1);
}

}  // namespace
}  // namespace loam::reclaim
