// Each abort cause, one by one: addresses that are a word, a block, a stripe, a record apart.
// These alone, in every build.
#undef LOAM_TEST_ALGORITHMS
#define LOAM_TEST_ALGORITHMS tm::EtlWb, tm::EtlWt, tm::Dctl, tm::Tl2
#define LOAM_TEST_BLAME LOAM_TEST_ALGORITHMS
#define LOAM_TEST_DIRECT 1
#include "runtime/sync/barrier.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace loam::tm {
namespace {

constexpr unsigned kShift = 5, kRecordsLog2 = 10;
constexpr std::size_t kPeriod = std::size_t{1} << (kShift + kRecordsLog2);  // stripes this far apart share a record

// Those whose locked records lead to what their owner writes.
constexpr std::string_view kAlgorithms[] = {"etl-wb", "etl-wt", "dctl", "tl2"};

alignas(kPeriod) unsigned char space[2 * kPeriod];

Word& word_at(std::size_t offset) { return *reinterpret_cast<Word*>(space + offset); }

// Blocks: [0,16) [16,32) in one stripe, [64,96) a stripe of its own, [kPeriod, +16) on the record of the first two.
void note_blocks() {
  blame::note_block(space, 16);
  blame::note_block(space + 16, 16);
  blame::note_block(space + 64, 32);
  blame::note_block(space + kPeriod, 16);
}

// An owner that aborts leaves little to say whom it was in the way of, and in slow builds that is most of the time.
constexpr std::uint64_t kUnknownPercentMax = tests::kInstrumented ? 20 : 1;

struct Row {
  const char* name;
  std::size_t mine, theirs;
  AbortCause table, shadow;  // explicit_ stands for: no conflict
};
constexpr AbortCause kNone = AbortCause::explicit_;
const Row kRows[] = {
    {"same word", 0, 0, AbortCause::same_word, AbortCause::same_word},
    {"other word of a block", 0, 8, AbortCause::same_block, AbortCause::same_block},
    {"other granule of a block", 64, 80, AbortCause::same_block, kNone},
    {"other block in the stripe", 0, 16, AbortCause::other_block, kNone},
    {"other stripe on the record", 0, kPeriod, AbortCause::other_stripe, kNone},
    {"another record", 0, 64, kNone, kNone},
};

AbortCause counted(const Statistics& before, const Statistics& after) {
  AbortCause cause = kNone;
  for (std::size_t c = 0; c < kAbortCauses; ++c)
    if (after.aborts[c] != before.aborts[c]) {
      EXPECT_EQ(after.aborts[c] - before.aborts[c], 1u);
      EXPECT_EQ(cause, kNone) << "one abort, one cause";
      cause = static_cast<AbortCause>(c);
    }
  return cause;
}

// The victim has read `mine`; another one commits to `theirs`; the victim's validation fails.
template <class Driver>
AbortCause failed_validation(const Row& row) {
  const Statistics before = statistics();
  tests::Interpose step("tm.committing", 0, [&] {
    Driver::update([&](auto& tx) { tx.write(word_at(row.theirs), tx.read(word_at(row.theirs)) + 1); });
  });
  Driver::update([&](auto& tx) { tx.write(word_at(512), tx.read(word_at(row.mine))); });
  return counted(before, statistics());
}

// The victim reads, or writes, `mine` while another one has locked `theirs`.
template <class Driver>
AbortCause met_lock(const Row& row, bool by_write) {
  AbortCause cause = kNone;
  tests::Interpose step("tm.locked", 0, [&] {
    const Statistics before = statistics();
    const bool committed = tests::attempt_update<Driver>(1, [&](auto& tx) {
      if (by_write)
        tx.write(word_at(row.mine), Word{1});
      else
        tx.read(word_at(row.mine));
    });
    Statistics after = statistics();
    if (!committed) --after.aborts[static_cast<std::size_t>(AbortCause::explicit_)];  // giving up
    cause = counted(before, after);
    EXPECT_EQ(committed, cause == kNone);
  });
  Driver::update([&](auto& tx) { tx.write(word_at(row.theirs), Word{2}); });
  return cause;
}

// The victim's first read finds a version newer than its snapshot, and cannot extend.
template <class Driver>
AbortCause read_only_too_new(const Row& row) {
  // The last commits to both are the past of its snapshot, also where commits do not advance the clock.
  Driver::update([&](auto& tx) { return tx.read(word_at(row.mine)) + tx.read(word_at(row.theirs)); });
  const Statistics before = statistics();
  bool done = false;
  Driver::read_only([&](auto& tx) {
    tx.read(word_at(256));
    if (!done)
      std::thread([&] { Driver::update([&](auto& other) { other.write(word_at(row.theirs), Word{3}); }); }).join();
    done = true;
    tx.read(word_at(row.mine));
  });
  return counted(before, statistics());
}

void expect_all(Mapping mapping) {
  for (const std::string_view algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm);
    tests::in_variant(
        {algorithm, "", {.mapping = mapping, .shift = kShift, .records_log2 = kRecordsLog2, .blame = true}},
        [&]<class Driver>() {
          note_blocks();
          for (const Row& row : kRows) {
            const AbortCause expected = mapping == Mapping::table ? row.table : row.shadow;
            EXPECT_EQ(name_of(failed_validation<Driver>(row)), name_of(expected)) << row.name;
            EXPECT_EQ(name_of(met_lock<Driver>(row, false)), name_of(expected)) << row.name;
            EXPECT_EQ(name_of(met_lock<Driver>(row, true)), name_of(expected)) << row.name;
            EXPECT_EQ(name_of(read_only_too_new<Driver>(row)), name_of(expected)) << row.name;
          }
        });
  }
}

TEST(BlameTest, EachCauseOverATable) {
  LOAM_NEEDS_POINTS();
  expect_all(Mapping::table);
}

TEST(BlameTest, ShadowRecordsHaveNoFalseCauses) {
  LOAM_NEEDS_POINTS();
  expect_all(Mapping::shadow);
}

// The owner has written other words of the record before and after; the closest of them counts, whatever its parts did.
TEST(BlameTest, ALocksWholeChainIsLookedThrough) {
  for (const std::string_view algorithm : {"etl-wb", "etl-wt", "dctl"}) {  // tl2 has locked nothing yet
    SCOPED_TRACE(algorithm);
    tests::in_variant({algorithm, "", {.shift = kShift, .records_log2 = kRecordsLog2}}, []<class Driver>() {
      for (const std::size_t offset : {std::size_t{0}, std::size_t{8}, std::size_t{24}, kPeriod + 8}) {
        AbortCause cause = kNone;
        Driver::update([&](auto& tx) {
          tx.write(word_at(kPeriod), Word{1});
          Driver::closed([&](auto& inner) {
            for (std::size_t i = 0; i < 4; ++i) inner.write(word_at(kPeriod + i * 8), Word{2});
            Driver::cancel();
          });
          tx.write(word_at(16), Word{1});
          tx.write(word_at(offset), Word{1});
          tx.write(word_at(0), Word{1});
          std::thread([&] {
            const Statistics before = statistics();
            tests::attempt_update<Driver>(1, [&](auto& other) { other.read(word_at(offset)); });
            Statistics after = statistics();
            --after.aborts[static_cast<std::size_t>(AbortCause::explicit_)];  // giving up
            cause = counted(before, after);
          }).join();
        });
        EXPECT_EQ(name_of(cause), "same_word") << offset;
      }
    });
  }
}

TEST(BlameTest, AWordOfNoKnownBlockIsUnknownUnlessItIsTheWordItself) {
  LOAM_NEEDS_POINTS();
  tests::in_variant({"etl-wb", "", {.records_log2 = kRecordsLog2, .blame = true}}, []<class Driver>() {
    EXPECT_EQ(name_of(failed_validation<Driver>({"", 0, 8, {}, {}})), "unknown");
    EXPECT_EQ(name_of(failed_validation<Driver>({"", 0, 0, {}, {}})), "same_word");
    EXPECT_EQ(name_of(failed_validation<Driver>({"", 0, kPeriod, {}, {}})), "other_stripe");
  });
}

TEST(BlameTest, TimingRunsTellLockedRecordsApartAndCountValidationsAsUnknown) {
  LOAM_NEEDS_POINTS();
  for (const std::string_view algorithm : kAlgorithms)
    tests::in_variant({algorithm, "", {.records_log2 = kRecordsLog2}}, []<class Driver>() {
      for (const bool by_write : {false, true}) {
        EXPECT_EQ(name_of(met_lock<Driver>(kRows[0], by_write)), "same_word");
        EXPECT_EQ(name_of(met_lock<Driver>(kRows[1], by_write)), "unknown") << "no block map: same stripe, no more";
        EXPECT_EQ(name_of(met_lock<Driver>(kRows[4], by_write)), "other_stripe");
      }
      EXPECT_EQ(name_of(failed_validation<Driver>(kRows[0])), "unknown");
    });
}

TEST(BlameTest, TheClosestOfSeveralWordsIsNamed) {
  LOAM_NEEDS_POINTS();
  tests::in_variant({"etl-wb", "", {.records_log2 = kRecordsLog2, .blame = true}}, []<class Driver>() {
    note_blocks();
    const Statistics before = statistics();
    tests::Interpose step("tm.committing", 0, [&] {
      for (const std::size_t offset : {kPeriod, std::size_t{16}, std::size_t{8}})
        Driver::update([&](auto& tx) { tx.write(word_at(offset), Word{1}); });
      Driver::update([&](auto& tx) {  // several in one commit
        tx.write(word_at(kPeriod), Word{2});
        tx.write(word_at(24), Word{2});
      });
    });
    Driver::update([&](auto& tx) { tx.write(word_at(512), tx.read(word_at(0))); });
    EXPECT_EQ(name_of(counted(before, statistics())), "same_block");
  });
}

// What was committed before an attempt began has nothing to do with its abort, however close it is.
TEST(BlameTest, AWriteThatTheSnapshotHasIsNoCause) {
  LOAM_NEEDS_POINTS();
  tests::in_variant({"etl-wb", "", {.shift = kShift, .records_log2 = kRecordsLog2, .blame = true}}, []<class Driver>() {
    note_blocks();
    Driver::update([&](auto& tx) { tx.write(word_at(0), Word{1}); });
    EXPECT_EQ(name_of(failed_validation<Driver>({"", 0, 8, {}, {}})), "same_block");
  });
}

TEST(BlameTest, ABlockEndsWithItsLastByteWhicheverWasMadeFirst) {
  tests::in_variant({"etl-wb", "", {.shift = kShift, .records_log2 = kRecordsLog2, .blame = true}}, []<class Driver>() {
    blame::note_block(space + 16, 16);
    blame::note_block(space, 16);
    EXPECT_EQ(blame::block_start(space + 16), space + 16);
    EXPECT_EQ(name_of(blame::relation(&word_at(8), &word_at(16))), "other_block");
    blame::note_block(space + 64, 17);
    EXPECT_EQ(blame::block_start(space + 80), space + 64);
    EXPECT_EQ(blame::block_start(space + 96), nullptr);
  });
}

TEST(BlameTest, TransactionalBlocksKnowTheirBounds) {
  LOAM_NEEDS_POINTS();
  tests::in_variant({"etl-wb", "", {.blame = true}}, []<class Driver>() {
    struct Wide {
      Word first, second, third, fourth;
    };
    // As many neighbours as a stripe holds: whatever the allocator does, causes follow the blocks it gave.
    std::vector<Wide*> blocks;
    for (int i = 0; i < 16; ++i) blocks.push_back(Driver::update([](auto& tx) { return tx.template create<Wide>(); }));
    const auto base = reinterpret_cast<std::uintptr_t>(space);
    for (Wide* block : blocks) {
      const Row own{"",
                    reinterpret_cast<std::uintptr_t>(&block->first) - base,
                    reinterpret_cast<std::uintptr_t>(&block->second) - base,
                    {},
                    {}};
      EXPECT_EQ(name_of(failed_validation<Driver>(own)), "same_block");
    }
    int neighbours = 0;
    for (Wide* a : blocks)
      for (Wide* b : blocks) {
        Word* const mine = &a->fourth;
        Word* const theirs = &b->first;
        if (a == b || reinterpret_cast<std::uintptr_t>(mine) >> 5 != reinterpret_cast<std::uintptr_t>(theirs) >> 5)
          continue;
        ++neighbours;
        EXPECT_EQ(name_of(blame::relation(mine, theirs)), "other_block");
      }
    RecordProperty("neighbours", neighbours);
  });
}

TEST(BlameTest, SmallBlocksThatShareAGranuleAreCounted) {
  tests::in_variant({"etl-wb", "", {.blame = true}}, []<class Driver>() {
    EXPECT_EQ(blame::blocks_not_separable(), 0u);
    blame::note_block(space + 16, 8);
    EXPECT_EQ(blame::blocks_not_separable(), 0u) << "alone at the start of its granule";
    blame::note_block(space + 24, 8);
    EXPECT_EQ(blame::blocks_not_separable(), 1u);
  });
}

TEST(BlameTest, UnderContentionAlmostNothingIsUnknown) {
  for (const auto mapping : {Mapping::table, Mapping::shadow})
    tests::in_variant({"etl-wb", "", {.mapping = mapping, .blame = true}}, [&]<class Driver>() {
      struct Cell {
        Word value, more;
      };
      std::vector<Cell*> cells(8);
      for (auto& cell : cells) cell = Driver::update([](auto& tx) { return tx.template create<Cell>(); });
      const auto contend = [&] {
        sync::Barrier barrier(3);
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 3; ++t)
          threads.emplace_back([&, t] {
            barrier.arrive_and_wait();
            for (unsigned i = 0; i < 3000; ++i)
              Driver::update([&](auto& tx) {
                Cell& from = *cells[(i + t) % 8];
                Cell& to = *cells[(i * 5 + t * 3) % 8];
                const Word moved = tx.read(from.value);
                tx.write(to.more, tx.read(to.more) + 1);
                if (i % 16 == 0) platform::yield();
                tx.write(from.value, moved + 1);
              });
          });
        for (auto& thread : threads) thread.join();
      };
      // On a busy machine the threads of a round may hardly meet.
      for (int round = 0; round < 50 && statistics_of_all().aborts_total() < 1000; ++round) contend();
      const Statistics all = statistics_of_all();
      const auto count = [&](AbortCause cause) { return all.aborts[static_cast<std::size_t>(cause)]; };
      EXPECT_GT(all.aborts_total(), 0u);
      EXPECT_LE(count(AbortCause::unknown) * 100, all.aborts_total() * kUnknownPercentMax);
      if (mapping == Mapping::shadow) {
        EXPECT_EQ(count(AbortCause::other_block), 0u);
        EXPECT_EQ(count(AbortCause::other_stripe), 0u);
      }
    });
}

}  // namespace
}  // namespace loam::tm
