// What is left of the aborts of a transaction once it has ended: it is counted by them, and the next one starts afresh.
#include "tests/unit/tm/attempts/contended.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace loam::tm {
namespace {

using tests::Trace;

// The commits of this thread by the aborts before them, as far as they are not 0: (least number of aborts, commits).
using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
Counts counts() {
  const auto all = statistics().histogram();
  Counts found;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != 0) found.emplace_back(kAbortsBounds[i], all[i]);
  return found;
}

std::uint64_t bound_of(std::uint64_t aborts) {
  std::uint64_t bound = 0;
  for (const std::uint64_t each : kAbortsBounds)
    if (each <= aborts) bound = each;
  return bound;
}

// Nothing of a transaction that has ended decides about the next one.
void expect_afresh() {
  const Contention& own = Descriptor::current().contention;
  EXPECT_EQ(own.stalls, 0u);
  EXPECT_EQ(own.earned, 0u);
  EXPECT_EQ(own.priority.load(), 0u);
  EXPECT_EQ(own.record, nullptr);
}

TEST(Settled, ACommitIsCountedByTheAbortsBeforeIt) {
  for (const bool updates : {true, false})
    for (const unsigned failures : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u, 9u})
      under(Manager::karma, 0, [=] {
        unsigned attempts = 0;
        const auto body = [&](auto& tx) { fail_until(tx, ++attempts, failures); };
        updates ? Txs::update(body) : Txs::read_only(body);
        EXPECT_EQ(attempts, failures + 1);
        EXPECT_EQ(counts(), (Counts{{bound_of(failures), 1}})) << failures;
        EXPECT_EQ(statistics().aborts_total(), failures);
        expect_afresh();
      });
}

TEST(Settled, ATransactionThatComesToRunAloneIsCountedByTheAttemptsThatItGaveUp) {
  for (const unsigned failures : {0u, 1u, 2u})
    under(Manager::karma, 0, [=] {
      unsigned attempts = 0;
      Txs::update([&](auto& tx) {
        if (++attempts <= failures) return fail_until(tx, attempts, failures);
        Txs::irrevocable([](auto& own) { own.write(words[2].word, Word{1}); });
      });
      EXPECT_EQ(attempts, failures + 2) << "the one that asks for it is given up as well";
      EXPECT_EQ(counts(), (Counts{{failures + 1, 1}}));
      EXPECT_EQ(words[2].word, 1u);
      expect_afresh();
      EXPECT_FALSE(serial::closed());
    });
}

TEST(Settled, OneThatIsIrrevocableFromItsBeginAbortsNever) {
  under(Manager::suicide, 0, [] {
    Txs::irrevocable([](auto& tx) { tx.write(x, Word{1}); });
    EXPECT_EQ(counts(), (Counts{{0, 1}}));
    EXPECT_EQ(statistics().aborts_total(), 0u);
    EXPECT_FALSE(serial::closed());
  });
}

// Waits once, for a change that comes when the attempt has been rolled back, and then does `then`.
template <class Then>
void wait_and(Then&& then) {
  const tests::Interpose change("tm.aborted", 0, [] { Txs::update([](auto& tx) { tx.write(y, Word{1}); }); });
  Txs::update([&](auto& tx) {
    if (tx.read(y) == 0) Txs::wait_for_change();
    then();
  });
}

TEST(Settled, AWaitIsCountedAndExcusesNothingLater) {
  LOAM_NEEDS_POINTS();
  under(Manager::suicide, 4, [] {
    wait_and([] { EXPECT_EQ(Descriptor::current().contention.stalls, 1u) << "no abort of a conflict"; });
    EXPECT_EQ(counts(), (Counts{{1, 1}}));
    expect_afresh();
  });
  under(Manager::suicide, 4, [] {
    EXPECT_THROW(wait_and([] { Txs::cancel(); }), Cancelled);
    expect_afresh();
    EXPECT_EQ(counts(), Counts{});
  });
  under(Manager::suicide, 4, [] {
    EXPECT_THROW(wait_and([] { throw 7; }), int);
    expect_afresh();
  });
}

TEST(Settled, APartThatMeetsALockWaitsForItBeforeItsNextTry) {
  LOAM_NEEDS_POINTS();
  under(Manager::delay, 0,
        [] {
          Holder a(tests::Kind::update);
          hold(a, x);
          const Trace trace([&](std::string_view point, unsigned nth) {
            if (point == "tm.waiting" && nth == 2) a.commit();
          });
          unsigned attempts = 0, parts = 0;
          Txs::update([&](auto&) {
            ++attempts;
            Txs::closed([&](auto& part) {
              ++parts;
              part.write(x, part.read(x) + 1);
            });
          });
          EXPECT_EQ(attempts, 1u);
          EXPECT_EQ(parts, 2u);
          EXPECT_EQ(x, 2u);
          EXPECT_EQ(counts(), (Counts{{0, 1}})) << "the transaction has not aborted";
        },
        {.free_ns = kForEver});
}

}  // namespace
}  // namespace loam::tm
