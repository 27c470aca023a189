// Changes of the algorithm under auto (runtime/tm/attempts/switching.hpp), under the schedule checker, with whole transactions:
// what privatization needs where an attempt of one algorithm may have begun before a change and the commit comes after it.
//   switching_orders PIECE/PLACE/CHANGE   without arguments, it lists them
//   switching_orders PIECE/PLACE/CHANGE outcome   one round, and prints who used the node
//     zombie                 an attempt that has seen the node linked reads it; a commit unlinks it, and writes it plainly
//     write-back             the same, with an attempt that writes the node
//     zombie-by-proxy        a third thread unlinks; the owner learns that in a transaction of its own
//     write-back-by-proxy    the same, with an attempt that writes the node
//     before    who unlinks changes the algorithm first       to-many   from norec to dctl
//     behind    ... afterwards                                to-few    from dctl to norec
//     beside    another thread changes it
//   switching_orders bank   transactions move money, and the algorithm changes all the time; every one sees the same sum
#include "runtime/platform/machine.hpp"
#include "runtime/tm/algorithms/auto.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/attempts/switching.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/simulator/pieces.hpp"
#include "tests/simulator/transactional.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

namespace tm = loam::tm;
using Transactions = tm::Driver<tm::Auto<false>>;
using loam::tests::Apart, loam::tests::bank, loam::tests::check, loam::tests::prepare, loam::tests::together;

constexpr std::uint64_t kLongNs = 1'000'000'000'000;
constexpr unsigned kRounds = 12;
constexpr long kWritten = 7, kPlain = 100;

template <class T>
using Rounds = std::array<T, kRounds>;

// Of a round: whether the node is linked, its two words, and who found it.
struct Round {
  Apart link{1}, node, too;
  bool attempt_used_it = false, owner_used_it = false;
};
Rounds<Round> all;
unsigned rounds = kRounds;
bool to_many = false;

// Threads wait here for each other. A thread learns only that the others have come so far.
std::atomic<unsigned> came{0}, threads{0};
void meet(unsigned round) noexcept {
  came.fetch_add(1, std::memory_order_acq_rel);
  while (came.load(std::memory_order_acquire) < (round + 1) * threads.load(std::memory_order_relaxed)) {
  }
}

void change(unsigned round) {
  check(tm::switching::change_to((round % 2 == 0) == to_many, kLongNs), "a change of the algorithm");
}

void read_linked(unsigned i) {
  Round& round = all[i];
  const auto look = [&](auto& t) {
    if (t.read(round.link.value) == 0) return false;
    check(t.read(round.node.value) == t.read(round.too.value), "a linked node, read in an attempt");
    return true;
  };
  round.attempt_used_it = i % 2 == 0 ? Transactions::update(look) : Transactions::read_only(look);
}

void write_linked(unsigned i) {
  Round& round = all[i];
  round.attempt_used_it = Transactions::update([&](auto& t) {
    if (t.read(round.link.value) == 0) return false;
    t.write(round.node.value, kWritten);
    t.write(round.too.value, kWritten);
    return true;
  });
}

void unlink(unsigned i) {
  Transactions::update([i](auto& t) { t.write(all[i].link.value, 0); });
}

// The loads stand for plain ones. They are atomic because the checker returns older values for atomics only.
void use_plainly(unsigned i) {
  Round& round = all[i];
  const long found = std::atomic_ref(round.node.value).load(std::memory_order_relaxed);
  check(found == std::atomic_ref(round.too.value).load(std::memory_order_relaxed), "an unlinked node, read plainly");
  round.node.value = kPlain + found;
  round.too.value = kPlain + found;
  round.owner_used_it = true;
}

bool is_unlinked(unsigned i) {
  return Transactions::read_only([i](auto& t) { return t.read(all[i].link.value) == 0; });
}

enum class Place { before, behind, beside };

struct Piece {
  std::string_view name;
  void (*attempt)(unsigned round);
  bool by_proxy;
};
constexpr Piece kPieces[] = {{"zombie", read_linked, false},
                             {"write-back", write_linked, false},
                             {"zombie-by-proxy", read_linked, true},
                             {"write-back-by-proxy", write_linked, true}};
struct Named {
  std::string_view name;
  Place place;
};
constexpr Named kPlaces[] = {{"before", Place::before}, {"behind", Place::behind}, {"beside", Place::beside}};

template <class Body>
auto in_rounds(const Body& body) {
  return [body] {
    prepare<Transactions>();
    for (unsigned i = 0; i < rounds; ++i) {
      meet(i);
      body(i);
    }
  };
}

void run(const Piece& piece, Place place) {
  const auto unlinks = [=](unsigned i) {
    if (place == Place::before) change(i);
    unlink(i);
    if (place == Place::behind) change(i);
  };
  const auto owns = [=](unsigned i) {
    if (piece.by_proxy) {
      if (is_unlinked(i)) use_plainly(i);
    } else {
      unlinks(i);
      use_plainly(i);
    }
  };
  threads = 2 + unsigned{piece.by_proxy} + unsigned{place == Place::beside};
  if (piece.by_proxy && place == Place::beside)
    together(in_rounds(piece.attempt), in_rounds(owns), in_rounds(unlinks), in_rounds(change));
  else if (piece.by_proxy)
    together(in_rounds(piece.attempt), in_rounds(owns), in_rounds(unlinks));
  else if (place == Place::beside)
    together(in_rounds(piece.attempt), in_rounds(owns), in_rounds(change));
  else
    together(in_rounds(piece.attempt), in_rounds(owns));
  for (unsigned i = 0; i < rounds; ++i) {
    const Round& round = all[i];
    const long written = round.attempt_used_it && piece.attempt == write_linked ? kWritten : 0;
    check(round.node.value == written + (round.owner_used_it ? kPlain : 0), "an unlinked node, in the end");
    check(round.node.value == round.too.value, "both of its words");
  }
}

void begin(bool with_many) {
  tm::Config small;
  small.records_log2 = tm::kRecordsLog2Min;
  small.shift = 6;            // a stripe for each of what lies apart
  small.serialise_after = 0;  // the gate is for changes
  tm::configure(small);
  loam::platform::announce_heavy();  // its first call sets a static variable; do that before there are threads
  tm::switching::fix(with_many ? tm::switching::Runs::many : tm::switching::Runs::few);
  to_many = !with_many;
}

}  // namespace

int main(int count, char** words) {
  if (count == 1) std::puts("bank");
  if (count > 1 && words[1] == std::string_view("bank")) {
    begin(false);
    bank<Transactions>(change);
    std::puts("done");
    return 0;
  }
  for (const Piece& piece : kPieces)
    for (const Named& place : kPlaces)
      for (const std::string_view direction : {"to-many", "to-few"}) {
        const std::string word = std::string(piece.name) + "/" + std::string(place.name) + "/" + std::string(direction);
        if (count == 1) std::puts(word.c_str());
        if (count == 1 || word != words[1]) continue;
        if (count > 2) rounds = 1;
        begin(direction == "to-few");
        run(piece, place.place);
        if (count > 2)
          std::printf("%s, %s\n", all[0].attempt_used_it ? "linked" : "-", all[0].owner_used_it ? "owned" : "-");
        else
          std::puts("done");
        return 0;
      }
  return count == 1 ? 0 : 2;
}
