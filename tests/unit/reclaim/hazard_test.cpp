// Hazard pointers by themselves: when a list is scanned, what a place keeps, who leaves and who comes after.
#include "runtime/reclaim/hazard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace loam::reclaim {
namespace {

constexpr std::size_t kBatch = 64;  // retirements before the first scan

std::vector<std::uintptr_t> freed;

void note(void* block) { freed.push_back(reinterpret_cast<std::uintptr_t>(block)); }
void* named(std::uintptr_t name) { return reinterpret_cast<void*>(name); }

struct HazardTest : testing::Test {
  using Member = HazardDomain::Member;

  void SetUp() override { freed.clear(); }

  void retire(Member& self, std::uintptr_t first, std::size_t count) {
    for (std::uintptr_t name = first; name < first + count; ++name) domain.retire(self, named(name));
  }
  static bool is_freed(std::uintptr_t name) { return std::count(freed.begin(), freed.end(), name) == 1; }

  HazardDomain domain{note};
};

TEST_F(HazardTest, AListIsScannedWhenItsBatchIsFullAndNoSooner) {
  Member& self = domain.join();
  for (std::size_t round = 1; round <= 3; ++round) {
    retire(self, round * 1000, kBatch - 1);
    EXPECT_EQ(freed.size(), (round - 1) * kBatch);
    retire(self, round * 1000 + 500, 1);
    EXPECT_EQ(freed.size(), round * kBatch);
    EXPECT_EQ(self.retired, 0u);
  }
  std::sort(freed.begin(), freed.end());
  EXPECT_EQ(std::unique(freed.begin(), freed.end()), freed.end()) << "each once";
}

TEST_F(HazardTest, TheBatchGrowsWithThePlacesThatAScanLooksAt) {
  std::vector<Member*> members;
  for (int i = 0; i < 16; ++i) members.push_back(&domain.join());
  retire(*members[0], 1, kBatch);
  EXPECT_EQ(members[0]->scan_at, kBatch) << "16 threads have 32 places";
  members.push_back(&domain.join());
  retire(*members[0], 1000, kBatch);
  EXPECT_EQ(members[0]->scan_at, 68u) << "17 have 34";
  freed.clear();
  retire(*members[0], 2000, 67);
  EXPECT_TRUE(freed.empty());
  retire(*members[0], 3000, 1);
  EXPECT_EQ(freed.size(), 68u);
}

TEST_F(HazardTest, WhatAnyPlaceNamesIsKeptAndTheRestIsFreed) {
  Member &self = domain.join(), &other = domain.join();
  domain.protect(other, 0, named(5));
  domain.protect(other, 1, named(64));
  domain.protect(self, 0, named(1));
  retire(self, 1, kBatch);
  EXPECT_EQ(freed.size(), kBatch - 3);
  for (const std::uintptr_t kept : {1u, 5u, 64u}) EXPECT_FALSE(is_freed(kept)) << kept;
  EXPECT_EQ(self.retired, 3u);
  // A place that names another block lets go of the first; one that is cleared names nothing.
  domain.protect(other, 0, named(7));
  domain.scan(self);
  EXPECT_TRUE(is_freed(5));
  EXPECT_EQ(self.retired, 2u);
  domain.clear(other);
  domain.scan(self);
  EXPECT_TRUE(is_freed(64));
  EXPECT_FALSE(is_freed(1)) << "its own place counts as well";
  domain.clear(self);
  domain.scan(self);
  EXPECT_TRUE(is_freed(1));
  EXPECT_EQ(self.retired, 0u);
}

TEST_F(HazardTest, NamesAreFoundInWhateverOrderTheyStand) {
  std::set<std::uintptr_t> kept;
  std::uintptr_t name = 100;
  Member& self = domain.join();
  for (int i = 0; i < 8; ++i) {
    Member& other = domain.join();
    for (unsigned place = 0; place < HazardDomain::kPlaces; ++place) {
      name = name * 37 % 101;  // from 1 to 100, up and down
      domain.protect(other, place, named(name));
      kept.insert(name);
    }
  }
  retire(self, 1, 100);
  domain.scan(self);
  EXPECT_EQ(freed.size(), 100 - kept.size());
  for (const std::uintptr_t each : kept) EXPECT_FALSE(is_freed(each)) << each;
}

TEST_F(HazardTest, WhatIsKeptCountsForTheNextBatch) {
  Member &self = domain.join(), &other = domain.join();
  domain.protect(other, 0, named(1));
  retire(self, 1, kBatch);
  EXPECT_EQ(freed.size(), kBatch - 1);
  retire(self, 100, kBatch - 2);
  EXPECT_EQ(freed.size(), kBatch - 1);
  retire(self, 500, 1);
  EXPECT_EQ(freed.size(), 2 * kBatch - 2);
  EXPECT_EQ(self.retired, 1u);
}

TEST_F(HazardTest, WhoLeavesNamesNothingAndFreesWhatNobodyNames) {
  Member &self = domain.join(), &leaves = domain.join();
  domain.protect(leaves, 0, named(1));
  domain.protect(leaves, 1, named(2));
  retire(self, 1, 2);
  retire(leaves, 100, 1);
  domain.leave(leaves);
  EXPECT_EQ(freed, (std::vector<std::uintptr_t>{100}));
  domain.scan(self);
  EXPECT_EQ(freed, (std::vector<std::uintptr_t>{100, 1, 2}));
}

TEST_F(HazardTest, WhatIsHeldBackStaysInTheSlotForTheNextThread) {
  Member &reader = domain.join(), &leaves = domain.join();
  domain.protect(reader, 1, named(7));
  retire(leaves, 7, 1);
  domain.leave(leaves);
  EXPECT_TRUE(freed.empty());
  Member& next = domain.join();
  EXPECT_EQ(&next, &leaves) << "the lowest free slot";
  EXPECT_EQ(next.retired, 1u);
  domain.clear(reader);
  retire(next, 100, kBatch - 1);
  EXPECT_EQ(freed.size(), kBatch) << "with the one that was there";
  EXPECT_TRUE(is_freed(7));
}

TEST_F(HazardTest, AScanOfAllVisitsEverySlotAndTellsWhatIsHeld) {
  Member &one = domain.join(), &two = domain.join(), &three = domain.join();
  retire(one, 1, 3);
  retire(three, 11, 2);
  domain.protect(two, 0, named(2));
  domain.protect(two, 1, named(12));
  EXPECT_EQ(domain.scan_all(), 2u);
  EXPECT_EQ(freed, (std::vector<std::uintptr_t>{1, 3, 11}));
  domain.clear(two);
  EXPECT_EQ(domain.scan_all(), 0u);
  EXPECT_EQ(freed.size(), 5u);
  EXPECT_EQ(domain.scan_all(), 0u) << "nothing is freed twice";
  EXPECT_EQ(freed.size(), 5u);
}

TEST_F(HazardTest, AScanOfAllInAnEmptyDomainFindsNothing) { EXPECT_EQ(domain.scan_all(), 0u); }

TEST_F(HazardTest, WhereEveryPlaceOfEveryThreadNamesABlockTheListSuffices) {
  // The most that can be held back, in the largest batch: the list is as long as that, to the last entry.
  std::vector<Member*> members;
  for (unsigned i = 0; i < HazardDomain::kSlots; ++i) members.push_back(&domain.join());
  std::uintptr_t name = 1;
  for (Member* member : members)
    for (unsigned place = 0; place < HazardDomain::kPlaces; ++place) domain.protect(*member, place, named(name++));
  constexpr std::size_t kNamed = std::size_t{HazardDomain::kSlots} * HazardDomain::kPlaces;
  Member& self = *members.back();
  retire(self, 1, kBatch);  // its first batch; all named
  EXPECT_TRUE(freed.empty());
  EXPECT_EQ(self.scan_at, HazardDomain::kBlocksMax);
  retire(self, 1 + kBatch, HazardDomain::kBlocksMax - kBatch - 1);
  EXPECT_TRUE(freed.empty());
  retire(self, HazardDomain::kBlocksMax, 1);
  EXPECT_EQ(freed.size(), HazardDomain::kBlocksMax - kNamed);
  EXPECT_EQ(self.retired, kNamed);
  for (Member* member : members) domain.clear(*member);
  EXPECT_EQ(domain.scan_all(), 0u);
  EXPECT_EQ(freed.size(), HazardDomain::kBlocksMax);
  EXPECT_DEATH(domain.join(), "reclaim: 1024 threads are registered already");
  domain.leave(*members[500]);
  EXPECT_EQ(&domain.join(), members[500]);
}

TEST(HazardThreads, WhoJoinsFirstTogetherSharesOneTable) {
  for (int round = 0; round < 20; ++round) {
    // Places of a domain are never unmapped: one domain for all rounds would have its table already.
    auto* const domain = new HazardDomain([](void*) {});
    std::array<HazardDomain::Member*, 4> joined{};
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> threads;
    for (auto& place : joined)
      threads.emplace_back([&] {
        ++ready;
        while (ready != joined.size()) std::this_thread::yield();
        place = &domain->join();
      });
    for (auto& thread : threads) thread.join();
    std::set<HazardDomain::Member*> all(joined.begin(), joined.end());
    ASSERT_EQ(all.size(), joined.size());
    ASSERT_EQ(*all.rbegin() - *all.begin(), static_cast<std::ptrdiff_t>(joined.size()) - 1)
        << "slots 0 to 3 of one table";
    delete domain;
  }
}

// Readers follow a pointer that writers swing, with real memory: use after free is for the sanitizers to see, a value
// that was overwritten is seen everywhere.
TEST(HazardThreads, ReadersNeverSeeAFreedBlock) {
  using Value = std::atomic<std::uint64_t>;
  constexpr std::uint64_t kAlive = 0x1234567890abcdef;
  static std::atomic<std::uint64_t> gone;
  gone = 0;
  const auto domain = std::make_unique<HazardDomain>([](void* block) {
    static_cast<Value*>(block)->store(0, std::memory_order_relaxed);
    std::free(block);
    ++gone;
  });
  const auto fresh = [] { return new (std::malloc(sizeof(Value))) Value{kAlive}; };
  std::atomic<Value*> shared{fresh()};
  std::atomic<int> writers_left{2};
  std::atomic<std::uint64_t> shredded_seen{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int life = 0; life < 20; ++life) {  // exits in the middle: a new member each time
        auto& self = domain->join();
        for (int i = 0; i < 200; ++i) domain->retire(self, shared.exchange(fresh(), std::memory_order_acq_rel));
        domain->leave(self);
      }
      --writers_left;
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      auto& self = domain->join();
      for (unsigned place = 0; writers_left > 0; place = 1 - place) {
        Value* block = shared.load(std::memory_order_acquire);
        for (;;) {
          domain->protect(self, place, block);
          Value* const again = shared.load(std::memory_order_acquire);
          if (again == block) break;
          block = again;
        }
        for (int i = 0; i < 20; ++i) shredded_seen += block->load(std::memory_order_relaxed) != kAlive;
      }
      domain->leave(self);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shredded_seen.load(), 0u);
  EXPECT_EQ(domain->scan_all(), 0u);
  EXPECT_EQ(gone, 8000u);
  std::free(shared.load());
}

}  // namespace
}  // namespace loam::reclaim
