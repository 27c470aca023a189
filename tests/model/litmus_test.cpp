// Litmus tests of the transactional memory: one dangerous interleaving each, forced at test points, in every variant.
//   Names are the anomalies'. x, y, z lie on different records; a pair (x, y) is only ever written together.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

struct LitmusTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, LitmusTest, testing::ValuesIn(tests::variants()), tests::variant_name);

// In one array, so that no two share a record of the small table.
alignas(1024) Word words[64];
Word& x = words[0];
Word& y = words[16];
Word& z = words[32];

// Another thread's transaction, from begin to end. returns whether it committed: always, unless this thread stands in
// an attempt that keeps writers from what it has read
template <class Driver>
bool commit_pair(Word value) {
  return tests::commit_amid<Driver>([&](auto& tx) {
    tx.write(x, value);
    tx.write(y, value);
  });
}

template <class Driver>
bool add_one(Word& word) {
  return tests::commit_amid<Driver>([&](auto& tx) { tx.write(word, tx.read(word) + 1); });
}

// A door that one thread waits at and another opens; after a while it opens by itself, because with a correct runtime
// the one who should open it may have been aborted before.
class Gate {
 public:
  void open() {
    open_.store(1, std::memory_order_release);
    platform::futex_wake(open_, 16);
  }
  void wait() const {
    const auto deadline = platform::monotonic_ns() + 200'000'000;
    while (open_.load(std::memory_order_acquire) == 0 && platform::monotonic_ns() < deadline)
      platform::futex_wait(open_, 0, 10'000'000);
  }

 private:
  std::atomic<std::uint32_t> open_{0};
};

// ---- what a read may return

TEST_P(LitmusTest, TornPairBetweenARecordsTwoLooks) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // The pair changes after the second read has looked at its record and before it loads the value.
    for (const bool logged : {false, true}) {
      const Word before = x;
      tests::Interpose step("tm.reading", 1, [&] { commit_pair<Driver>(before + 1); });
      int torn = 0;
      const auto body = [&](auto& tx) {
        const Word first = tx.read(x);
        torn += first != tx.read(y);
      };
      logged ? Driver::update(body) : Driver::read_only(body);
      EXPECT_TRUE(step.reached());
      EXPECT_EQ(torn, 0) << (logged ? "logged" : "read-only");
    }
  });
}

TEST_P(LitmusTest, ZombieAttemptSeesThePairAtTwoTimes) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool logged : {false, true}) {
      const Word before = x;
      int attempts = 0, torn = 0;
      bool changed = false;
      const auto body = [&](auto& tx) {
        const Word first = tx.read(x);
        if (attempts++ == 0) changed = commit_pair<Driver>(before + 1);
        torn += first != tx.read(y);
      };
      logged ? Driver::update(body) : Driver::read_only(body);
      EXPECT_EQ(changed, !readers_block_writers<typename Driver::Uses>());
      EXPECT_EQ(attempts, changed ? 2 : 1);
      EXPECT_EQ(torn, 0) << (logged ? "logged" : "read-only");
    }
  });
}

TEST_P(LitmusTest, ZombieAfterACommitOfItsOwn) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // An update attempt begins with the snapshot of the thread's last commit: not one commit later.
    Driver::update([](auto& tx) { tx.write(z, Word{1}); });
    int attempts = 0, torn = 0;
    bool changed = false;
    Driver::update([&](auto& tx) {
      const Word first = tx.read(x);
      if (attempts++ == 0) changed = commit_pair<Driver>(1);
      torn += first != tx.read(y);
    });
    EXPECT_EQ(attempts, changed ? 2 : 1);
    EXPECT_EQ(torn, 0);
  });
}

TEST_P(LitmusTest, AnAttemptSeesWhatWasCommittedSinceTheThreadsLast) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) { tx.write(z, Word{1}); });
    commit_pair<Driver>(5);
    int attempts = 0;
    Driver::update([&](auto& tx) {
      ++attempts;
      EXPECT_EQ(tx.read(z), 1u);
      EXPECT_EQ(tx.read(x), 5u);
      tx.write(y, tx.read(y) + 1);
    });
    EXPECT_EQ(attempts, 1);
    EXPECT_EQ(y, 6u);
  });
}

TEST_P(LitmusTest, ZombieThatOnlyWritesTheSecondWord) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // As above, but the snapshot is extended by a write.
    int attempts = 0, torn = 0;
    bool changed = false;
    Driver::update([&](auto& tx) {
      const Word first = tx.read(x);
      if (attempts++ == 0) changed = commit_pair<Driver>(1);
      tx.write(y, first + 10);
      torn += first != tx.read(x);
    });
    EXPECT_EQ(attempts, changed ? 2 : 1);
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(y, changed ? 11u : 10u);
  });
}

TEST_P(LitmusTest, ExtendRaceWithACommitDuringValidation) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // z is newer than the snapshot: its read extends. While it does, the pair changes.
    tests::Interpose step("tm.extending", 0, [] { commit_pair<Driver>(1); });
    int attempts = 0, torn = 0;
    Driver::update([&](auto& tx) {
      const Word first = tx.read(x);
      if (attempts++ == 0) add_one<Driver>(z);
      tx.read(z);
      torn += first != tx.read(y);
    });
    // Who holds what it reads has nothing to extend.
    EXPECT_EQ(step.reached(), extends<typename Driver::Uses>() && !readers_block_writers<typename Driver::Uses>());
    EXPECT_EQ(torn, 0);
  });
}

TEST_P(LitmusTest, ExtendRaceBetweenValidationAndTheValue) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // y is newer than the snapshot; after its read has extended, and before it loads the value, the pair changes again.
    int attempts = 0, torn = 0;
    tests::Interpose step("tm.reading", 1, [] { commit_pair<Driver>(7); });
    Driver::update([&](auto& tx) {
      const Word first = tx.read(x);
      if (attempts++ == 0) {
        // Writes y alone: the pair is (0, 0) for x == 0, also when y was touched and put back.
        std::thread([] { Driver::update([](auto& other) { other.write(y, Word{0}); }); }).join();
      }
      torn += first != tx.read(y);
    });
    EXPECT_TRUE(step.reached());
    EXPECT_EQ(torn, 0);
  });
}

TEST_P(LitmusTest, AValueIsAsNewAsTheSnapshotThatItIsTakenFor) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // x changes while it is read, before it is in the read set: extending finds nothing to object to, and the value
    // that was loaded before must not be taken for one of the new time.
    for (const bool in_part : {false, true}) {
      auto& part = reinterpret_cast<std::uint16_t*>(&x)[1];
      x = 0;
      tests::Interpose step("tm.reading", 0, [&] {
        Driver::update([&](auto& tx) { in_part ? tx.write(part, std::uint16_t{1}) : tx.write(x, Word{1}); });
      });
      Driver::update([&](auto& tx) {
        if (in_part)
          tx.write(part, static_cast<std::uint16_t>(tx.read(part) + 1));
        else
          tx.write(x, tx.read(x) + 1);
      });
      EXPECT_TRUE(step.reached());
      EXPECT_EQ(in_part ? part : x, 2u) << "lost update" << (in_part ? " of a part" : "");
    }
  });
}

TEST_P(LitmusTest, DirtyReadAcrossACancel) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    tests::Interpose step("tm.reading", 0, [] {
      struct Cancel {};
      try {
        tests::attempt_update<Driver>(3, [](auto& tx) {
          tx.write(x, Word{99});
          throw Cancel{};
        });
      } catch (const Cancel&) {
      }
    });
    Word seen = 1;
    Driver::read_only([&](auto& tx) { seen = tx.read(x); });
    EXPECT_TRUE(step.reached());
    EXPECT_EQ(seen, 0u);
    EXPECT_EQ(x, 0u);
  });
}

TEST_P(LitmusTest, DirtyReadOfAnAttemptThatIsCancelled) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // The reader stands between value and record while the other one writes, and goes on when that has been cancelled.
    for (const bool logged : {false, true}) {
      struct Cancel {};
      Gate parked, cancelled;
      Word seen = 0;
      std::thread reader;
      try {
        Driver::update([&](auto& tx) {
          tx.write(x, Word{99});
          reader = std::thread([&] {
            tests::Interpose step("tm.reading", 0, [&] {
              parked.open();
              cancelled.wait();
            });
            const auto look = [&](auto& mine) { seen = mine.read(x); };
            if (logged)
              tests::attempt_update<Driver>(3, look);
            else
              Driver::read_only(look);
          });
          parked.wait();
          throw Cancel{};
        });
      } catch (const Cancel&) {
      }
      cancelled.open();
      reader.join();
      EXPECT_EQ(seen, 0u) << (logged ? "logged" : "read-only");
      EXPECT_EQ(x, 0u);
    }
  });
}

TEST_P(LitmusTest, AReaderMeetsTheThreadsOwnLastCommit) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // With a clock that commits do not advance, nobody else would.
    for (const bool logged : {false, true})
      for (Word value = 1; value < 4; ++value) {
        Driver::update([&](auto& tx) {
          tx.write(x, value);
          tx.write(y, value);
        });
        int attempts = 0;
        Word seen = 0;
        const auto body = [&](auto& tx) {
          if (++attempts > 10) std::abort();  // it would go on for ever
          seen = tx.read(x) + tx.read(y);
        };
        logged ? Driver::update(body) : Driver::read_only(body);
        EXPECT_EQ(seen, 2 * value);
        EXPECT_LE(attempts, 2);
      }
  });
}

TEST_P(LitmusTest, NothingIsReadBetweenWriteBackAndRelease) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Who comes between the write-back and the release of a commit must find the records locked: else it adds to a
    // value that is not there yet, or is overwritten.
    for (const char* point : {"tm.validated", "tm.written"}) {
      const Word before = x;
      bool came_between = true;
      tests::Interpose step(point, 0, [&] {
        came_between = tests::attempt_update<Driver>(2, [](auto& tx) { tx.write(x, tx.read(x) + 1); });
      });
      Driver::update([&](auto& tx) { tx.write(x, tx.read(x) + 1); });
      EXPECT_TRUE(step.reached());
      EXPECT_FALSE(came_between) << point;
      EXPECT_EQ(x, before + 1 + came_between) << "lost update at " << point;
    }
  });
}

TEST_P(LitmusTest, TwoWordsOfARecordAreReleasedTogether) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Both words lie in one granule. Behind the second of two writes nothing is released yet.
    bool came_between = true;
    tests::Interpose step("tm.written", uses_records<typename Driver::Uses>() ? 1 : 0, [&] {
      came_between = tests::attempt_update<Driver>(2, [](auto& tx) { tx.write(words[1], tx.read(x)); });
    });
    Driver::update([&](auto& tx) {
      tx.write(x, Word{1});
      tx.write(words[1], Word{2});
    });
    EXPECT_TRUE(step.reached());
    EXPECT_FALSE(came_between);
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(words[1], 2u);
  });
}

#ifndef LOAM_TSAN  // by the letter a race: the word is read as a whole, the neighbour's bytes are dropped
TEST_P(LitmusTest, APlainNeighbourInAWordKeepsWhatIsWrittenDuringACommit) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    alignas(8) static std::uint8_t bytes[8] = {};
    for (const char* point : {"tm.locked", "tm.validated"}) {
      bytes[1] = 0;
      tests::Interpose step(point, 0, [] { bytes[1] = 77; });
      Driver::update([](auto& tx) { tx.write(bytes[0], static_cast<std::uint8_t>(tx.read(bytes[0]) + 1)); });
      EXPECT_TRUE(step.reached());
      EXPECT_EQ(bytes[1], 77) << point;
    }
    EXPECT_EQ(bytes[0], 2);
  });
}
#endif

// ---- what may commit

TEST_P(LitmusTest, LostUpdateByAWriteAfterAnOldRead) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0;
    Word added = 0;
    Driver::update([&](auto& tx) {
      const Word seen = tx.read(x);
      if (attempts++ == 0) added = add_one<Driver>(x);
      tx.write(x, seen + 1);
    });
    EXPECT_EQ(x, 1 + added);
    EXPECT_EQ(added == 1, !readers_block_writers<typename Driver::Uses>());
  });
}

TEST_P(LitmusTest, LostUpdateOfAPartOfAWord) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // Fields of one, two and four bytes that another transaction changes after they were read.
    const auto lose = []<class Part>(Part& part) {
      part = 0;
      int attempts = 0;
      Driver::update([&](auto& tx) {
        const Part seen = tx.read(part);
        if (attempts++ == 0)
          std::thread([&] {
            Driver::update([&](auto& other) { other.write(part, static_cast<Part>(other.read(part) + 1)); });
          }).join();
        tx.write(part, static_cast<Part>(seen + 1));
      });
      EXPECT_EQ(part, 2u) << sizeof(Part) << " bytes";
      EXPECT_EQ(attempts, 2);
    };
    lose(reinterpret_cast<std::uint8_t*>(words)[5]);
    lose(reinterpret_cast<std::uint16_t*>(words)[1]);
    lose(reinterpret_cast<std::uint32_t*>(words)[1]);
  });
}

TEST_P(LitmusTest, ANeighbourInAWordConflictsWhereRecordsGuardIt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    auto* const parts = reinterpret_cast<std::uint16_t*>(&x);
    int attempts = 0;
    Driver::update([&](auto& tx) {
      const std::uint16_t seen = tx.read(parts[1]);
      if (attempts++ == 0)
        std::thread([&] { Driver::update([&](auto& other) { other.write(parts[2], std::uint16_t{7}); }); }).join();
      tx.write(y, Word{seen});
      tx.write(parts[1], static_cast<std::uint16_t>(seen + 1));
    });
    EXPECT_EQ(attempts, uses_records<typename Driver::Uses>() ? 2 : 1);
    EXPECT_EQ(parts[1], 1u);
    EXPECT_EQ(parts[2], 7u);
  });
}

TEST_P(LitmusTest, LostUpdateOfANeighbourOnTheRecord) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Word& beside = words[1];  // same granule, same stripe
    int attempts = 0;
    Word added = 0;
    Driver::update([&](auto& tx) {
      const Word seen = tx.read(beside);
      if (attempts++ == 0) added = add_one<Driver>(beside);
      tx.write(x, Word{1});  // locks the record that also guards what was read
      tx.write(beside, seen + 1);
    });
    EXPECT_EQ(beside, 1 + added);
  });
}

TEST_P(LitmusTest, WriteSkewAgainstAFinishedCommit) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // Each may take one from its own word while both words together hold two. The other's commit is the first after the
    // snapshot.
    x = y = 1;
    Driver::update([](auto& tx) { tx.write(z, Word{1}); });
    int attempts = 0;
    Driver::update([&](auto& tx) {
      const Word sum = tx.read(x) + tx.read(y);
      if (attempts++ == 0)
        tests::commit_amid<Driver>([](auto& other) {
          if (other.read(x) + other.read(y) == 2) other.write(y, Word{0});
        });
      if (sum == 2) tx.write(x, Word{0});
    });
    EXPECT_EQ(x + y, 1u);
  });
}

TEST_P(LitmusTest, WriteSkewAgainstALockedRecord) {
  LOAM_NEEDS_POINTS();
  for (const char* parked_at : {"tm.locked", "tm.committing", "tm.validated"})
    tests::in_variant(GetParam(), [&]<class Driver>() {
      // As above, but the other one stands in the middle of its commit while this one commits.
      x = y = 1;
      Gate parked, ended;
      std::thread other;
      int attempts = 0;
      tests::Interpose on_abort("tm.aborted", 0, [&] { ended.open(); });
      Driver::update([&](auto& tx) {
        const Word sum = tx.read(x) + tx.read(y);
        if (attempts++ == 0) {
          other = std::thread([&] {
            tests::Interpose step(parked_at, 0, [&] {
              parked.open();
              ended.wait();
            });
            Driver::update([](auto& mine) {
              if (mine.read(x) + mine.read(y) == 2) mine.write(y, Word{0});
            });
          });
          parked.wait();
        }
        if (sum == 2) tx.write(x, Word{0});
      });
      ended.open();
      other.join();
      EXPECT_EQ(x + y, 1u) << parked_at;
    });
}

TEST_P(LitmusTest, AReadOnlyTransactionOfTwoSeesOneOrder) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // The log-less reader must not be told x before one commit and z after a later one.
    int attempts = 0;
    bool wrong = false;
    Driver::read_only([&](auto& tx) {
      const Word first = tx.read(x);
      if (attempts++ == 0 && add_one<Driver>(x)) add_one<Driver>(z);
      wrong |= first == 0 && tx.read(z) == 1;
    });
    EXPECT_FALSE(wrong);
  });
}

// ---- what an abort leaves behind

TEST_P(LitmusTest, AnAbortReleasesEveryRecordAndPutsTheMemoryBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    struct Cancel {};
    add_one<Driver>(x);
    const std::uint64_t version = shared.map.record(&x).load();
    EXPECT_THROW(Driver::update([](auto& tx) {
                   for (Word& word : words) tx.write(word, Word{5});
                   throw Cancel{};
                 }),
                 Cancel);
    // At its old version, if the memory was never touched, or else at a new one.
    EXPECT_GE(shared.map.record(&x).load(), version);
    for (const Word& word : words) EXPECT_FALSE(is_locked(shared.map.record(&word).load()));
    for (const Word& word : words) EXPECT_EQ(word, &word == &x ? 1u : 0u);
    bool others_can = false;
    std::thread([&] {
      others_can = tests::attempt_update<Driver>(3, [](auto& tx) {
        for (Word& word : words) tx.write(word, tx.read(word) + 1);
      });
    }).join();
    EXPECT_TRUE(others_can);
  });
}

TEST_P(LitmusTest, AFailedCommitReleasesEveryRecordAtItsOldVersion) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // Validation fails with all records of the write set locked.
    add_one<Driver>(words[48]);
    const std::uint64_t version = shared.map.record(&words[48]).load();
    std::vector<std::uint64_t> after;
    tests::Interpose change("tm.committing", 0, [] { add_one<Driver>(z); });
    tests::Interpose look("tm.aborted", 0, [&] {
      for (const Word* word : {&x, &y, &words[48], &words[49]}) after.push_back(shared.map.record(word).load());
    });
    Driver::update([](auto& tx) {
      tx.read(z);
      for (Word* word : {&x, &words[48], &words[49], &y}) tx.write(*word, tx.read(*word) + 1);
    });
    EXPECT_TRUE(change.reached());
    EXPECT_TRUE(look.reached());
    EXPECT_EQ(after, (std::vector<std::uint64_t>{0, 0, version, version}));
    EXPECT_EQ(words[48], 2u);
    EXPECT_EQ(words[49], 1u);
  });
}

TEST_P(LitmusTest, WhoMeetsALockReleasesItsOwnAlone) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // One has locked y, for good or in its commit; the other gets x, not y, and never comes to z.
    std::uint64_t before = 1, during = 0, beside[2] = {1, 1};
    add_one<Driver>(z);
    const std::uint64_t version = shared.map.record(&z).load();
    bool committed = true;
    tests::Interpose step("tm.validated", 0, [&] {
      before = shared.map.record(&y).load();
      committed = tests::attempt_update<Driver>(1, [](auto& tx) {
        tx.write(x, Word{9});
        tx.write(y, Word{9});
        tx.write(z, Word{9});
      });
      during = shared.map.record(&y).load();
      beside[0] = shared.map.record(&x).load();
      beside[1] = shared.map.record(&z).load();
    });
    Driver::update([](auto& tx) { tx.write(y, Word{1}); });
    EXPECT_TRUE(step.reached());
    EXPECT_FALSE(committed);
    EXPECT_EQ(is_locked(before), uses_records<typename Driver::Uses>());
    EXPECT_EQ(during, before);
    EXPECT_EQ(beside[0], 0u);
    EXPECT_EQ(beside[1], version);
    EXPECT_EQ(x, 0u);
    EXPECT_EQ(y, 1u);
    EXPECT_EQ(z, 1u);
  });
}

TEST_P(LitmusTest, ACommitRaisesEachRecordItWrote) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // To one version, later than every snapshot before it, and not beyond the next.
    const std::uint64_t clock = version_clock.now.load();
    Driver::update([](auto& tx) {
      for (Word& word : words) tx.write(word, Word{5});
    });
    if constexpr (readers_block_writers<typename Driver::Uses>()) {
      // No clock: a record counts the commits that wrote it.
      EXPECT_EQ(version_clock.now.load(), clock);
      for (const Word& word : words) EXPECT_EQ(shared.map.record(&word).load(), 1u);
      return;
    }
    if (!uses_records<typename Driver::Uses>()) {
      EXPECT_EQ(version_clock.now.load(), clock);
      for (const Word& word : words) EXPECT_EQ(shared.map.record(&word).load(), 0u);
      return;
    }
    EXPECT_LE(version_clock.now.load(), clock + 1);
    for (const Word& word : words) EXPECT_EQ(shared.map.record(&word).load(), clock + 1);
  });
}

}  // namespace
}  // namespace loam::tm
