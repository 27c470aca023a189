// How two-phase shows reads: by a byte, or by a bit where the record is marked; what takes the mark away; and that
// whatever shows a read is let go of.
// This one alone, in every build.
#undef LOAM_TEST_ALGORITHMS
#define LOAM_TEST_ALGORITHMS tm::TwoPhase
#include "runtime/tm/records/tuning.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"
#include "tests/harness/words.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace loam::tm {
namespace {

using Txs = Driver<TwoPhase<false>>;
using visible_reads::is_marked, visible_reads::Shown;

alignas(4096) Word cells[512];
Word& x = cells[0];
Word& y = cells[64];

struct Cancel {};

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) platform::yield();
}

Orec& record_of(const Word& word) { return shared.map.record(&word); }
std::uint64_t stripe_of(const Word& word) { return static_cast<std::uint64_t>(&record_of(word) - shared.map.base); }
const Shown& own() { return Descriptor::current().state<two_phase::State>().shown; }
bool has_byte(const Word& word) { return own().place.of(stripe_of(word)) != 0; }
bool has_bit(const Word& word) { return own().has_bit(stripe_of(word)); }
bool shows_nothing(const Word& word) { return !has_byte(word) && !has_bit(word); }
void mark(const Word& word) { visible_reads::mark(record_of(word), record_of(word)); }

template <class Body>
void with_threads(Body&& body, unsigned groups = read_bytes::kGroups, unsigned places = read_bytes::kPlaces) {
  tests::in_child([&] {
    configure(tests::patient({}));
    read_bytes::limit(groups, places);
    Txs::read_only([](auto& tx) { tx.read(cells[128]); });  // maps the records; this thread has the first place
    body();
  });
}

// A thread that has read a word and stands still until it is destroyed.
class Reader {
 public:
  explicit Reader(Word& word)
      : thread_([this, &word] {
          Txs::read_only([&](auto& tx) {
            value = tx.read(word);
            by_byte = has_byte(word), by_bit = has_bit(word);
            reads_ = true;
            wait_until(goes_);
          });
        }) {
    wait_until(reads_);
  }
  ~Reader() { end(); }
  void end() {
    goes_ = true;
    if (thread_.joinable()) thread_.join();
  }

  Word value = 0;
  bool by_byte = false, by_bit = false;

 private:
  std::atomic<bool> reads_{false}, goes_{false};
  std::thread thread_;
};

void write(Word& word) {
  static Word value = 0;
  Txs::update([&](auto& tx) { tx.write(word, ++value); });
}

// Writes where a reader stands. returns whether it had to wait until the reader had ended
bool finds(Reader& reader, Word& word) {
  tests::Interpose waits("tm.waiting", 0, [&] { reader.end(); });
  write(word);
  return waits.reached();
}

TEST(VisibleReadsTest, AReadIsShownByAByteUntilTheAttemptEnds) {
  with_threads([] {
    Txs::read_only([](auto& tx) {
      tx.read(x);
      EXPECT_TRUE(has_byte(x));
      EXPECT_FALSE(has_bit(x));
      EXPECT_TRUE(shows_nothing(y));
    });
    EXPECT_TRUE(shows_nothing(x));
    try {
      Txs::update([](auto& tx) {
        tx.read(x);
        throw Cancel{};
      });
    } catch (const Cancel&) {
    }
    EXPECT_TRUE(shows_nothing(x));
    EXPECT_FALSE(is_marked(record_of(x))) << "nobody else has read it";
  });
}

TEST(VisibleReadsTest, TheSecondReaderOfAGroupMarksAndTheThirdSetsItsBit) {
  with_threads([] {
    Reader first(x);
    EXPECT_TRUE(first.by_byte);
    EXPECT_FALSE(is_marked(record_of(x)));
    const std::uint64_t version = record_of(x);
    {
      Reader second(x);
      EXPECT_TRUE(second.by_byte);
      EXPECT_EQ(record_of(x), version | visible_reads::kMark);
      Reader third(x);
      EXPECT_FALSE(third.by_byte);
      EXPECT_TRUE(third.by_bit);
    }
    first.end();
    Txs::read_only([](auto& tx) {
      for (int i = 0; i < 3; ++i) tx.read(x);
      EXPECT_TRUE(has_bit(x));
      const Descriptor& d = Descriptor::current();
      EXPECT_EQ(d.read_cursor - d.reads.begin(), 1) << "looked at once";
    });
    EXPECT_TRUE(shows_nothing(x));
  });
}

TEST(VisibleReadsTest, ReadersOfTwoGroupsDoNotMark) {
  with_threads(
      [] {
        Reader first(x), second(x);
        EXPECT_TRUE(second.by_byte);
        EXPECT_FALSE(is_marked(record_of(x)));
      },
      4, 1);
}

TEST(VisibleReadsTest, AWriterFindsReadersOfEachKind) {
  LOAM_NEEDS_POINTS();
  for (const bool marked : {false, true})
    with_threads([marked] {
      if (marked) mark(x);
      Reader reader(x);
      EXPECT_EQ(reader.by_bit, marked);
      EXPECT_TRUE(finds(reader, x));
      EXPECT_FALSE(finds(reader, x));
    });
}

TEST(VisibleReadsTest, AReaderByByteIsFoundBehindAMarkThatCameLater) {
  LOAM_NEEDS_POINTS();
  with_threads([] {
    Reader reader(x);
    mark(x);
    EXPECT_TRUE(finds(reader, x));
  });
}

TEST(VisibleReadsTest, ACommitTakesTheMarkAwayAndIsAVersionOfItsOwn) {
  with_threads([] {
    for (const bool marked : {false, true}) {
      const std::uint64_t before = record_of(x);
      EXPECT_FALSE(is_marked(before));
      if (marked) mark(x);
      write(x);
      EXPECT_EQ(record_of(x), before + 2);
    }
  });
}

TEST(VisibleReadsTest, WhoDoesNotCommitGivesTheMarkBack) {
  with_threads([] {
    mark(x);
    const std::uint64_t before = record_of(x);
    try {
      Txs::update([](auto& tx) {
        tx.write(x, Word{1});
        throw Cancel{};
      });
    } catch (const Cancel&) {
    }
    EXPECT_EQ(record_of(x), before);
  });
}

// The reader has seen the mark; then it goes. A writer that comes later would not look at bits.
TEST(VisibleReadsTest, ABitIsNotReliedOnWithoutTheMark) {
  LOAM_NEEDS_POINTS();
  with_threads([] {
    mark(x);
    tests::Interpose step("tm.showing", 0, [] { std::thread([] { write(x); }).join(); });
    Txs::read_only([](auto& tx) {
      tx.read(x);
      EXPECT_FALSE(is_marked(record_of(x)));
      EXPECT_TRUE(has_byte(x));
    });
    EXPECT_TRUE(step.reached());
    EXPECT_TRUE(shows_nothing(x));
  });
}

TEST(VisibleReadsTest, WhatIsLockedIsReadWithoutALookAtOthers) {
  with_threads([] {
    Txs::update([](auto& tx) {
      tx.write(x, Word{5});
      for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.read(x), 5u);
      const Descriptor& d = Descriptor::current();
      EXPECT_EQ(d.read_cursor - d.reads.begin(), 1);
    });
    EXPECT_TRUE(shows_nothing(x));
  });
}

TEST(VisibleReadsTest, ThreadsWithoutAPlaceUseBitsAndAreFound) {
  LOAM_NEEDS_POINTS();
  with_threads(
      [] {
        Reader reader(x);
        EXPECT_TRUE(reader.by_bit);
        EXPECT_FALSE(reader.by_byte);
        EXPECT_FALSE(is_marked(record_of(x)));
        EXPECT_TRUE(finds(reader, x));
        std::thread([] {
          Txs::update([](auto& tx) {
            tx.write(x, Word{7});
            for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.read(x), 7u);
            for (int i = 0; i < 3; ++i) EXPECT_EQ(tx.read(y), 0u);
            const Descriptor& d = Descriptor::current();
            EXPECT_EQ(d.read_cursor - d.reads.begin(), 2);
          });
          EXPECT_TRUE(shows_nothing(x));
          EXPECT_TRUE(shows_nothing(y));
        }).join();
      },
      1, 1);
}

TEST(VisibleReadsTest, AMarkWakesNobody) {
  LOAM_NEEDS_POINTS();
  with_threads([] {
    std::atomic<int> attempts{0};
    std::thread sleeper([&] {
      tests::Interpose marks("tm.registered", 0, [] { mark(x); });
      Txs::update([&](auto& tx) {
        ++attempts;
        if (tx.read(x) == 0) Txs::wait_for_change();
      });
      EXPECT_TRUE(marks.reached());
    });
    while (!is_marked(record_of(x))) platform::yield();
    platform::sleep_ns(20'000'000);
    EXPECT_EQ(attempts, 1) << "the version is what it was";
    Txs::update([](auto& tx) { tx.write(x, Word{1}); });
    sleeper.join();
    EXPECT_EQ(attempts, 2);
  });
}

TEST(VisibleReadsTest, APartLetsGoOfNothingAndTheAttemptOfAll) {
  with_threads([] {
    mark(y);
    Txs::update([](auto& tx) {
      EXPECT_FALSE(Txs::closed([](auto& part) {
        part.read(x);
        part.read(y);
        Txs::cancel();
      }));
      EXPECT_TRUE(has_byte(x));
      EXPECT_TRUE(has_bit(y));
      tx.write(x, tx.read(x) + 1);
    });
    EXPECT_TRUE(shows_nothing(x));
    EXPECT_TRUE(shows_nothing(y));
  });
}

TEST(VisibleReadsTest, AChangeOfTheTableLeavesNobodyShown) {
  with_threads([] {
    Txs::update([](auto& tx) { tx.write(x, tx.read(x) + 1); });
    mark(x);
    tuning::change_to({8, 14});
    {
      Reader first(x), second(x), third(x);
      EXPECT_TRUE(third.by_bit);
      EXPECT_EQ(third.value, 1u);
    }
    write(x);
    EXPECT_FALSE(is_marked(record_of(x)));
  });
}

TEST(VisibleReadsTest, AThreadThatComesLaterHasThePlaceOfOneThatHasEnded) {
  with_threads([] {
    Txs::read_only([](auto& tx) { tx.read(x); });
    const read_bytes::Byte* places[2] = {};
    for (auto& place : places)
      std::thread([&place] {
        Txs::read_only([](auto& tx) { tx.read(x); });
        place = own().place.bytes;
      }).join();
    EXPECT_EQ(places[0], places[1]);
    EXPECT_NE(places[0], own().place.bytes);
  });
}

TEST(VisibleReadsTest, TheChildOfAForkGivesTheSamePlaces) {
  if (tests::kInstrumented) GTEST_SKIP() << "a thread in the child of a process with threads may hang there";
  with_threads([] {
    std::atomic<bool> ends{false};
    std::thread other([&] {
      while (!ends) Txs::update([](auto& tx) { tx.write(y, tx.read(x) + tx.read(y)); });
    });
    while (read_bytes::groups.of(0).places() + read_bytes::groups.of(1).places() < 2) platform::yield();
    Txs::update([](auto& tx) { tx.write(x, Word{1}); });
    const auto count = [] { return read_bytes::groups.of(0).places() + read_bytes::groups.of(1).places(); };
    EXPECT_TRUE(tests::in_fork([&] {
      std::thread([] { Txs::update([](auto& tx) { tx.write(x, tx.read(y) + 1); }); }).join();
      return count() == 2 && shows_nothing(x);
    }));
    ends = true;
    other.join();
  });
}

}  // namespace
}  // namespace loam::tm
