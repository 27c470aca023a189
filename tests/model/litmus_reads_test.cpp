// Litmus tests: what a read may return.
#include "tests/model/litmus.hpp"

namespace loam::tm {
namespace {

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
      bool written = false;
      x = 0;
      tests::Interpose step("tm.reading", 0, [&] {
        written = tests::commit_amid<Driver>(
            [&](auto& tx) { in_part ? tx.write(part, std::uint16_t{1}) : tx.write(x, Word{1}); });
      });
      Driver::update([&](auto& tx) {
        if (in_part)
          tx.write(part, static_cast<std::uint16_t>(tx.read(part) + 1));
        else
          tx.write(x, tx.read(x) + 1);
      });
      EXPECT_TRUE(step.reached());
      EXPECT_NE(written, readers_block_writers<typename Driver::Uses>());
      EXPECT_EQ(in_part ? part : x, written ? 2u : 1u) << "lost update" << (in_part ? " of a part" : "");
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
    // Both words lie in one granule. Behind the first and the second of two writes nothing is released yet; of words
    // that were stored in place long before, the first release is that of both.
    for (const unsigned behind : {0U, 1U}) {
      if (behind == 1 && writes_in_place<typename Driver::Uses>()) break;
      bool came_between = false;
      tests::Interpose step("tm.written", behind, [&] {
        came_between = tests::attempt_update<Driver>(2, [](auto& tx) { tx.write(words[1], tx.read(x)); });
      });
      Driver::update([&](auto& tx) {
        tx.write(x, Word{1});
        tx.write(words[1], Word{2});
      });
      EXPECT_TRUE(behind == 1 || step.reached());
      EXPECT_FALSE(came_between);
      EXPECT_EQ(x, 1u);
      EXPECT_EQ(words[1], 2u);
    }
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

}  // namespace
}  // namespace loam::tm
