// Flags beside blocks: which address has one, and when.
#include "runtime/heap/held_flags.hpp"

#include <gtest/gtest.h>

namespace loam::heap {
namespace {

struct RarePages : SystemPages {
  static inline bool refuses = false;
  static std::byte* metadata(std::size_t bytes) noexcept { return refuses ? nullptr : SystemPages::metadata(bytes); }
};
constinit HeldFlags<RarePages> held;

void* address(std::uintptr_t area, std::uintptr_t offset) {
  return reinterpret_cast<void*>((area << kAreaShift) + offset);
}

TEST(HeldFlags, EachBlockOfAnAreaHasItsOwn) {
  void* const first = address(3, 0);
  EXPECT_EQ(held.of_block(first), nullptr);
  EXPECT_FALSE(held.holds(first));
  ASSERT_TRUE(held.make(first));
  HeldFlag* const flag = held.of_block(first);
  ASSERT_NE(flag, nullptr);
  EXPECT_EQ(held.of_block(address(3, 16)), flag + 1);
  EXPECT_EQ(held.of_block(address(3, kAreaBytes - 16)), flag + kAreaBytes / 16 - 1);
  EXPECT_FALSE(held.holds(first)) << "nobody has it yet";
  flag->store(1);
  EXPECT_TRUE(held.holds(first));
  EXPECT_FALSE(held.holds(address(3, 16)));
  ASSERT_TRUE(held.make(address(3, 16))) << "which leaves them as they are";
  EXPECT_TRUE(held.holds(first));
  EXPECT_EQ(held.of_block(address(4, 0)), nullptr);
}

TEST(HeldFlags, NoFlagWhereNoBlockCanBegin) {
  ASSERT_TRUE(held.make(address(5, 0)));
  EXPECT_NE(held.of_address(address(5, 32)), nullptr);
  for (const std::uintptr_t offset : {1, 8, 15}) EXPECT_EQ(held.of_address(address(5, offset)), nullptr);
  EXPECT_EQ(held.of_address(nullptr), nullptr);
  EXPECT_EQ(held.of_address(reinterpret_cast<void*>(std::uintptr_t{1} << kAddressBits)), nullptr);
  EXPECT_EQ(held.of_address(reinterpret_cast<void*>(~std::uintptr_t{15})), nullptr);
}

TEST(HeldFlags, WhereMemoryIsMissingThereAreNoneUntilItIsBack) {
  RarePages::refuses = true;
  EXPECT_FALSE(held.make(address(6, 0)));
  EXPECT_EQ(held.of_block(address(6, 0)), nullptr);
  RarePages::refuses = false;
  EXPECT_TRUE(held.make(address(6, 0)));
  EXPECT_NE(held.of_block(address(6, 0)), nullptr);
}

}  // namespace
}  // namespace loam::heap
