// What is taken back: whole attempts and parts of them, against a plain model, in every variant; and what an attempt
// that waits for a change looks at after it has been taken back.
#include "runtime/base/random.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

namespace loam::tm {
namespace {

struct UndoTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, UndoTest, testing::ValuesIn(tests::variants()), tests::variant_name);

// A few neighbouring words at each of several places that share records in the small table.
constexpr std::size_t kPlaces = 3, kWords = 6, kPeriod = std::size_t{1} << 14;
alignas(kPeriod) unsigned char space[kPlaces * kPeriod];

struct Cancel {};

unsigned char* byte_at(unsigned place, unsigned byte) { return space + place * kPeriod + byte; }
Word& word_at(unsigned place, unsigned word) {
  return *reinterpret_cast<Word*>(byte_at(place, word * static_cast<unsigned>(kWordBytes)));
}

// The memory as it should be, and as it was at the start of each part that runs.
class Model {
 public:
  static constexpr unsigned kBytes = kWords * kWordBytes;
  using Memory = std::array<std::array<unsigned char, kBytes>, kPlaces>;

  Memory now{};
  void enter() { around_.push_back(now); }
  void leave(bool kept) {
    if (!kept) now = around_.back();
    around_.pop_back();
  }
  bool matches() const {
    for (unsigned place = 0; place < kPlaces; ++place)
      if (std::memcmp(now[place].data(), byte_at(place, 0), kBytes) != 0) return false;
    return true;
  }

 private:
  std::vector<Memory> around_;
};

// One transaction of random steps: reads that are compared, writes of 1 to 8 bytes, parts within parts.
template <class Driver>
class RandomPlay {
 public:
  RandomPlay(std::uint64_t seed, Model& model) : random_(seed), model_(model) {}

  // returns whether it was to commit
  bool run() {
    model_.enter();
    bool kept = true;
    try {
      Driver::update([&](auto& tx) {
        steps(tx, 0);
        if (random_.below(4) == 0) throw Cancel{};
      });
    } catch (const Cancel&) {
      kept = false;
    }
    model_.leave(kept);
    return kept;
  }
  unsigned parts_taken_back() const { return taken_back_; }

 private:
  template <class Tx>
  void steps(Tx& tx, unsigned depth) {
    for (unsigned left = 1 + random_.below(12); left > 0; --left) {
      const unsigned kind = random_.below(10);
      if (kind == 0 && depth < 4) {
        part(depth);
      } else if (kind < 4) {
        access<false>(tx);
      } else {
        access<true>(tx);
      }
    }
  }

  void part(unsigned depth) {
    model_.enter();
    bool kept = false;
    const unsigned end = random_.below(4);
    try {
      kept = Driver::closed([&](auto& tx) {
        steps(tx, depth + 1);
        if (end == 0) Driver::cancel();
        if (end == 1) throw Cancel{};
      });
      EXPECT_EQ(kept, end > 1);
    } catch (const Cancel&) {
      EXPECT_EQ(end, 1u);
    }
    taken_back_ += !kept;
    model_.leave(kept);
  }

  template <bool kWrites, class Tx>
  void access(Tx& tx) {
    switch (random_.below(5)) {
      case 0:
        return access_as<kWrites, std::uint8_t>(tx);
      case 1:
        return access_as<kWrites, std::uint32_t>(tx);
      default:
        return access_as<kWrites, Word>(tx);
    }
  }

  template <bool kWrites, class T, class Tx>
  void access_as(Tx& tx) {
    const unsigned place = random_.below(kPlaces);
    const unsigned byte = random_.below(Model::kBytes / sizeof(T)) * static_cast<unsigned>(sizeof(T));
    T& field = *reinterpret_cast<T*>(byte_at(place, byte));
    if constexpr (kWrites) {
      const auto value = static_cast<T>((Word{random_.below(1u << 30)} << 32) + random_.below(1u << 30));
      std::memcpy(&model_.now[place][byte], &value, sizeof(T));
      tx.write(field, value);
    } else {
      T expected;
      std::memcpy(&expected, &model_.now[place][byte], sizeof(T));
      EXPECT_EQ(tx.read(field), expected);
    }
  }

  base::Random random_;
  Model& model_;
  unsigned taken_back_ = 0;
};

TEST_P(UndoTest, RandomPartsMatchAModel) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Model model;
    unsigned taken_back = 0, cancelled = 0;
    std::array<std::array<std::uint64_t, kWords>, kPlaces> versions{};
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
      RandomPlay<Driver> play(seed, model);
      cancelled += !play.run();
      taken_back += play.parts_taken_back();
      ASSERT_TRUE(model.matches()) << "after transaction " << seed;
      for (unsigned place = 0; place < kPlaces; ++place)
        for (unsigned word = 0; word < kWords; ++word) {
          const std::uint64_t version = shared.map.record(&word_at(place, word)).load();
          ASSERT_FALSE(is_locked(version)) << "after transaction " << seed;
          ASSERT_GE(version, std::exchange(versions[place][word], version)) << "after transaction " << seed;
        }
    }
    EXPECT_GT(taken_back, 300u);
    EXPECT_GT(cancelled, 100u);
  });
}

TEST_P(UndoTest, AWordWrittenTwiceHasItsFirstValueAfterACancel) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (unsigned word = 0; word < kWords; ++word) word_at(0, word) = 10 + word;
    EXPECT_THROW(Driver::update([](auto& tx) {
                   for (Word round = 1; round < 4; ++round)
                     for (unsigned word = 0; word < kWords; ++word) tx.write(word_at(0, word), round);
                   auto* const bytes = reinterpret_cast<std::uint8_t*>(&word_at(0, 0));
                   for (unsigned i = 0; i < kWordBytes; ++i) tx.write(bytes[i], std::uint8_t{7});
                   throw Cancel{};
                 }),
                 Cancel);
    for (unsigned word = 0; word < kWords; ++word) EXPECT_EQ(word_at(0, word), 10 + word);
  });
}

TEST_P(UndoTest, AWordThatIsWrittenAgainAndAgainFillsNoLog) {
  tests::in_variant(GetParam(), []<class Driver>() {
    Driver::update([](auto& tx) {
      Descriptor& d = tx.descriptor();
      for (unsigned i = 0; i < 1000; ++i)
        for (unsigned word = 0; word < kWords; ++word) tx.write(word_at(0, word), Word{i});
      EXPECT_LE(d.write_end - d.writes.begin(), static_cast<std::ptrdiff_t>(kWords));
      for (unsigned i = 0; i < 100; ++i)
        Driver::closed([&](auto& inner) {
          for (unsigned round = 0; round < 10; ++round)
            for (unsigned word = 0; word < kWords; ++word) inner.write(word_at(1, word), Word{round});
          Driver::cancel();
        });
      EXPECT_LE(d.write_end - d.writes.begin(), static_cast<std::ptrdiff_t>(2 * kWords));
    });
    EXPECT_EQ(word_at(0, 0), 999u);
    EXPECT_EQ(word_at(1, 0), 0u);
  });
}

#ifndef LOAM_TSAN  // by the letter a race: the word is read as a whole, the neighbour's bytes are dropped
TEST_P(UndoTest, APlainNeighbourInAWordKeepsWhatIsWrittenBeforeACancel) {
  tests::in_variant(GetParam(), []<class Driver>() {
    auto* const bytes = byte_at(0, 0);
    EXPECT_THROW(Driver::update([&](auto& tx) {
                   tx.write(bytes[0], static_cast<unsigned char>(5));
                   bytes[1] = 77;
                   throw Cancel{};
                 }),
                 Cancel);
    EXPECT_EQ(bytes[0], 0);
    EXPECT_EQ(bytes[1], 77);
  });
}
#endif

TEST_P(UndoTest, OthersSeeNothingOfAPartThatWasTakenBack) {
  tests::in_variant(GetParam(), []<class Driver>() {
    // What the part has read under its locks still holds for the whole, and the whole commits.
    const auto others_see = [](unsigned word) {
      Word seen = 0;
      std::thread([&] {
        tests::attempt_update<Driver>(2, [&](auto& tx) { seen = tx.read(word_at(0, word)); });
      }).join();
      return seen;
    };
    int attempts = 0;
    Driver::update([&](auto& tx) {
      ++attempts;
      tx.write(word_at(0, 0), Word{1});
      EXPECT_FALSE(Driver::closed([&](auto& inner) {
        inner.write(word_at(0, 0), Word{2});
        inner.write(word_at(0, 1), Word{2});
        inner.write(word_at(0, 4), inner.read(word_at(0, 5)) + 2);
        EXPECT_EQ(others_see(4), 0u);
        Driver::cancel();
      }));
      EXPECT_EQ(others_see(0), 0u);
      EXPECT_EQ(others_see(4), 0u);
      EXPECT_EQ(tx.read(word_at(0, 0)), 1u);
      EXPECT_EQ(tx.read(word_at(0, 4)), 0u);
      tx.write(word_at(0, 5), tx.read(word_at(0, 4)) + 3);
    });
    EXPECT_EQ(attempts, 1);
    EXPECT_EQ(others_see(0), 1u);
    EXPECT_EQ(others_see(1), 0u);
    EXPECT_EQ(others_see(4), 0u);
    EXPECT_EQ(others_see(5), 3u);
  });
}

// ---- waiting

// Runs a transaction that writes `written` and waits for `awaited` to change. Another thread changes it after a while.
template <class Driver>
int attempts_until_changed(Word& written, Word& awaited) {
  alarm(20);  // a waiter that nobody wakes would wait for ever
  std::atomic<int> attempts{0};
  std::thread waiter([&] {
    Driver::update([&](auto& tx) {
      ++attempts;
      tx.write(written, Word{5});
      if (tx.read(awaited) == 0) Driver::wait_for_change();
    });
  });
  while (attempts.load() == 0) platform::yield();
  platform::sleep_ns(60'000'000);
  Driver::update([&](auto& tx) { tx.write(awaited, Word{1}); });
  waiter.join();
  alarm(0);
  EXPECT_EQ(written, 5u);
  return attempts.load();
}

TEST_P(UndoTest, AWaiterThatHasWrittenIsNotWokenByItself) {
  tests::in_variant(
      GetParam(), []<class Driver>() { EXPECT_LE((attempts_until_changed<Driver>(word_at(0, 0), word_at(0, 4))), 3); });
}

TEST_P(UndoTest, AWaiterIsWokenByAWordBesideWhatItHasWritten) {
  tests::in_variant(
      GetParam(), []<class Driver>() { EXPECT_LE((attempts_until_changed<Driver>(word_at(0, 0), word_at(0, 1))), 3); });
}

TEST_P(UndoTest, AWaiterIsWokenByAWordThatItHasReadAndThenLocked) {
  tests::in_variant(GetParam(), []<class Driver>() {
    alarm(20);
    std::atomic<int> attempts{0};
    std::thread waiter([&] {
      Driver::update([&](auto& tx) {
        ++attempts;
        const Word seen = tx.read(word_at(0, 0));
        tx.write(word_at(0, 0), seen + 1);
        if (seen == 0) Driver::wait_for_change();
      });
    });
    while (attempts.load() == 0) platform::yield();
    platform::sleep_ns(60'000'000);
    Driver::update([&](auto& tx) { tx.write(word_at(0, 0), Word{8}); });
    waiter.join();
    alarm(0);
    EXPECT_EQ(word_at(0, 0), 9u);
    EXPECT_LE(attempts.load(), 3);
  });
}

}  // namespace
}  // namespace loam::tm
