// The shelf: which list serves, how much it holds, and that a walk over several lists leaves them as they are.
#include "runtime/heap/shelf.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace loam::heap {
namespace {

using TestShelf = Shelf<FourPerDoubling>;

const unsigned kShort = FourPerDoubling::class_of(100), kMiddling = FourPerDoubling::class_of(1024),
               kLong = FourPerDoubling::class_of(30000);
// As no heap's address is: what is read behind an end ends the test.
constexpr Key kKey = 4096;

// Lists over blocks of the test's own, one behind the other: short ones lie near each other.
class Lists {
 public:
  BlockList make(std::uint32_t count) {
    FreeBlock* const first = blocks_.data() + used_;
    used_ += count;
    EXPECT_LE(used_, blocks_.size());
    for (std::uint32_t i = count; i-- != 0;) put_before(&first[i], i + 1 < count ? &first[i + 1] : nullptr, kKey);
    return {first, count};
  }

 private:
  std::vector<FreeBlock> blocks_ = std::vector<FreeBlock>(std::size_t{1} << 17);
  std::size_t used_ = 0;
};

bool is_whole(const BlockList& list) {
  std::uint32_t length = 0;
  for (const FreeBlock* block = list.first; block != nullptr; block = next_of(block, kKey))
    if (block != list.first + length++ || block->mark != kKey) return false;
  return length == list.count;
}

TEST(Shelf, TheListThatWasPutLastServesFirst) {
  Lists lists;
  for (const unsigned c : {kShort, kMiddling, kLong}) {
    TestShelf shelf;
    std::vector<FreeBlock*> expected;
    for (std::uint32_t i = 1; i <= 10; ++i) {
      const BlockList list = lists.make(i);
      ASSERT_TRUE(shelf.put(c, list));
      expected.push_back(list.first);
    }
    EXPECT_EQ(shelf.lists(c).size(), 10u);
    EXPECT_EQ(shelf.lists(c).back().first, expected.back());
    EXPECT_EQ(shelf.take(kShort + 1, kKey).first, nullptr) << "of another class";
    for (std::uint32_t i = 10; i != 0; --i) {
      const BlockList list = shelf.take(c, kKey);
      EXPECT_EQ(list.first, expected[i - 1]);
      EXPECT_EQ(list.count, i);
      EXPECT_TRUE(is_whole(list));
    }
    EXPECT_EQ(shelf.take(c, kKey).first, nullptr);
  }
}

// Lists of all lengths side by side, and lists that come between walks: no walk goes past an end.
TEST(Shelf, WalksEndWhereListsEnd) {
  Lists lists;
  TestShelf shelf;
  std::uint32_t lengths = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<BlockList> made;
    for (int i = 0; i < round % 13; ++i) made.push_back(lists.make(lengths = lengths * 5 % 37));
    // Neither up nor down: lists in order are not walked.
    for (std::size_t i = 1; i < made.size(); i += 2) std::swap(made[i - 1], made[i]);
    for (const BlockList& list : made)
      if (!shelf.put(kMiddling, list)) break;
    for (int i = 0; i < round % 11; ++i) EXPECT_TRUE(is_whole(shelf.take(kMiddling, kKey)));
  }
  for (BlockList list = shelf.take(kMiddling, kKey); list.first != nullptr; list = shelf.take(kMiddling, kKey))
    EXPECT_TRUE(is_whole(list));
}

TEST(Shelf, HoldsSoManyListsOfAClass) {
  Lists lists;
  TestShelf shelf;
  for (const unsigned c : {kShort, kMiddling, kLong}) {
    const std::uint32_t most = TestShelf::lists_max(c);
    for (std::uint32_t i = 0; i < most; ++i) ASSERT_TRUE(shelf.put(c, lists.make(1)));
    EXPECT_FALSE(shelf.put(c, lists.make(1)));
    EXPECT_EQ(shelf.lists(c).size(), most);
    shelf.take(c, kKey);
    EXPECT_TRUE(shelf.put(c, lists.make(1)));
  }
}

// Lists that begin too far from each other to keep a program's blocks together go to the slabs.
TEST(Shelf, HoldsFewListsOfShortBlocksThatLieApart) {
  const auto at = [](std::uintptr_t address) { return BlockList{reinterpret_cast<FreeBlock*>(address), 1}; };
  const std::uintptr_t begin = std::uintptr_t{1} << 40;
  TestShelf shelf;
  for (std::uint32_t i = 1; i <= TestShelf::kStrayListsMax; ++i)
    ASSERT_TRUE(shelf.put(kShort, at(begin + i * (TestShelf::kCloseBytes + 16))));
  const std::uintptr_t last = begin + TestShelf::kStrayListsMax * (TestShelf::kCloseBytes + 16);
  for (const std::uintptr_t far : {last + TestShelf::kCloseBytes + 16, last - TestShelf::kCloseBytes - 16})
    EXPECT_FALSE(shelf.put(kShort, at(far)));
  EXPECT_TRUE(shelf.put(kShort, at(last + TestShelf::kCloseBytes)));
  EXPECT_TRUE(shelf.put(kShort, at(last))) << "as near, below";
  for (std::uint32_t i = 0; i < TestShelf::lists_max(kLong); ++i)
    EXPECT_TRUE(shelf.put(kLong, at(begin + i * (TestShelf::kCloseBytes + 16)))) << "whose order nobody sees";
}

TEST(Shelf, HoldsSoManyBytesOfAllClasses) {
  Lists lists;
  TestShelf shelf;
  const auto fitting = [](unsigned c, std::size_t bytes) {
    return static_cast<std::uint32_t>(bytes / FourPerDoubling::bytes_of(c));
  };
  const std::uint32_t half = fitting(kLong, TestShelf::kBytesMax / 2);
  ASSERT_TRUE(shelf.put(kLong, lists.make(half)));
  const std::size_t left = TestShelf::kBytesMax - half * FourPerDoubling::bytes_of(kLong);
  EXPECT_FALSE(shelf.put(kShort, lists.make(fitting(kShort, left) + 1)));
  ASSERT_TRUE(shelf.put(kShort, lists.make(fitting(kShort, left))));
  EXPECT_FALSE(shelf.put(kLong, lists.make(1)));
  const std::uint32_t most = fitting(kMiddling, TestShelf::kMiddlingBytesMax);
  EXPECT_FALSE(shelf.put(kMiddling, lists.make(most + 1)));
  EXPECT_TRUE(shelf.put(kMiddling, lists.make(most))) << "which have bytes of their own";
  EXPECT_FALSE(shelf.put(kMiddling + 1, lists.make(1)));
  EXPECT_EQ(shelf.take(kMiddling, kKey).count, most);
  EXPECT_FALSE(shelf.put(kLong, lists.make(1)));
  EXPECT_TRUE(shelf.put(kMiddling, lists.make(most)));
  EXPECT_EQ(shelf.take(kLong, kKey).count, half);
  EXPECT_TRUE(shelf.put(kLong, lists.make(half)));
}

}  // namespace
}  // namespace loam::heap
