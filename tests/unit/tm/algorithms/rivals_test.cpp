// What swisstm and two-phase decide by themselves: who gives way, who waits, and what stripes that share a lock or a
// reader's bit with others do to each other.
// These alone, in every build.
#undef LOAM_TEST_ALGORITHMS
#define LOAM_TEST_ALGORITHMS tm::Swisstm, tm::TwoPhase
#include "tests/harness/interpose.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <sys/mman.h>

namespace loam::tm {
namespace {

using Swiss = Driver<Swisstm<false>>;
using TwoPhases = Driver<TwoPhase<false>>;

const tests::Variant kSwiss{"swisstm", "", tests::patient({})}, kTwoPhase{"two-phase", "", tests::patient({})};
const tests::Variant kSwissShadow{"swisstm", "", tests::patient({.mapping = Mapping::shadow})};
const tests::Variant kTwoPhaseShadow{"two-phase", "", tests::patient({.mapping = Mapping::shadow})};

alignas(4096) Word words[512];
Word& x = words[0];
Word& y = words[64];
Word& z = words[128];
Word& other(unsigned i) { return words[256 + i * 16]; }  // on stripes of their own, i < 16

struct Cancel {};

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) platform::yield();
}

// A transaction of another thread that has written `word` and stands still until let_go().
// Who meets it has bounded patience, so a test that counts attempts ends it at the point where the other one waits.
template <class Driver>
class Holder {
 public:
  Holder(Word& word, Word value)
      : thread_([this, &word, value] {
          Driver::update([&](auto& tx) {
            if (++attempts > 1) wait_until(may_return);
            tx.write(word, value);
            holds_ = true;
            wait_until(goes_);
            tx.write(z, tx.read(z) + 1);
          });
        }) {
    wait_until(holds_);
  }
  ~Holder() { end(); }
  void let_go() { goes_ = true; }
  void end() {
    let_go();
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<int> attempts{0};
  std::atomic<bool> may_return{true};  // for a second attempt

 private:
  std::atomic<bool> holds_{false}, goes_{false};
  std::thread thread_;
};

// Two pages `apart` bytes apart, the first word of each; null where the system does not give them.
struct Apart {
  Word *first = nullptr, *second = nullptr;
  explicit Apart([[maybe_unused]] std::uintptr_t apart) {
#ifndef LOAM_TSAN  // which ends the program where a fixed address is refused
    for (std::uintptr_t at = std::uintptr_t{1} << 44; at + apart < (std::uintptr_t{1} << 47); at += apart / 2 + 4096) {
      void* const low = map(at);
      void* const high = low == nullptr ? nullptr : map(at + apart);
      if (high == nullptr) continue;
      first = static_cast<Word*>(low);
      second = static_cast<Word*>(high);
      return;
    }
#endif
  }

 private:
  [[maybe_unused]] static void* map(std::uintptr_t at) {
    void* const got = mmap(reinterpret_cast<void*>(at), 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return got == MAP_FAILED ? nullptr : got;
  }
};

// ---- swisstm

TEST(SwisstmTest, ReadersGoOnWhileAStripeIsWritten) {
  tests::in_variant(kSwiss, []<class>() {
    Holder<Swiss> holder(x, 7);
    int attempts = 0;
    EXPECT_EQ(Swiss::update([&](auto& tx) { return ++attempts, tx.read(x); }), 0u);
    EXPECT_EQ(Swiss::read_only([&](auto& tx) { return ++attempts, tx.read(x); }), 0u);
    EXPECT_EQ(attempts, 2);
  });
}

TEST(SwisstmTest, AShortWriterGivesWayAtOnce) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kSwiss, []<class>() {
    Holder<Swiss> holder(x, 7);
    tests::Interpose waits("tm.waiting", 0, [] {});
    EXPECT_FALSE(tests::attempt_update<Swiss>(1, [](auto& tx) { tx.write(x, Word{8}); }));
    EXPECT_FALSE(waits.reached());
    holder.end();
    EXPECT_EQ(holder.attempts, 1);
    EXPECT_EQ(x, 7u);
  });
}

TEST(SwisstmTest, ALongWriterMakesAShortOneGiveWay) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kSwiss, []<class>() {
    Holder<Swiss> holder(x, 7);
    holder.may_return = false;
    tests::Interpose waits("tm.waiting", 0, [&] { holder.let_go(); });
    Swiss::update([&](auto& tx) {
      for (unsigned i = 0; i < Greedy::kTimidWrites; ++i) tx.write(other(i), Word{1});
      tx.write(x, tx.read(x) + 100);
    });
    EXPECT_TRUE(waits.reached());
    holder.may_return = true;
    holder.end();
    EXPECT_EQ(holder.attempts, 2) << "asked to abort, and has";
    EXPECT_EQ(x, 7u) << "written after the long one";
    EXPECT_EQ(z, 1u);
    EXPECT_FALSE(Swisstm<false>::manager(Descriptor::current()).has_ticket());
  });
}

TEST(SwisstmTest, OneWriteFewerIsShort) {
  tests::in_variant(kSwiss, []<class>() {
    Holder<Swiss> holder(x, 7);
    EXPECT_FALSE(tests::attempt_update<Swiss>(1, [](auto& tx) {
      for (unsigned i = 0; i + 1 < Greedy::kTimidWrites; ++i) tx.write(other(i), Word{1});
      tx.write(x, Word{8});
    }));
    holder.end();
    EXPECT_EQ(holder.attempts, 1);
  });
}

TEST(SwisstmTest, OfTwoLongWritersTheEarlierTicketWins) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kSwiss, []<class>() {
    bool met = false, waited = true, committed = true;
    int attempts = 0;
    Swiss::update([&](auto& tx) {
      ++attempts;
      for (unsigned i = 0; i < Greedy::kTimidWrites; ++i) tx.write(other(i), Word{1});
      tx.write(x, Word{1});
      std::thread([&] {
        tests::Interpose waits("tm.waiting", 0, [] {});
        committed = tests::attempt_update<Swiss>(2, [&](auto& later) {
          for (unsigned i = 0; i < Greedy::kTimidWrites; ++i) later.write(words[i * 4 + 8], Word{1});
          met = true;
          later.write(x, Word{2});
        });
        waited = waits.reached();
      }).join();
      tx.write(y, Word{1});  // would notice that it was asked to abort
    });
    EXPECT_TRUE(met);
    EXPECT_FALSE(waited);
    EXPECT_FALSE(committed);
    EXPECT_EQ(attempts, 1);
    EXPECT_EQ(x, 1u);
  });
}

// A commit in the middle: everything is written, nothing released.
TEST(SwisstmTest, StripesThatShareAWriteLockAreEachLockedAndReleased) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kSwissShadow, []<class>() {
    const Apart far(std::uintptr_t{1} << (stripes::kWriteLockBitsMax + kShadowShift));
    if (far.second == nullptr || shared.map.kind != "shadow-full") GTEST_SKIP() << "no such addresses here";
    Word &a = *far.first, &b = *far.second;
    for (const bool other_way : {false, true}) {
      a = b = 0;
      const std::uint64_t clock = version_clock.now;
      bool came_between = true;
      Word seen = 99;
      tests::Interpose step("tm.written", 0, [&] {
        came_between = tests::attempt_update<Swiss>(2, [&](auto& tx) { seen = tx.read(b) + tx.read(a); });
      });
      Swiss::update([&](auto& tx) {
        tx.write(other_way ? b : a, Word{1});
        tx.write(other_way ? a : b, Word{2});
        EXPECT_EQ(tx.read(a) + tx.read(b), 3u);
        EXPECT_EQ(a + b, 0u);
      });
      EXPECT_TRUE(step.reached());
      EXPECT_FALSE(came_between) << seen;
      EXPECT_EQ(a + b, 3u);
      EXPECT_EQ(shared.map.record(&a), clock + 1);
      EXPECT_EQ(shared.map.record(&b), clock + 1);
      // What has changed since it was read must be noticed, whoever was locked first.
      int attempts = 0;
      Swiss::update([&](auto& tx) {
        const Word before = tx.read(b);
        if (attempts++ == 0)
          std::thread([&] { Swiss::update([&](auto& later) { later.write(b, later.read(b) + 10); }); }).join();
        tx.write(a, Word{0});
        tx.write(b, before + 1);
      });
      EXPECT_EQ(attempts, 2);
      EXPECT_EQ(b, (other_way ? 1u : 2u) + 11);
      EXPECT_THROW(Swiss::update([&](auto& tx) {
                     tx.write(a, Word{5});
                     Swiss::closed([&](auto& part) {
                       part.write(b, Word{5});
                       Swiss::cancel();
                     });
                     EXPECT_EQ(tx.read(b), (other_way ? 1u : 2u) + 11);
                     throw Cancel{};
                   }),
                   Cancel);
      EXPECT_FALSE(is_locked(shared.map.record(&b)));
      EXPECT_EQ(stripes::write_locks.of(shared.map.stripe(&b)), 0u);
    }
  });
}

// ---- two-phase

TEST(TwoPhaseTest, TheOlderWaitsForTheYounger) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kTwoPhase, []<class>() {
    for (const bool by_write : {false, true}) {
      Holder<TwoPhases> holder(x, 7);
      tests::Interpose waits("tm.waiting", 0, [&] { holder.end(); });
      int attempts = 0;
      TwoPhases::update([&](auto& tx) {
        ++attempts;
        if (by_write) tx.write(x, Word{8});
        EXPECT_EQ(tx.read(x), by_write ? 8u : 7u);
      });
      EXPECT_TRUE(waits.reached());
      EXPECT_EQ(attempts, 1);
      EXPECT_EQ(Descriptor::current().state<two_phase::State>().ticket, two_phase::kNoTicket);
    }
    EXPECT_EQ(x, 8u);
  });
}

TEST(TwoPhaseTest, TheOlderWaitsForAYoungerReader) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kTwoPhase, []<class>() {
    std::atomic<bool> reads{false}, goes{false};
    std::thread reader([&] {
      TwoPhases::read_only([&](auto& tx) {
        tx.read(x);
        reads = true;
        wait_until(goes);
        EXPECT_EQ(tx.read(x), 0u) << "nobody can have written it";
      });
    });
    wait_until(reads);
    tests::Interpose waits("tm.waiting", 0, [&] {
      goes = true;
      reader.join();
    });
    int attempts = 0;
    TwoPhases::update([&](auto& tx) {
      ++attempts;
      tx.write(x, Word{1});
    });
    EXPECT_TRUE(waits.reached());
    EXPECT_EQ(attempts, 1);
    goes = true;
    if (reader.joinable()) reader.join();
  });
}

TEST(TwoPhaseTest, TheYoungerDiesKeepsItsTicketAndWaitsForTheOlder) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kTwoPhase, []<class>() {
    for (const bool meets_reader : {false, true}) {
      Holder<TwoPhases> holder(y, 7);
      bool waited_first = true, waited_then = false, committed = true;
      std::uint64_t tickets[2] = {0, 0};
      const auto younger = [&] {
        tests::Interpose waits("tm.waiting", 0, [] {});
        tests::Interpose dies("tm.aborted", 0, [&] { waited_first = waits.reached(); });
        int attempts = 0;
        committed = tests::attempt_update<TwoPhases>(2, [&](auto& tx) {
          tickets[attempts++] = Descriptor::current().state<two_phase::State>().ticket;
          if (meets_reader)
            tx.write(x, Word{1});
          else
            tx.read(x);
        });
        EXPECT_TRUE(dies.reached());
        EXPECT_EQ(attempts, 2);
        waited_then = waits.reached();
      };
      // Waiting for y gives this one its ticket; while it waits, the younger comes to x.
      tests::Interpose waits("tm.waiting", 0, [&] {
        younger();
        holder.end();
      });
      int attempts = 0;
      TwoPhases::update([&](auto& tx) {
        ++attempts;
        if (meets_reader)
          tx.read(x);
        else
          tx.write(x, Word{5});
        tx.read(y);
      });
      EXPECT_EQ(attempts, 1);
      EXPECT_FALSE(committed);
      EXPECT_FALSE(waited_first) << "holding what others wait for";
      EXPECT_TRUE(waited_then);
      EXPECT_EQ(tickets[0], two_phase::kNoTicket);
      EXPECT_NE(tickets[1], two_phase::kNoTicket) << "else it might never be the oldest";
    }
  });
}

// The reader stands between its look at the record and the data; a writer comes, and would write in place.
TEST(TwoPhaseTest, AReaderThatLooksIsSeen) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kTwoPhase, []<class>() {
    std::atomic<bool> wrote{false}, ended{false}, read{false};
    std::thread writer;
    tests::Interpose step("tm.reading", 0, [&] {
      writer = std::thread([&] {
        try {
          tests::attempt_update<TwoPhases>(1, [&](auto& tx) {
            tx.write(x, Word{99});
            wrote = true;
            wait_until(read);
            throw Cancel{};
          });
        } catch (const Cancel&) {
        }
        ended = true;
      });
      while (!wrote && !ended) platform::yield();
    });
    Word seen = 1;
    TwoPhases::read_only([&](auto& tx) {
      seen = tx.read(x);
      read = true;
    });
    read = true;
    writer.join();
    EXPECT_TRUE(step.reached());
    EXPECT_FALSE(wrote);
    EXPECT_EQ(seen, 0u);
  });
}

TEST(TwoPhaseTest, AStripeThatSharesItsBitIsLookedAtAllTheSame) {
  LOAM_NEEDS_POINTS();
  tests::in_variant(kTwoPhaseShadow, []<class>() {
    const Apart far(std::uintptr_t{1} << (stripes::kIndicatorBits + kShadowShift));
    if (far.second == nullptr || shared.map.kind == "table") GTEST_SKIP() << "no such addresses here";
    Word &a = *far.first, &b = *far.second;
    Holder<TwoPhases> holder(b, 7);
    tests::Interpose waits("tm.waiting", 0, [&] { holder.let_go(); });
    const Word seen = TwoPhases::update([&](auto& tx) {
      tx.read(a);  // sets the bit that b has as well
      return tx.read(b);
    });
    EXPECT_EQ(seen, 7u);
    EXPECT_TRUE(waits.reached());
    // A reader of a keeps writers from b: a conflict that is none, and no more.
    TwoPhases::update([&](auto& tx) {
      tx.read(a);
      EXPECT_FALSE(tests::commit_amid<TwoPhases>([&](auto& late) { late.write(b, Word{8}); }));
    });
    EXPECT_EQ(b, 7u);
  });
}

// ---- both

struct RivalTest : testing::TestWithParam<tests::Variant> {};
INSTANTIATE_TEST_SUITE_P(All, RivalTest, testing::Values(kSwiss, kTwoPhase, kSwissShadow, kTwoPhaseShadow),
                         [](const auto& info) {
                           std::string name = info.param.name();
                           return name + (info.param.config.mapping == Mapping::shadow ? "shadow" : "table");
                         });

TEST_P(RivalTest, APartThatIsTakenBackLeavesWhatWasBeforeIt) {
  tests::in_variant(GetParam(), []<class Driver>() {
    for (const bool cancel : {true, false}) {
      x = 1, y = 2, z = 0;
      auto& byte = *(reinterpret_cast<std::uint8_t*>(&y) + 3);
      try {
        Driver::update([&](auto& tx) {
          tx.write(x, Word{10});
          EXPECT_FALSE(Driver::closed([&](auto& part) {
            part.write(x, Word{20});
            part.write(x, Word{21});
            part.write(byte, std::uint8_t{9});
            part.write(z, Word{30});
            EXPECT_TRUE(Driver::closed([&](auto& inner) { inner.write(x, inner.read(x) + 1); }));
            EXPECT_EQ(part.read(x), 22u);
            Driver::cancel();
          }));
          EXPECT_EQ(tx.read(x), 10u);
          EXPECT_EQ(tx.read(y), 2u);
          EXPECT_EQ(tx.read(z), 0u);
          EXPECT_TRUE(Driver::closed([&](auto& part) { part.write(z, part.read(z) + 5); }));
          tx.write(z, tx.read(z) + 1);
          tx.write(byte, std::uint8_t{1});
          tx.write(x, tx.read(x) + 1);
          if (cancel) throw Cancel{};
        });
      } catch (const Cancel&) {
      }
      EXPECT_EQ(x, cancel ? 1u : 11u);
      EXPECT_EQ(y, cancel ? 2u : 2u + (Word{1} << 24));
      EXPECT_EQ(z, cancel ? 0u : 6u);
    }
  });
}

TEST_P(RivalTest, ARetryWakesForWhatItHasReadAndForNothingElse) {
  tests::in_variant(GetParam(), []<class Driver>() {
    std::atomic<int> attempts{0};
    std::thread waiter([&] {
      Driver::update([&](auto& tx) {
        ++attempts;
        tx.write(z, Word{1});
        if (tx.read(x) == 0) Driver::wait_for_change();
      });
    });
    while (shared.sleepers == 0) platform::yield();
    EXPECT_EQ(z, 0u) << "a sleeper holds nothing";
    for (int i = 0; i < 5; ++i) {
      Driver::update([](auto& tx) { tx.write(y, tx.read(y) + 1); });
      platform::sleep_ns(1'000'000);
    }
    EXPECT_EQ(attempts, 1) << "nothing that it has read has changed";
    Driver::update([](auto& tx) { tx.write(x, Word{1}); });
    waiter.join();
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(z, 1u);
  });
}

TEST_P(RivalTest, MoreThreadsThanCoresOnFewWordsComeToAnEnd) {
  tests::in_variant(GetParam(), []<class Driver>() {
    constexpr int kThreads = 8, kRounds = 300;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRounds; ++i)
          Driver::update([&](auto& tx) {
            // In both directions: who locked in any order and waited would lock up.
            Word& from = (i + t) % 2 == 0 ? x : y;
            Word& to = (i + t) % 2 == 0 ? y : x;
            const Word value = tx.read(from);
            if ((i + t) % 50 == 0) platform::yield();
            if (t == 0)  // a long one among short ones
              for (unsigned k = 0; k < 16; ++k) tx.write(other(k), value);
            tx.write(to, tx.read(to) + 1);
            tx.write(from, value + 1);
          });
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(x, static_cast<Word>(kThreads * kRounds));
    EXPECT_EQ(y, x);
    for (const Word& word : words) EXPECT_FALSE(is_locked(shared.map.record(&word)));
  });
}

}  // namespace
}  // namespace loam::tm
