// What an explained run keeps of conflicts: words, blocks, threads, sites and causes of forced ones, and the samples.
#include "runtime/tm/blame/explain.hpp"

#include "runtime/platform/compiler.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

constexpr unsigned kShift = 5, kRecordsLog2 = 10;
constexpr std::size_t kPeriod = std::size_t{1} << (kShift + kRecordsLog2);

alignas(kPeriod) unsigned char space[2 * kPeriod];

Word& word_at(std::size_t offset) { return *reinterpret_cast<Word*>(space + offset); }

struct Weighed {
  explain::Conflict conflict;
  std::uint64_t weight;
};

std::vector<Weighed> conflicts() {
  std::vector<Weighed> all;
  explain::for_each_conflict(&all, [](void* into, const explain::Conflict& conflict, std::uint64_t weight) {
    static_cast<std::vector<Weighed>*>(into)->push_back({conflict, weight});
  });
  return all;
}

struct Kept {
  std::vector<explain::Touched> words;
  unsigned thread;
  std::uint64_t weight;
  bool whole;
};

std::vector<Kept> footprints() {
  std::vector<Kept> all;
  explain::for_each_footprint(&all, [](void* into, const explain::Footprint& footprint, std::uint64_t weight) {
    static_cast<std::vector<Kept>*>(into)->push_back(
        {{footprint.words.begin(), footprint.words.end()}, footprint.thread, weight, footprint.whole});
  });
  return all;
}

void note_blocks() {
  for (const std::size_t offset : {std::size_t{0}, std::size_t{16}, kPeriod}) {
    blame::note_block(space + offset, 16);
    explain::allocated(space + offset, 16);
  }
}

// Accesses with sites of their own, each the same at every call.
template <class Tx>
LOAM_CALLED_AS_WRITTEN Word read_here(Tx& tx, std::size_t offset) {
  return tx.read(word_at(offset));
}
template <class Tx>
LOAM_CALLED_AS_WRITTEN Word read_there(Tx& tx, std::size_t offset) {
  return tx.read(word_at(offset));
}
template <class Tx>
LOAM_CALLED_AS_WRITTEN void write_here(Tx& tx, std::size_t offset) {
  tx.write(word_at(offset), Word{5});
}
template <class Tx>
LOAM_CALLED_AS_WRITTEN void write_there(Tx& tx, std::size_t offset) {
  tx.write(word_at(offset), Word{6});
}

// etl-wb alone: whom an algorithm meets, and when, is its own.
template <class Body>
void explained_etl_wb(unsigned every, Body&& body) {
  tests::in_variant({"etl-wb", "", {.shift = kShift, .records_log2 = kRecordsLog2, .blame = true}},
                    [&]<class Driver>() {
                      explain::start(every);
                      note_blocks();
                      body.template operator()<Driver>();
                    });
}

TEST(ExplainTest, AFailedValidationNamesBothWordsBlocksAndSites) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    unsigned other_slot = 0;
    tests::Interpose step("tm.committing", 0, [&] {
      Driver::update([&](auto& tx) { write_here(tx, 16); });
      other_slot = Descriptor::current().slot;
    });
    Driver::update([&](auto& tx) {
      read_there(tx, 512);
      read_here(tx, 0);
      read_there(tx, 544);
      tx.write(word_at(576), Word{1});
    });
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 1u);
    const explain::Conflict& found = all[0].conflict;
    EXPECT_EQ(all[0].weight, 1u);
    EXPECT_EQ(found.cause, AbortCause::other_block);
    EXPECT_FALSE(found.locked);
    EXPECT_EQ(found.shift, kShift);
    EXPECT_EQ(found.record, (reinterpret_cast<std::uintptr_t>(space) >> kShift) % (1u << kRecordsLog2));
    EXPECT_EQ(found.mine.word, &word_at(0));
    EXPECT_EQ(found.theirs.word, &word_at(16));
    EXPECT_EQ(found.mine.block.start, space);
    EXPECT_EQ(found.theirs.block.start, space + 16);
    EXPECT_EQ(found.mine.block.bytes, 16u);
    EXPECT_EQ(found.theirs.block.bytes, 16u);
    EXPECT_EQ(found.mine.thread, Descriptor::current().slot);
    EXPECT_EQ(found.theirs.thread, other_slot);
    EXPECT_NE(found.mine.thread, found.theirs.thread);
  });
}

TEST(ExplainTest, SitesAreThoseOfTheAccessesThatMet) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    const auto lose = [](auto read, auto write) {
      tests::Interpose step("tm.committing", 0, [&] { Driver::update([&](auto& tx) { write(tx, 8); }); });
      Driver::update([&](auto& tx) {
        read_there(tx, 512);
        read(tx, 0);
        read_there(tx, 544);
        tx.write(word_at(576), Word{1});
      });
    };
    const auto here = [](auto& tx, std::size_t offset) { return read_here(tx, offset); };
    const auto there = [](auto& tx, std::size_t offset) { return read_there(tx, offset); };
    const auto write_at_here = [](auto& tx, std::size_t offset) { write_here(tx, offset); };
    const auto write_at_there = [](auto& tx, std::size_t offset) { write_there(tx, offset); };
    lose(here, write_at_here);
    lose(there, write_at_here);
    lose(here, write_at_there);
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 3u);
    for (const Weighed& each : all) {
      EXPECT_EQ(each.conflict.cause, AbortCause::same_block);
      EXPECT_NE(each.conflict.mine.site, nullptr);
      EXPECT_NE(each.conflict.theirs.site, nullptr);
    }
    EXPECT_EQ(all[0].conflict.mine.site, all[2].conflict.mine.site);
    EXPECT_NE(all[0].conflict.mine.site, all[1].conflict.mine.site);
    EXPECT_EQ(all[0].conflict.theirs.site, all[1].conflict.theirs.site);
    EXPECT_NE(all[0].conflict.theirs.site, all[2].conflict.theirs.site);
    EXPECT_NE(all[0].conflict.mine.site, all[0].conflict.theirs.site);
  });
}

TEST(ExplainTest, ALockThatIsMetNamesItsOwnersWrite) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    for (const bool by_write : {false, true}) {
      tests::Interpose step("tm.locked", 0, [&] {
        tests::attempt_update<Driver>(1, [&](auto& tx) {
          if (by_write)
            write_there(tx, 0);
          else
            read_here(tx, 0);
        });
      });
      Driver::update([&](auto& tx) { write_here(tx, 16); });
    }
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 2u);
    const unsigned owner = Descriptor::current().slot;
    for (const Weighed& each : all) {
      EXPECT_TRUE(each.conflict.locked);
      EXPECT_EQ(each.conflict.cause, AbortCause::other_block);
      EXPECT_EQ(each.conflict.mine.word, &word_at(0));
      EXPECT_EQ(each.conflict.theirs.word, &word_at(16));
      EXPECT_EQ(each.conflict.theirs.thread, owner);
      EXPECT_EQ(each.conflict.theirs.site, explain::site_of_write(owner, &word_at(16)));
      EXPECT_NE(each.conflict.theirs.site, nullptr);
      EXPECT_NE(each.conflict.mine.site, nullptr);
    }
    EXPECT_NE(all[0].conflict.mine.site, all[1].conflict.mine.site) << "one lost by a read, one by a write";
  });
}

alignas(kPeriod) Word others[std::size_t{1} << 16];  // many for each place of the table of last writes

// One of them whose last write is kept in the place of that of `word`. It shares no record with words below 1 KiB.
template <class Driver>
Word& rival_of(Word& word) {
  for (Word& other : others) {
    if (reinterpret_cast<std::uintptr_t>(&other) % kPeriod < 1024) continue;
    Driver::update([&](auto& tx) {
      tx.write(word, Word{1});
      tx.write(other, Word{1});
    });
    if (explain::site_of_write(Descriptor::current().slot, &word) == nullptr) return other;
  }
  ADD_FAILURE() << "no word has the place of another one";
  return word;
}

TEST(ExplainTest, WhereACommittedWriteWasMadeIsKnownAlsoIfItsPlaceWasTaken) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    Word& rival = rival_of<Driver>(word_at(0));
    for (const bool taken : {false, true}) {
      tests::Interpose step("tm.committing", 0, [&] {
        Driver::update([&](auto& tx) {
          write_here(tx, 0);
          if (taken) tx.write(rival, Word{2});
          read_there(tx, 0);
        });
      });
      Driver::update([&](auto& tx) { tx.write(word_at(576), read_here(tx, 0)); });
    }
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 2u);
    for (const Weighed& each : all) {
      EXPECT_FALSE(each.conflict.locked);
      EXPECT_EQ(each.conflict.theirs.word, &word_at(0));
      EXPECT_NE(each.conflict.theirs.site, nullptr);
      EXPECT_EQ(each.conflict.theirs.site, all[0].conflict.theirs.site);
    }
  });
}

TEST(ExplainTest, AnOwnerThatIsMetMayHaveOverwrittenWhereItWroteTheWord) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    Word& rival = rival_of<Driver>(word_at(0));
    for (const bool taken : {false, true}) {
      tests::Interpose step("tm.locked", taken ? 1 : 0,
                            [&] { tests::attempt_update<Driver>(1, [&](auto& tx) { read_there(tx, 0); }); });
      Driver::update([&](auto& tx) {
        write_here(tx, 0);
        if (taken) tx.write(rival, Word{2});
      });
      EXPECT_TRUE(step.reached());
    }
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 2u);
    for (const Weighed& each : all) {
      EXPECT_TRUE(each.conflict.locked);
      EXPECT_EQ(each.conflict.theirs.word, &word_at(0));
      EXPECT_NE(each.conflict.mine.site, nullptr);
    }
    EXPECT_NE(all[0].conflict.theirs.site, nullptr);
    EXPECT_EQ(all[1].conflict.theirs.site, nullptr) << "that of another word";
  });
}

// An owner that loses its core while it says where it writes a word again is met until it comes back.
TEST(ExplainTest, AWordThatIsWrittenAgainHasASiteAtEveryMoment) {
  explained_etl_wb(1, []<class Driver>() {
    constexpr unsigned kNotYet = ~0U;
    std::atomic<unsigned> slot{kNotYet};
    std::atomic<bool> over{false};
    std::thread writer([&] {
      Driver::update([&](auto& tx) {
        write_here(tx, 0);
        slot = Descriptor::current().slot;
        while (!over) {
          write_there(tx, 0);
          write_here(tx, 0);
        }
      });
    });
    while (slot == kNotYet) platform::yield();
    unsigned unknown = 0;
    for (unsigned i = 0; i < 2'000'000; ++i) unknown += explain::site_of_write(slot, &word_at(0)) == nullptr;
    over = true;
    writer.join();
    EXPECT_EQ(unknown, 0u);
  });
}

TEST(ExplainTest, AReadOnlyTransactionKnowsWhereItLost) {
  explained_etl_wb(1, []<class Driver>() {
    bool done = false;
    Driver::read_only([&](auto& tx) {
      read_there(tx, 256);
      if (!done) std::thread([] { Driver::update([](auto& other) { write_here(other, kPeriod); }); }).join();
      done = true;
      read_here(tx, 0);
    });
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].conflict.cause, AbortCause::other_stripe);
    EXPECT_EQ(all[0].conflict.mine.word, &word_at(0));
    EXPECT_EQ(all[0].conflict.theirs.word, &word_at(kPeriod));
    EXPECT_NE(all[0].conflict.mine.site, nullptr);
    EXPECT_NE(all[0].conflict.theirs.site, nullptr);
  });
}

// With a record for each word it would have been the later word that made the attempt abort.
TEST(ExplainTest, TheClosestWordThatWasReadIsBlamedNotTheFirstOne) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    const Statistics before = statistics();
    tests::Interpose step("tm.committing", 0, [&] { Driver::update([&](auto& tx) { write_here(tx, 16); }); });
    Driver::update([&](auto& tx) {
      read_there(tx, 0);  // fails first: another block
      read_here(tx, 24);  // the block
      read_here(tx, 16);  // the word itself
      tx.write(word_at(576), Word{1});
    });
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].conflict.cause, AbortCause::same_word);
    EXPECT_EQ(all[0].conflict.mine.word, &word_at(16));
    const auto same_word = static_cast<std::size_t>(AbortCause::same_word);
    EXPECT_EQ(statistics().aborts[same_word] - before.aborts[same_word], 1u) << "the count says the same";
  });
}

TEST(ExplainTest, TransactionalBlocksAreKnownBySizeThreadAndOrdinal) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    struct Node {
      Word first, second, third, fourth;
    };
    Driver::update([](auto& tx) { tx.template create<Node>(); });
    Node* node = nullptr;
    unsigned maker = 0;
    std::thread([&] {
      Driver::update([](auto& tx) { tx.template create<Node>(); });
      node = Driver::update([](auto& tx) { return tx.template create<Node>(); });
      maker = Descriptor::current().slot;
    }).join();
    tests::Interpose step("tm.committing", 0,
                          [&] { Driver::update([&](auto& tx) { tx.write(node->second, Word{1}); }); });
    Driver::update([&](auto& tx) { tx.write(word_at(512), tx.read(node->second)); });
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 1u);
    const explain::Block& block = all[0].conflict.mine.block;
    EXPECT_EQ(block.start, node);
    EXPECT_EQ(block.bytes, sizeof(Node));
    EXPECT_EQ(block.ordinal, 2u);
    EXPECT_EQ(block.thread, maker);
    EXPECT_NE(block.site, nullptr);
  });
}

TEST(ExplainTest, EveryNthAbortIsKeptAndStandsForN) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(3, []<class Driver>() {
    for (int i = 0; i < 10; ++i) {
      tests::Interpose step("tm.committing", 0, [&] { Driver::update([&](auto& tx) { write_here(tx, 0); }); });
      Driver::update([&](auto& tx) { tx.write(word_at(512), read_here(tx, 0)); });
    }
    const auto all = conflicts();
    ASSERT_EQ(all.size(), 3u);
    for (const Weighed& each : all) EXPECT_EQ(each.weight, 3u);
  });
}

TEST(ExplainTest, AFullSampleThinsOutEvenly) {
  explained_etl_wb(1, []<class Driver>() {
    constexpr unsigned kCommits = 1000;
    for (unsigned i = 1; i <= kCommits; ++i)
      Driver::update([&](auto& tx) {
        tx.write(word_at(0), Word{i});
        tx.read(word_at(8 * (i % 512)));
      });
    const auto all = footprints();
    ASSERT_FALSE(all.empty());
    const std::uint64_t weight = all[0].weight;
    EXPECT_EQ(weight, 32u) << "1000 commits into 32 places: the interval has doubled five times";
    EXPECT_EQ(all.size(), kCommits / weight);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].weight, weight);
      ASSERT_EQ(all[i].words.size(), 2u);
      EXPECT_EQ(all[i].words[1].word, &word_at(8 * ((i + 1) * weight % 512))) << "each interval-th commit, in order";
    }
  });
}

// A thread that has ended leaves its slot to the next one, whose footprints are those of its own first transactions.
TEST(ExplainTest, ALaterThreadOfASlotHasASampleOfItsOwn) {
  explained_etl_wb(1, []<class Driver>() {
    const auto commits = [](std::size_t offset, unsigned times) {
      unsigned slot = 0;
      std::thread([&] {
        for (unsigned i = 0; i < times; ++i) Driver::update([&](auto& tx) { tx.write(word_at(offset), Word{i}); });
        slot = Descriptor::current().slot;
      }).join();
      return slot;
    };
    const unsigned slot = commits(0, 100);  // so many that not each of them is kept
    ASSERT_EQ(commits(8, 3), slot);
    unsigned own = 0;
    for (const Kept& kept : footprints()) {
      if (kept.thread != slot) continue;
      ++own;
      EXPECT_EQ(kept.weight, 1u);
      ASSERT_EQ(kept.words.size(), 1u);
      EXPECT_EQ(kept.words[0].word, &word_at(8));
    }
    EXPECT_EQ(own, 3u);
  });
}

// Details of blocks lie in a table: of a block whose place another one took only the start is known, not that one's details.
TEST(ExplainTest, ABlockWhoseDetailsWereTakenOverIsKnownByItsStartAlone) {
  explained_etl_wb(1, []<class Driver>() {
    const auto read = [] { Driver::update([](auto& tx) { tx.read(word_at(0)); }); };
    read();
    // Blocks of a granule, neighbours, as many as the table has places: one of them takes each place.
    constexpr std::uintptr_t kPlaces = std::uintptr_t{1} << 20, kFirst = std::uintptr_t{1} << 44;
    for (std::uintptr_t i = 0; i < kPlaces; ++i)
      explain::allocated(reinterpret_cast<const void*>(kFirst + 16 * i), 16);  // NOLINT(performance-no-int-to-ptr)
    read();
    const auto all = footprints();
    ASSERT_EQ(all.size(), 2u);
    for (const Kept& kept : all) {
      ASSERT_EQ(kept.words.size(), 1u);
      EXPECT_EQ(kept.words[0].block, space);
    }
    EXPECT_EQ(all[0].words[0].bytes, 16u);
    EXPECT_EQ(all[1].words[0].bytes, 0u);
  });
}

TEST(ExplainTest, AFootprintHasWhatTheCommittedAttemptTouched) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(1, []<class Driver>() {
    tests::Interpose step("tm.committing", 0, [&] { Driver::update([&](auto& tx) { write_here(tx, 0); }); });
    bool again = false;
    Driver::update([&](auto& tx) {
      read_here(tx, again ? 16 : 0);
      write_here(tx, again ? 32 : 64);
      again = true;
    });
    const unsigned own = Descriptor::current().slot;
    const auto all = footprints();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Kept& kept) { return kept.thread == own; });
    ASSERT_NE(found, all.end());
    EXPECT_TRUE(found->whole);
    ASSERT_EQ(found->words.size(), 2u) << "nothing of the attempt that aborted";
    EXPECT_EQ(found->words[0].word, &word_at(16));
    EXPECT_FALSE(found->words[0].written);
    EXPECT_EQ(found->words[0].block, space + 16);
    EXPECT_EQ(found->words[0].bytes, 16u);
    EXPECT_EQ(found->words[1].word, &word_at(32));
    EXPECT_TRUE(found->words[1].written);
    EXPECT_EQ(found->words[1].block, nullptr);
  });
}

TEST(ExplainTest, EveryAlgorithmsAccessesTellWhereTheyAreMade) {
  for (const std::string_view name : Algorithms::kNames) {
    const bool found = Algorithms::with<true>(name, [&]<class Algorithm>() {
      EXPECT_TRUE(Algorithm::ReadOnlyTx::kTellsWhere) << name << ": derive it from ReadAccess<ReadOnlyTx, kBlame>";
      EXPECT_TRUE(Algorithm::UpdateTx::kTellsWhere && Algorithm::NestedTx::kTellsWhere) << name;
      EXPECT_TRUE(kBlames<Algorithm>) << name << ": the driver does not see a blame instantiation";
    });
    EXPECT_TRUE(found);
    Algorithms::with<false>(name, [&]<class Algorithm>() {
      EXPECT_FALSE(Algorithm::ReadOnlyTx::kTellsWhere || Algorithm::UpdateTx::kTellsWhere || kBlames<Algorithm>)
          << name;
    });
  }
}

TEST(ExplainTest, ABlameRunThatIsNotExplainedKeepsNothing) {
  LOAM_NEEDS_POINTS();
  explained_etl_wb(0, []<class Driver>() {
    tests::Interpose step("tm.committing", 0, [&] { Driver::update([&](auto& tx) { write_here(tx, 0); }); });
    Driver::update([&](auto& tx) { tx.write(word_at(512), read_here(tx, 0)); });
    EXPECT_TRUE(conflicts().empty());
    EXPECT_TRUE(footprints().empty());
  });
}

}  // namespace
}  // namespace loam::tm
