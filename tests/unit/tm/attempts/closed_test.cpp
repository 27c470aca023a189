// Parts of a transaction that can be taken back: closed(), cancel(), and conflicts inside of them.
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <thread>

namespace loam::tm {
namespace {

struct ClosedTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, ClosedTest,
                         testing::ValuesIn(tests::variants({"table", "small_table", "shadow", "small_table_blame"})),
                         tests::variant_name);

using tests::beside_x, tests::words, tests::x, tests::y, tests::z;

template <class Driver>
void add_one(Word& word) {
  std::thread([&] { Driver::update([&](auto& tx) { tx.write(word, tx.read(word) + 1); }); }).join();
}

TEST_P(ClosedTest, TheWritesOfACancelledPartVanishAndThoseAroundItStay) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      tx.write(x, Word{1});
      EXPECT_FALSE(Driver::closed([](auto& part) {
        EXPECT_EQ(part.read(x), 1u);
        part.write(x, Word{2});         // overwrites an older entry
        part.write(beside_x, Word{3});  // joins the stripe of an older entry
        part.write(y, Word{4});         // takes a stripe of its own
        EXPECT_EQ(part.read(x) + part.read(beside_x) + part.read(y), 9u);
        Driver::cancel();
      }));
      EXPECT_EQ(tx.read(x), 1u);
      EXPECT_EQ(tx.read(beside_x), 0u);
      EXPECT_EQ(tx.read(y), 0u);
      tx.write(z, Word{5});
    });
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(beside_x, 0u);
    EXPECT_EQ(y, 0u);
    EXPECT_EQ(z, 5u);
    EXPECT_EQ(statistics().commits, 1u);
    EXPECT_EQ(statistics().aborts_total(), 0u);
    add_one<Driver>(y);  // what the part had locked is free
    EXPECT_EQ(y, 1u);
  });
}

TEST_P(ClosedTest, APartThatIsKeptIsAsIfItWereWrittenOut) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      tx.write(x, Word{1});
      EXPECT_TRUE(Driver::closed([](auto& part) {
        part.write(x, part.read(x) + 1);
        part.write(y, Word{7});
      }));
      EXPECT_EQ(tx.read(x), 2u);
      EXPECT_EQ(tx.read(y), 7u);
      if (!writes_in_place<typename Driver::Uses>()) {
        EXPECT_EQ(x, 0u) << "the end of a part is no commit";
      }
      Word seen = 0;
      std::thread([&] {
        tests::attempt_update<Driver>(2, [&](auto& other) { seen += other.read(x) + other.read(y); });
      }).join();
      EXPECT_EQ(seen, 0u) << "somebody else has read what is not committed";
    });
    EXPECT_EQ(x, 2u);
    EXPECT_EQ(y, 7u);
  });
}

TEST_P(ClosedTest, PartsInPartsAreTakenBackByThemselvesOrWithWhatIsAround) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      tx.write(x, Word{1});
      // The outer part stays, the inner one goes.
      EXPECT_TRUE(Driver::closed([](auto& outer) {
        outer.write(x, Word{2});
        EXPECT_FALSE(Driver::closed([](auto& inner) {
          inner.write(x, Word{3});
          inner.write(y, Word{3});
          Driver::cancel();
        }));
        EXPECT_EQ(outer.read(x), 2u);
        EXPECT_EQ(outer.read(y), 0u);
      }));
      EXPECT_EQ(tx.read(x), 2u);
      // The inner part stays, and goes with the outer one.
      EXPECT_FALSE(Driver::closed([](auto& outer) {
        outer.write(x, Word{4});
        EXPECT_TRUE(Driver::closed([](auto& inner) {
          inner.write(x, Word{5});
          inner.write(y, Word{5});
        }));
        EXPECT_EQ(outer.read(x), 5u);
        Driver::cancel();
      }));
      EXPECT_EQ(tx.read(x), 2u);
      EXPECT_EQ(tx.read(y), 0u);
    });
    EXPECT_EQ(x, 2u);
    EXPECT_EQ(y, 0u);
  });
}

TEST_P(ClosedTest, BytesOfAWordComeBackOneByOne) {
  tests::in_variant(GetParam(), []<class Driver>() {
    alignas(8) static std::uint8_t bytes[8] = {10, 11, 12, 13, 14, 15, 16, 17};
    Driver::update([](auto& tx) {
      tx.write(bytes[1], std::uint8_t{21});
      Driver::closed([](auto& part) {
        part.write(bytes[1], std::uint8_t{31});
        part.write(bytes[2], std::uint8_t{32});
        Driver::cancel();
      });
      EXPECT_EQ(tx.read(bytes[1]), 21);
      EXPECT_EQ(tx.read(bytes[2]), 12);
    });
    EXPECT_EQ(bytes[1], 21);
    EXPECT_EQ(bytes[2], 12);
    EXPECT_EQ(bytes[3], 13);
  });
}

TEST_P(ClosedTest, AnExceptionTakesBackThePartThatItLeaves) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      tx.write(x, Word{1});
      try {
        Driver::closed([](auto& outer) {
          outer.write(x, Word{2});
          Driver::closed([](auto& inner) {
            inner.write(y, Word{2});
            throw std::runtime_error("through two parts");
          });
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "through two parts");
      }
      EXPECT_EQ(tx.read(x), 1u);
      EXPECT_EQ(tx.read(y), 0u);
      // Caught inside, it takes back nothing.
      EXPECT_TRUE(Driver::closed([](auto& part) {
        try {
          part.write(y, Word{3});
          throw 5;
        } catch (int) {
        }
      }));
    });
    EXPECT_EQ(x, 1u);
    EXPECT_EQ(y, 3u);
  });
}

TEST_P(ClosedTest, MemoryFollowsThePart) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static Word* old = nullptr;
    old = nullptr;
    Driver::update([](auto& tx) { tx.write(old, tx.template create<Word>(5u)); });
    Driver::update([](auto& tx) {
      Word* const own = tx.template create<Word>(6u);
      Driver::closed([](auto& part) {
        part.template create<Word>(7u);
        part.template create<Word>(8u);
        part.destroy(part.read(old));
        Driver::cancel();
      });
      // Who has no records compares values, also those that the part has read: its blocks stay until the attempt ends.
      EXPECT_EQ(statistics().blocks_freed, uses_records<typename Driver::Uses>() ? 2u : 0u)
          << "the part's own blocks, and they alone";
      tx.destroy(own);
      Driver::closed([](auto& part) { part.write(old, part.template create<Word>(part.read(*old) + 1)); });
    });
    EXPECT_EQ(*old, 6u);
    quiesce();
    EXPECT_EQ(statistics().blocks_allocated, 5u);
    EXPECT_EQ(statistics().blocks_freed, 3u);
  });
}

TEST_P(ClosedTest, HandlersFollowThePart) {
  tests::in_variant(GetParam(), []<class Driver>() {
    static int calls;
    calls = 0;
    Driver::update([](auto& tx) {
      tx.on_commit([] { calls += 1; });
      Driver::closed([](auto& part) {
        part.on_commit([] { calls += 10; });
        Driver::cancel();
      });
      Driver::closed([](auto& part) { part.on_commit([] { calls += 100; }); });
    });
    EXPECT_EQ(calls, 101);
  });
}

// ---- conflicts

TEST_P(ClosedTest, AConflictWithinAPartRestartsThePartAlone) {
  if (tests::readers_block_writers(GetParam())) LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0, parts = 0;
    // Where nobody can change what the part has read, it meets somebody who is writing that.
    constexpr bool kBefore = readers_block_writers<typename Driver::Uses>();
    std::optional<tests::ChangesOnce<Driver>> change;
    if (kBefore) change.emplace(y, Word{1});
    Driver::update([&](auto& tx) {
      ++attempts;
      const Word first = tx.read(x);
      tx.write(z, first + 1);
      Driver::closed([&](auto& part) {
        const bool disturb = parts++ == 0 && !kBefore;
        const Word before = part.read(y);
        // y changes under the part: what it has read cannot be extended to the next read.
        if (disturb) {
          add_one<Driver>(y);
          add_one<Driver>(words[48]);
        }
        part.read(words[48]);
        part.write(y, before + 10);
      });
    });
    EXPECT_EQ(y, 11u);
    EXPECT_EQ(z, 1u);
    EXPECT_EQ(parts, 2);
    if (Driver::kResumesParts) {
      EXPECT_EQ(attempts, 1);
      EXPECT_EQ(statistics().aborts_total(), 0u);
    }
  });
}

TEST_P(ClosedTest, AConflictWithWhatWasReadBeforeRestartsAll) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0, parts = 0, torn = 0;
    bool changed = false;
    Driver::update([&](auto& tx) {
      ++attempts;
      const Word first = tx.read(x);
      Driver::closed([&](auto& part) {
        if (parts++ == 0)
          changed = tests::commit_amid<Driver>([](auto& other) {
            other.write(x, Word{1});
            other.write(y, Word{1});
          });
        torn += first != part.read(y);
        part.write(z, first + 1);
      });
    });
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(changed, !readers_block_writers<typename Driver::Uses>());
    EXPECT_EQ(attempts, changed ? 2 : 1);
    EXPECT_EQ(z, changed ? 2u : 1u);
  });
}

TEST_P(ClosedTest, AConflictInAnInnerPartWithTheOuterPartsReadsRestartsTheOuterPart) {
  tests::in_variant(GetParam(), []<class Driver>() {
    int attempts = 0, outer_parts = 0, torn = 0;
    bool changed = false;
    Driver::update([&](auto& tx) {
      ++attempts;
      tx.read(z);
      Driver::closed([&](auto& outer) {
        const Word first = outer.read(x);
        const bool disturb = outer_parts++ == 0;
        Driver::closed([&](auto& inner) {
          if (disturb)
            changed = tests::commit_amid<Driver>([](auto& other) {
              other.write(x, Word{1});
              other.write(y, Word{1});
            });
          torn += first != inner.read(y);
        });
        outer.write(words[48], first);
      });
    });
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(changed, !readers_block_writers<typename Driver::Uses>());
    EXPECT_EQ(outer_parts, changed ? 2 : 1);
    EXPECT_EQ(words[48], changed ? 1u : 0u);
    if (Driver::kResumesParts) {
      EXPECT_EQ(attempts, 1);
    }
  });
}

TEST_P(ClosedTest, PartsThatCannotGoOnEndTheAttempt) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(GetParam(), []<class Driver>() {
    // The other one's part needs what this one holds until it commits, and this one is stopped until the other has
    // given up. If parts restarted for ever, it never would.
    int inner_ended = 0;
    tests::Interpose step("tm.committing", 0, [&] {
      tests::attempt_update<Driver>(3, [](auto& tx) {
        tx.write(words[48], Word{1});
        Driver::closed([](auto& part) { part.write(x, Word{1}); });
      });
      ++inner_ended;
    });
    Driver::update([](auto& tx) {
      tx.write(x, Word{2});
      Driver::closed([](auto& part) { part.write(y, Word{2}); });
    });
    EXPECT_EQ(inner_ended, 1);
    EXPECT_EQ(x, 2u);
    EXPECT_EQ(y, 2u);
  });
}

// ---- the whole transaction

TEST_P(ClosedTest, CancelOutsideOfPartsTakesBackTheTransaction) {
  tests::in_variant(GetParam(), []<class Driver>() {
    EXPECT_THROW(Driver::update([](auto& tx) {
                   tx.write(x, Word{1});
                   try {
                     Driver::update([](auto& inner) {
                       inner.write(y, Word{1});
                       Driver::cancel();
                     });
                   } catch (...) {
                     ADD_FAILURE() << "cancel() is not an exception inside the body";
                   }
                 }),
                 Cancelled);
    EXPECT_THROW(Driver::template update<OnThrow::commit>([](auto& tx) {
                   tx.write(x, Word{1});
                   Driver::cancel();
                 }),
                 Cancelled);
    EXPECT_THROW(Driver::read_only([](auto& tx) {
                   tx.read(x);
                   Driver::cancel();
                 }),
                 Cancelled);
    EXPECT_EQ(x, 0u);
    EXPECT_EQ(y, 0u);
    EXPECT_EQ(statistics().commits, 0u);
    EXPECT_EQ(statistics().aborts[static_cast<std::size_t>(AbortCause::explicit_)], 3u);
    add_one<Driver>(x);
    EXPECT_EQ(x, 1u);
  });
}

TEST_P(ClosedTest, APartInAReadOnlyTransactionTurnsItIntoAnUpdate) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::read_only([](auto& tx) {
      const Word before = tx.read(x);
      Driver::closed([&](auto& part) { part.write(x, before + 1); });
    });
    EXPECT_EQ(x, 1u);
  });
}

}  // namespace
}  // namespace loam::tm
