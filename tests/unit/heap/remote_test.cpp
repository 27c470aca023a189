// Remote free: how an outbox cuts what is freed into batches, and that an inbox hands batches out as they were.
#include "runtime/heap/remote.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace loam::heap {
namespace {

// As heaps are seen from here: an aligned address, below which a word has room for a class.
struct alignas(kHeapAlignment) Owner {
  static Owner* owner_of(PageMap::Word word) noexcept {
    return reinterpret_cast<Owner*>(word & ~PageMap::Word{kHeapAlignment - 1});
  }
  Key key() const noexcept { return address_of(this); }
  PageMap::Word word(unsigned c) const noexcept { return key() + c * kWordStep; }
};

struct Sent {
  Owner* owner;
  Batch batch;
};

class Remote : public ::testing::Test {
 protected:
  using TestOutbox = Outbox<Owner>;

  // Frees `count` further blocks of so many bytes.
  void free_some(const Owner& owner, unsigned c, std::uint32_t count, std::size_t bytes) {
    while (count-- != 0) outbox.put(&blocks.at(used++), owner.word(c), bytes, keep);
  }

  // From the block that was freed last to the first one.
  static bool is_whole(const Sent& sent, const FreeBlock* newest) {
    std::uint32_t length = 0;
    const FreeBlock* last = nullptr;
    for (const FreeBlock* block = sent.batch.first; block != nullptr; block = next_of(block, sent.owner->key())) {
      if (block != newest - length++ || block->mark != sent.owner->key()) return false;
      last = block;
    }
    return length == sent.batch.count && last == sent.batch.last;
  }

  std::vector<Sent> sent;
  std::function<void(Owner*, const Batch&)> keep = [this](Owner* owner, const Batch& batch) {
    sent.push_back({owner, batch});
  };
  std::vector<FreeBlock> blocks{TestOutbox::kSlots * 32};
  std::size_t used = 0;
  Owner owners[2];
  TestOutbox outbox;
};

TEST_F(Remote, ABatchIsSentWhenItIsFull) {
  struct Case {
    std::size_t bytes;
    std::uint32_t length;
  };
  for (const auto& [bytes, length] : {Case{16, 32}, {512, 32}, {528, 31}, {8192, 2}, {16384, 1}, {32768, 1}}) {
    sent.clear();
    for (unsigned i = 1; i <= 3; ++i) {
      free_some(owners[0], 5, length - 1, bytes);
      EXPECT_EQ(sent.size(), i - 1) << bytes;
      EXPECT_EQ(outbox.collects(owners[0].word(5)), length > 1) << "with room for one more";
      free_some(owners[0], 5, 1, bytes);
      ASSERT_EQ(sent.size(), i) << bytes;
      EXPECT_EQ(sent.back().owner, &owners[0]);
      EXPECT_EQ(sent.back().batch.count, length);
      EXPECT_TRUE(is_whole(sent.back(), &blocks[used - 1])) << bytes;
      EXPECT_FALSE(outbox.collects(owners[0].word(5)));
    }
  }
}

TEST_F(Remote, ABatchIsOfOneOwnerAndClass) {
  for (unsigned i = 0; i < 300; ++i) free_some(owners[i % 2], i % 7 + i % 3 * TestOutbox::kSlots, 1, 16);
  outbox.flush_all(keep);
  std::size_t arrived = 0;
  for (const auto& [owner, batch] : sent) {
    std::set<std::size_t> kinds;
    for (const FreeBlock* block = batch.first; block != nullptr; block = next_of(block, owner->key())) {
      const auto i = static_cast<std::size_t>(block - blocks.data());
      EXPECT_EQ(owner, &owners[i % 2]);
      kinds.insert(i % 7 + i % 3 * TestOutbox::kSlots);
      ++arrived;
    }
    EXPECT_EQ(kinds.size(), 1u);
  }
  EXPECT_EQ(arrived, 300u);
}

TEST_F(Remote, BlocksOfOneOwnerAreCollectedForEachClass) {
  for (unsigned c = 0; c < TestOutbox::kSlots; ++c) free_some(owners[0], c, 31, 16);
  EXPECT_TRUE(sent.empty());
  for (unsigned c = 0; c < TestOutbox::kSlots; ++c) EXPECT_TRUE(outbox.collects(owners[0].word(c))) << c;
  outbox.flush_all(keep);
  EXPECT_EQ(sent.size(), TestOutbox::kSlots);
  for (const Sent& each : sent) EXPECT_EQ(each.batch.count, 31u);
  for (unsigned c = 0; c < TestOutbox::kSlots; ++c) EXPECT_FALSE(outbox.collects(owners[0].word(c))) << c;
  outbox.flush_all(keep);
  EXPECT_EQ(sent.size(), TestOutbox::kSlots) << "what was sent is not sent again";
}

TEST_F(Remote, AnOutboxCollectsForNothingAtFirst) {
  EXPECT_FALSE(outbox.collects(0)) << "where nothing of ours is";
  for (unsigned c = 0; c < TestOutbox::kSlots; ++c) EXPECT_FALSE(outbox.collects(owners[0].word(c)));
}

TEST_F(Remote, AnInboxHandsBatchesOutAsTheyWere) {
  Inbox inbox;
  EXPECT_TRUE(inbox.empty());
  for (const std::uint32_t length : {1u, 2u, 3u, 32u, 1u}) {
    free_some(owners[0], 1, length, 16);
    outbox.flush_all(keep);
  }
  ASSERT_EQ(sent.size(), 5u);
  for (const Sent& each : sent) inbox.push(each.batch, owners[0].key());
  EXPECT_FALSE(inbox.empty());
  std::size_t taken = 0;
  const FreeBlock* newest = &blocks[used - 1];
  inbox.take_all(owners[0].key(), [&](const Batch& batch) {
    EXPECT_TRUE(is_whole({&owners[0], batch}, newest)) << "the batch that came last is the first one";
    newest -= batch.count;
    ++taken;
  });
  EXPECT_EQ(taken, sent.size());
  EXPECT_TRUE(inbox.empty());
}

}  // namespace
}  // namespace loam::heap
