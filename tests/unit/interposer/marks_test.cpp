// Marks of sampled blocks: a block that was marked is never taken for one that was not, whoever asks.
#include "lab/interposer/marks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace loam::interposer {
namespace {

// A block's address; so many places are told apart.
constexpr std::size_t kPlaces = Marks::kPlaces;
const void* block(std::size_t number) {
  return reinterpret_cast<const void*>(number * 16);  // NOLINT(performance-no-int-to-ptr)
}

struct Guarded {
  Marks marks;
  void add(const void* at) {
    const Lock lock;
    marks.add(at);
  }
  void remove(const void* at) {
    const Lock lock;
    marks.remove(at);
  }
};

TEST(Marks, TellsABlockFromItsNeighbours) {
  Guarded guarded;
  EXPECT_FALSE(guarded.marks.may_have(nullptr));
  guarded.add(block(100));
  EXPECT_TRUE(guarded.marks.may_have(block(100)));
  for (std::size_t other : {std::size_t{0}, std::size_t{36}, std::size_t{99}, std::size_t{101}, std::size_t{164}})
    EXPECT_FALSE(guarded.marks.may_have(block(other))) << other;
  guarded.remove(block(100));
  EXPECT_FALSE(guarded.marks.may_have(block(100)));
}

TEST(Marks, APlaceIsMarkedUntilItsLastBlockGoes) {
  Guarded guarded;
  const void *const one = block(7), *const other = block(7 + kPlaces);
  guarded.add(one);
  EXPECT_TRUE(guarded.marks.may_have(other));  // the same place: looked up in vain, which costs time alone
  guarded.add(other);
  guarded.remove(one);
  EXPECT_TRUE(guarded.marks.may_have(other));
  guarded.remove(other);
  EXPECT_FALSE(guarded.marks.may_have(other));
}

TEST(Marks, MemoryThatIsNoAllocatorsIsMarkedWhole) {
  alignas(16) static const char memory[64] = {};
  Guarded guarded;
  guarded.marks.add_all(memory, 48);
  for (std::size_t at = 0; at < 64; at += 16) EXPECT_EQ(guarded.marks.may_have(memory + at), at < 48) << at;
}

// Blocks go from hand to hand while others of neighbouring and of the same places come and go.
TEST(Marks, WhoFreesABlockFindsItsMark) {
  constexpr std::size_t kPairs = 3, kRounds = 4000;
  static Guarded guarded;
  std::vector<std::thread> threads;
  static std::atomic<std::size_t> offered[kPairs];
  std::atomic<std::size_t> missed{0};
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    offered[pair] = 0;
    threads.emplace_back([pair] {
      for (std::size_t round = 1; round <= kRounds; ++round) {
        // Every second block shares its place with those of the other pairs, the others lie side by side.
        const std::size_t number = round % 2 == 0 ? 64 + pair * kPlaces : 65 + pair;
        guarded.add(block(number));
        offered[pair].store(number, std::memory_order_release);  // taken by the partner's acquire
        while (offered[pair].load(std::memory_order_acquire) != 0) std::this_thread::yield();
      }
    });
    threads.emplace_back([pair, &missed] {
      for (std::size_t round = 0; round < kRounds; ++round) {
        std::size_t number;
        while ((number = offered[pair].load(std::memory_order_acquire)) == 0) std::this_thread::yield();
        if (!guarded.marks.may_have(block(number))) ++missed;
        guarded.remove(block(number));
        offered[pair].store(0, std::memory_order_release);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(missed, 0U);
  for (std::size_t number = 64; number < 128; ++number) EXPECT_FALSE(guarded.marks.may_have(block(number))) << number;
}

}  // namespace
}  // namespace loam::interposer
