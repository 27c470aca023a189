// Transactions under the schedule checker (LOAM_SIM_CHECK), one algorithm in a process. Each piece checks its own
// result, and ends with status 1 if it is wrong. Run by tests/lab/simulator/test_transactional_orders.py.
//   transactional_orders PIECE/ALGORITHM   without arguments, it lists them
//   bank        transactions move money between accounts; every transaction that adds them up sees the same sum
//   skew        each of two transactions reads the word that the other one writes; at least one sees the other's write
//   published   a thread writes data plainly, then publishes it in a transaction; every thread that finds it sees it
//   privatized  after a transaction has unlinked data and returned, plain code may use the data
//   shared      the same where commits share their wait
//   alone       a transaction that runs alone, in place, sees other transactions as a whole, and no update is lost
// LOAM_TEST_ALGORITHMS: the classes of some algorithms. A mutant concerns one algorithm, and is compiled for that one.
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/simulator/pieces.hpp"
#include "tests/simulator/transactional.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

namespace tm = loam::tm;
using loam::tests::Apart, loam::tests::Meeting, loam::tests::check, loam::tests::prepare, loam::tests::together;

#ifdef LOAM_TEST_ALGORITHMS
using Tested = tm::AlgorithmList<LOAM_TEST_ALGORITHMS>;
#else
using Tested = tm::Algorithms;
#endif

template <class Driver>
void bank() {
  loam::tests::bank<Driver>([](unsigned) {});
}

template <class Driver>
void skew() {
  constexpr unsigned kRounds = 16;
  using Side = std::array<Apart, kRounds>;
  static Side left, right;
  static Meeting<2> meeting;
  const auto raise = [](Side& own, Side& other) {
    prepare<Driver>();
    for (unsigned i = 0; i < kRounds; ++i) {
      meeting.wait();
      Driver::update([&](auto& t) {
        if (t.read(other[i].value) == 0) t.write(own[i].value, 1);
      });
    }
  };
  together([=] { raise(left, right); }, [=] { raise(right, left); });
  for (unsigned i = 0; i < kRounds; ++i)
    check(left[i].value + right[i].value == 1, "of two, one sees the other's write");
}

template <class Driver>
void published() {
  constexpr unsigned kRounds = 16;
  static std::array<long, kRounds> contents;
  static std::array<Apart, kRounds> filled;
  static Meeting<2> meeting;
  together(
      [] {
        prepare<Driver>();
        meeting.wait();
        for (unsigned i = 0; i < kRounds; ++i) {
          contents[i] = i + 1;
          Driver::update([i](auto& t) { t.write(filled[i].value, 1); });
        }
      },
      [] {
        prepare<Driver>();
        meeting.wait();
        for (unsigned i = 0; i < kRounds; ++i) {
          while (Driver::read_only([i](auto& t) { return t.read(filled[i].value); }) == 0) {
          }
          check(contents[i] == i + 1, "what was written before it was published");
        }
      });
}

template <class Driver>
void privatized() {
  constexpr unsigned kRounds = 64;
  constexpr long kIntact = 7;
  static std::array<Apart, kRounds> nodes, links;  // link: 1 where the node may be reached
  static std::array<long, kRounds> unlinked{}, changed{};
  static Meeting<3> meeting;
  const auto is_intact = [](long value) { return value == kIntact || value == kIntact + 1; };
  for (unsigned i = 0; i < kRounds; ++i) nodes[i].value = kIntact, links[i].value = 1;
  const auto unlinks = [=] {
    prepare<Driver>();
    for (unsigned i = 0; i < kRounds; ++i) {
      meeting.wait();
      Driver::update([i](auto& t) { t.write(links[i].value, 0); });
      // This stands for a plain read. It is atomic because the checker returns older values for atomics only.
      unlinked[i] = std::atomic_ref(nodes[i].value).load(std::memory_order_relaxed);
      nodes[i].value = 0;
    }
  };
  const auto changes = [] {
    prepare<Driver>();
    for (unsigned i = 0; i < kRounds; ++i) {
      meeting.wait();
      changed[i] = Driver::update([i](auto& t) {
        const long linked = t.read(links[i].value);
        if (linked != 0) t.write(nodes[i].value, t.read(nodes[i].value) + 1);
        return linked;
      });
    }
  };
  const auto looks = [=] {
    prepare<Driver>();
    for (unsigned i = 0; i < kRounds; ++i) {
      meeting.wait();
      const long seen =
          Driver::read_only([i](auto& t) { return t.read(links[i].value) != 0 ? t.read(nodes[i].value) : kIntact; });
      check(is_intact(seen), "a linked node, as a transaction sees it");
    }
  };
  together(unlinks, changes, looks);
  for (unsigned i = 0; i < kRounds; ++i) {
    check(unlinked[i] == kIntact + changed[i], "an unlinked node, read plainly");
    check(nodes[i].value == 0, "an unlinked node, written plainly");
  }
}

template <class Driver>
void alone() {
  constexpr unsigned kRounds = 12;
  static Apart left, right;
  static Meeting<3> meeting;
  const auto add = [](auto& t) {
    const long was = t.read(left.value);
    check(was == t.read(right.value), "two words that change together");
    t.write(left.value, was + 1);
    t.write(right.value, was + 1);
  };
  const auto beside = [=] {
    prepare<Driver>();
    meeting.wait();
    for (unsigned i = 0; i < kRounds; ++i)
      Driver::update([](auto& t) {
        const long was = t.read(left.value);
        t.write(left.value, was + 1);
        t.write(right.value, t.read(right.value) + 1);
      });
  };
  const auto in_place = [=] {
    prepare<Driver>();
    meeting.wait();
    for (unsigned i = 0; i < kRounds; ++i) Driver::irrevocable(add);
  };
  together(beside, in_place, in_place);
  check(left.value == 3 * kRounds && right.value == 3 * kRounds, "additions of those that ran alone and of others");
}

// Attempts that others may have to wait for end in another way than those that need not be waited for.
struct Piece {
  std::string_view name;
  void (*run)();
  tm::Privatization privatization;
};
template <class Driver>
constexpr std::array kPieces{Piece{"bank", bank<Driver>, tm::Privatization::none},
                             Piece{"skew", skew<Driver>, tm::Privatization::none},
                             Piece{"published", published<Driver>, tm::Privatization::commit},
                             Piece{"privatized", privatized<Driver>, tm::Privatization::commit},
                             Piece{"shared", privatized<Driver>, tm::Privatization::shared},
                             Piece{"alone", alone<Driver>, tm::Privatization::none}};

}  // namespace

int main(int count, char** words) {
  bool ran = count == 1;
  for (const tm::AlgorithmDescription& algorithm : Tested::kDescriptions) {
    if (algorithm.threads_max == 1) continue;
    Tested::with<false>(algorithm.name, [&]<class Algorithm>() {
      for (const Piece& piece : kPieces<tm::Driver<Algorithm>>) {
        const std::string word = std::string(piece.name) + "/" + std::string(algorithm.name);
        if (count == 1) std::puts(word.c_str());
        if (ran || word != words[1]) continue;
        tm::Config small;
        small.records_log2 = tm::kRecordsLog2Min;
        small.shift = 6;  // a stripe for each of what lies apart
        small.privatization = piece.privatization;
        tm::configure(small);
        loam::platform::announce_heavy();  // its first call sets a static variable; do that before there are threads
        piece.run();
        std::puts("done");
        ran = true;
      }
    });
  }
  return ran ? 0 : 2;
}
