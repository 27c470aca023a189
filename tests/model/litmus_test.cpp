// Litmus tests: what may commit, and what an abort leaves behind.
#include "tests/model/litmus.hpp"

#include <string_view>

namespace loam::tm {
namespace {

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
      unsigned added = 0;
      Driver::update([&](auto& tx) {
        const Part seen = tx.read(part);
        if (attempts++ == 0)
          added = tests::commit_amid<Driver>(
              [&](auto& other) { other.write(part, static_cast<Part>(other.read(part) + 1)); });
        tx.write(part, static_cast<Part>(seen + 1));
      });
      EXPECT_EQ(added, readers_block_writers<typename Driver::Uses>() ? 0u : 1u);
      EXPECT_EQ(part, 1 + added) << sizeof(Part) << " bytes";
      EXPECT_EQ(attempts, static_cast<int>(1 + added));
    };
    lose(reinterpret_cast<std::uint8_t*>(words)[5]);
    lose(reinterpret_cast<std::uint16_t*>(words)[1]);
    lose(reinterpret_cast<std::uint32_t*>(words)[1]);
  });
}

TEST_P(LitmusTest, ANeighbourInAWordConflictsWhereRecordsGuardIt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    auto* const parts = reinterpret_cast<std::uint16_t*>(&x);
    using Uses = typename Driver::Uses;
    int attempts = 0;
    bool written = false;
    Driver::update([&](auto& tx) {
      const std::uint16_t seen = tx.read(parts[1]);
      if (attempts++ == 0)
        written = tests::commit_amid<Driver>([&](auto& other) { other.write(parts[2], std::uint16_t{7}); });
      tx.write(y, Word{seen});
      tx.write(parts[1], static_cast<std::uint16_t>(seen + 1));
    });
    EXPECT_NE(written, readers_block_writers<Uses>());
    EXPECT_EQ(attempts, uses_records<Uses>() && written ? 2 : 1);
    EXPECT_EQ(parts[1], 1u);
    EXPECT_EQ(parts[2], written ? 7u : 0u);
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

// One of two transactions that each read one word and write the other's: y = x + 1 and x = y + 1. Both from 0 is skew.
template <class Driver>
auto writes_from(Word& to, Word& from) {
  return [&to, &from](auto& tx) { tx.write(to, tx.read(from) + 1); };
}

TEST_P(LitmusTest, WriteSkewWithOneReadEachAgainstAFinishedCommit) {
  LOAM_NEEDS_POINTS();
  // The other commits behind the only read, or when all is written and only validation is left. The snapshot may be the
  // clock's of now, or older by commits that concern neither.
  for (const bool at_commit : {false, true})
    for (const int unrelated : {0, 1, 2})
      tests::in_variant(GetParam(), [&]<class Driver>() {
        bool committed = false;
        const auto other = [&] {
          std::thread([&] {
            for (int i = 0; i < unrelated; ++i)
              Driver::update([&](auto& tx) { tx.write(words[48], tx.read(words[48]) + 1); });
            committed = tests::attempt_update<Driver>(2, writes_from<Driver>(x, y));
          }).join();
        };
        tests::Interpose step("tm.committing", at_commit ? 0 : ~0u, other);
        int attempts = 0;
        Driver::update([&](auto& tx) {
          const Word seen = tx.read(x);
          if (attempts++ == 0 && !at_commit) other();
          tx.write(y, seen + 1);
        });
        const auto what = [&] {
          return testing::Message() << "at commit " << at_commit << ", unrelated " << unrelated;
        };
        // Who locks as it writes, or what it reads, keeps the other out; that one has given up then.
        EXPECT_EQ(x, committed ? 1u : 0u) << what();
        EXPECT_EQ(y, committed ? 2u : 1u) << what();
        EXPECT_EQ(attempts, committed ? 2 : 1) << what();
      });
}

TEST_P(LitmusTest, WriteSkewWithOneReadEachAgainstALockedRecord) {
  LOAM_NEEDS_POINTS();
  for (const std::string_view parked_at : {"tm.locked", "tm.committing", "tm.validated", "tm.written"}) {
    // Where readers keep writers out one of the two waits for the other, wherever that stands: once is enough.
    if (tests::readers_block_writers(GetParam()) && parked_at != "tm.locked") continue;
    tests::in_variant(GetParam(), [&]<class Driver>() {
      Gate parked, ended;
      std::thread other;
      int attempts = 0;
      tests::Interpose on_abort("tm.aborted", 0, [&] { ended.open(); });
      Driver::update([&](auto& tx) {
        const Word seen = tx.read(x);
        if (attempts++ == 0) {
          other = std::thread([&] {
            tests::Interpose step(parked_at, 0, [&] {
              parked.open();
              ended.wait();
            });
            Driver::update(writes_from<Driver>(x, y));
          });
          parked.wait();
        }
        tx.write(y, seen + 1);
      });
      ended.open();
      other.join();
      EXPECT_TRUE((x == 1 && y == 2) || (x == 2 && y == 1)) << parked_at << ": x is " << x << ", y is " << y;
    });
  }
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
    using Uses = typename Driver::Uses;
    if (readers_block_writers<Uses>()) return;  // nothing changes what was read, so no commit fails
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
    if (writes_in_place<Uses>()) {
      // Readers may have seen what was taken back: one new version, that no snapshot has reached.
      EXPECT_GT(after[0], version);
      EXPECT_FALSE(is_locked(after[0]));
      EXPECT_EQ(after, std::vector<std::uint64_t>(4, after[0]));
    } else {
      EXPECT_EQ(after, (std::vector<std::uint64_t>{0, 0, version, version}));
    }
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
    EXPECT_FALSE(is_locked(beside[0]));
    if (!writes_in_place<typename Driver::Uses>()) {
      EXPECT_EQ(beside[0], 0u);
    }
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
      for (const Word& word : words) EXPECT_EQ(shared.map.record(&word).load(), visible_reads::next_version(0));
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
