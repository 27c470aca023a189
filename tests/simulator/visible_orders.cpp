// Reads that are shown (runtime/tm/algorithms/parts/visible_reads.hpp), under the schedule checker, with whole transactions of
// two-phase: of a reader and a writer one sees the other, in whatever way the read is shown.
//   visible_orders PIECE/WAY   without arguments, it lists them
//     skew    each of two transactions reads the word that the other one writes; one sees the other's write
//     sums    two threads move money between two accounts, and a third adds them up
//     together   bytes of one group                    without   no thread has a place: bits alone
//     apart      bytes, a group for each thread        marked    bits, because the records are marked; or bytes
//     mixed      one thread has a place, others not    first     the reads are their threads' first (of skew)
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithms/two_phase.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/simulator/pieces.hpp"
#include "tests/simulator/transactional.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

namespace tm = loam::tm;
using Transactions = tm::Driver<tm::TwoPhase<false>>;
using loam::tests::Apart, loam::tests::Meeting, loam::tests::check, loam::tests::prepare, loam::tests::together;

struct Way {
  std::string_view name;
  unsigned groups, places;
  bool marks = false, first = false;
};
constexpr Way kWays[] = {{.name = "together", .groups = 1, .places = 8},
                         {.name = "apart", .groups = 8, .places = 1},
                         {.name = "mixed", .groups = 1, .places = 1},
                         {.name = "without", .groups = 0, .places = 0},
                         {.name = "marked", .groups = 1, .places = 8, .marks = true},
                         {.name = "first", .groups = 8, .places = 1, .first = true}};

void mark(const Apart& word) {
  tm::Orec& record = tm::shared.map.record(&word.value);
  const std::uint64_t version = record.load(std::memory_order_relaxed);
  if (!tm::is_locked(version)) tm::visible_reads::mark(record, version);
}

void skew(const Way& way) {
  constexpr unsigned kRounds = 16;
  using Side = std::array<Apart, kRounds>;
  static Side left, right;
  static Meeting<2> meeting;
  const unsigned rounds = way.first ? 1 : kRounds;
  const auto raise = [&way, rounds](Side& own, Side& other) {
    if (!way.first) prepare<Transactions>();
    for (unsigned i = 0; i < rounds; ++i) {
      if (way.marks) mark(own[i]);
      if (!way.first) meeting.wait();
      Transactions::update([&](auto& t) {
        if (t.read(other[i].value) == 0) t.write(own[i].value, 1);
      });
    }
  };
  together([=] { raise(left, right); }, [=] { raise(right, left); });
  for (unsigned i = 0; i < rounds; ++i)
    check(left[i].value + right[i].value == 1, "of two, one sees the other's write");
}

void sums(const Way& way) {
  constexpr unsigned kMoves = 24, kLooks = 24;
  static Apart from, to;
  static Meeting<3> meeting;
  const auto moves = [] {
    prepare<Transactions>();
    meeting.wait();
    for (unsigned i = 0; i < kMoves; ++i)
      Transactions::update([](auto& t) {
        t.write(from.value, t.read(from.value) - 1);
        t.write(to.value, t.read(to.value) + 1);
      });
  };
  const auto adds = [&way] {
    prepare<Transactions>();
    meeting.wait();
    for (unsigned i = 0; i < kLooks; ++i) {
      if (way.marks) mark(from), mark(to);
      const long sum = Transactions::read_only([](auto& t) { return t.read(from.value) + t.read(to.value); });
      check(sum == 0, "the sum of the accounts, as a transaction sees it");
    }
  };
  together(moves, moves, adds);
  check(from.value == -2L * kMoves && to.value == 2L * kMoves, "the accounts in the end");
}

struct Piece {
  std::string_view name;
  void (*run)(const Way& way);
};
constexpr Piece kPieces[] = {{"skew", skew}, {"sums", sums}};

}  // namespace

int main(int count, char** words) {
  for (const Piece& piece : kPieces)
    for (const Way& way : kWays) {
      if (way.first && piece.run != skew) continue;
      const std::string word = std::string(piece.name) + "/" + std::string(way.name);
      if (count == 1) std::puts(word.c_str());
      if (count == 1 || word != words[1]) continue;
      tm::Config small;
      small.records_log2 = tm::kRecordsLog2Min;
      small.shift = 6;            // a stripe for each of what lies apart
      small.serialise_after = 0;  // nobody runs alone
      tm::configure(small);
      tm::read_bytes::limit(way.groups, way.places);
      loam::platform::announce_heavy();  // its first call sets a static variable; do that before there are threads
      piece.run(way);
      std::puts("done");
      return 0;
    }
  return count == 1 ? 0 : 2;
}
