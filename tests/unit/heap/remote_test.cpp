// Remote free: how an outbox cuts what is freed into batches, and that an inbox hands batches out as they were.
#include "runtime/heap/remote.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <new>
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
    while (count-- != 0) outbox.put(&blocks.at(stride * used++), owner.word(c), bytes, keep);
  }

  // From the block that was freed last to the first one.
  bool is_whole(const Sent& sent, const FreeBlock* newest) const {
    std::uint32_t length = 0;
    for (const FreeBlock* block = sent.batch.first; block != nullptr; block = next_of(block, sent.owner->key()))
      if (block != newest - stride * length++ || block->mark != sent.owner->key()) return false;
    return length == sent.batch.count;
  }

  std::vector<Sent> sent;
  std::vector<PageMap::Word> words;  // the words with which the batches were sent
  std::function<void(PageMap::Word, const Batch&)> keep = [this](PageMap::Word word, const Batch& batch) {
    sent.push_back({Owner::owner_of(word), batch});
    words.push_back(word);
  };
  std::vector<FreeBlock> blocks{TestOutbox::kSlots * 32};
  std::size_t used = 0, stride = 1;  // in entries of `blocks`; stride 2: each block is two entries long
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
      EXPECT_EQ(words.back(), owners[0].word(5));
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

TEST_F(Remote, AnOutboxInZeroedMemoryCollectsForNothingEither) {
  alignas(TestOutbox) static std::byte zeros[sizeof(TestOutbox)]{};
  auto* const made = ::new (zeros) TestOutbox(Zeroed{});
  EXPECT_FALSE(made->collects(0));
  for (unsigned c = 0; c < TestOutbox::kSlots; ++c) EXPECT_FALSE(made->collects(owners[0].word(c)));
  made->flush_all(keep);
  EXPECT_TRUE(sent.empty());
}

class RemoteChains : public Remote, public ::testing::WithParamInterface<ChainWord> {};
INSTANTIATE_TEST_SUITE_P(Remote, RemoteChains, ::testing::Values(ChainWord::mark, ChainWord::third));

TEST_P(RemoteChains, AnInboxHandsBatchesOutAsTheyWere) {
  const ChainWord place = GetParam();
  stride = place == ChainWord::third ? 2 : 1;
  Inbox inbox;
  EXPECT_TRUE(inbox.empty());
  for (const std::uint32_t length : {1u, 2u, 3u, 32u, 1u}) {
    free_some(owners[0], 1, length, 16);
    outbox.flush_all(keep);
  }
  ASSERT_EQ(sent.size(), 5u);
  for (const Sent& each : sent) inbox.push(each.batch, place);
  EXPECT_FALSE(inbox.empty());
  EXPECT_EQ(inbox.blocks(), 39u);
  Chain chain = inbox.take_all();
  EXPECT_TRUE(inbox.empty());
  EXPECT_TRUE(inbox.take_all().empty());
  std::uint64_t seen = 0;
  EXPECT_EQ(chain.for_each(place, [&seen](const Batch& batch) { return seen += batch.count, nullptr; }), nullptr);
  EXPECT_EQ(seen, 39u);
  std::size_t taken = 0;
  const FreeBlock* newest = &blocks[stride * (used - 1)];
  for (; !chain.empty(); ++taken) {
    const Batch batch = chain.pop(owners[0].key(), place);
    EXPECT_TRUE(is_whole({&owners[0], batch}, newest)) << "the batch that came last is the first one";
    newest -= stride * batch.count;
  }
  EXPECT_EQ(taken, sent.size());
}

TEST_P(RemoteChains, AChainThatIsTurnedHasTheSameBatchesTheOtherWayRound) {
  const ChainWord place = GetParam();
  stride = place == ChainWord::third ? 2 : 1;
  Inbox inbox;
  EXPECT_EQ(inbox.take_all().turn(place), 0u);
  for (const std::uint32_t length : {4u, 1u, 32u}) {
    free_some(owners[0], 1, length, 16);
    outbox.flush_all(keep);
  }
  for (const Sent& each : sent) inbox.push(each.batch, place);
  Chain chain = inbox.take_all();
  EXPECT_EQ(chain.turn(place), 37u);
  for (const Sent& each : sent) {
    ASSERT_FALSE(chain.empty());
    const Batch batch = chain.pop(owners[0].key(), place);
    EXPECT_EQ(batch.first, each.batch.first);
    EXPECT_EQ(batch.count, each.batch.count);
  }
  EXPECT_TRUE(chain.empty());
}

}  // namespace
}  // namespace loam::heap
