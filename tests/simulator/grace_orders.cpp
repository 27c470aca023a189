// The wait that commits share (runtime/tm/attempts/grace.hpp), under every schedule: what privatization needs of it, with
// attempts of two accesses. A transaction would be too long for that; transactional_orders.cpp has whole ones.
//   grace_orders PIECE/together   all threads in one group; without arguments, it lists the pieces
//   grace_orders PIECE/paired     the attempt's thread in one, the others in another
//   grace_orders PIECE/apart      each thread in its own
//   grace_orders PIECE/GROUPS outcome   prints what the attempt and the owner did
//   zombie                 an attempt that has seen the node linked reads it; a commit unlinks it, and writes it plainly
//   write-back             the same, with an attempt that writes the node
//   zombie-by-proxy        a third thread unlinks; the owner reads that in an attempt of its own
//   write-back-by-proxy    the same, with an attempt that writes the node
//   settled                the owner has waited for nobody: it has found the version of the commit settled
#include "runtime/tm/attempts/grace.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/simulator/pieces.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

namespace tm = loam::tm;
namespace grace = loam::tm::grace;
using loam::tests::check, loam::tests::together;

constexpr long kWritten = 7, kPlain = 1;
constexpr std::uint64_t kNeverSettled = ~std::uint64_t{0};

tm::Descriptor older(tm::Mode::idle), unlinker(tm::Mode::idle), owner(tm::Mode::idle);
// unlinked stands for the ownership record of the link. node is atomic because the checker returns older values for atomics
// only.
std::atomic<int> unlinked{0};
std::atomic<long> node{0};
bool attempt_used_it = false, owner_used_it = false;
long owner_found = 0;

void read_in_an_attempt() {
  grace::enter(older);
  if (unlinked.load(std::memory_order_acquire) == 0) {
    check(node.load(std::memory_order_relaxed) == 0, "a linked node, read in an attempt");
    attempt_used_it = true;
  }
  grace::leave(older);
}

void write_in_an_attempt() {
  grace::enter(older);
  if (unlinked.load(std::memory_order_acquire) == 0) {
    node.store(kWritten, std::memory_order_relaxed);
    attempt_used_it = true;
  }
  grace::leave(older);
}

void use_plainly() {
  owner_found = node.load(std::memory_order_relaxed);
  node.store(kPlain, std::memory_order_relaxed);
  owner_used_it = true;
}

void unlink_and_use() {
  unlinked.store(1, std::memory_order_release);
  grace::wait(owner, kNeverSettled);
  use_plainly();
}

// The commit's lock, then its version, from a clock that commits do not advance (dctl.hpp).
void unlink() {
  grace::enter(unlinker);
  unlinked.exchange(1, std::memory_order_seq_cst);
  const std::uint64_t version = tm::version_clock.now.load(std::memory_order_seq_cst) + 1;
  grace::leave(unlinker);
  grace::wait(unlinker, version);
}

void see_and_use() {
  grace::enter(owner);
  const bool seen = unlinked.load(std::memory_order_acquire) == 1;
  grace::leave(owner);
  if (!seen) return;
  grace::wait(owner, kNeverSettled);
  use_plainly();
}

// Looks several times: in a few seeds only do the others come to their end between two accesses.
void find_settled_and_use() {
  constexpr int kLooks = 30;
  for (int look = 0; unlinked.load(std::memory_order_acquire) == 0;)
    if (++look == kLooks) return;
  std::uint64_t now = 1;
  tm::version_clock.now.compare_exchange_strong(now, 2, std::memory_order_seq_cst);
  for (int look = 0; look < kLooks; ++look)
    if (grace::settled(owner) >= 2) return use_plainly();
}

struct Piece {
  std::string_view name;
  void (*run)();
  bool writes;  // the attempt does
};
constexpr Piece kPieces[] = {
    {"zombie", [] { together(read_in_an_attempt, unlink_and_use); }, false},
    {"write-back", [] { together(write_in_an_attempt, unlink_and_use); }, true},
    {"zombie-by-proxy", [] { together(read_in_an_attempt, unlink, see_and_use); }, false},
    {"write-back-by-proxy", [] { together(write_in_an_attempt, unlink, see_and_use); }, true},
    {"settled", [] { together(write_in_an_attempt, unlink, find_settled_and_use); }, true},
};

// Cores of groups of their own.
struct Placing {
  std::string_view name;
  unsigned older, unlinker, owner;
};
constexpr Placing kPlacings[] = {{"together", 0, 0, 0}, {"paired", 0, 8, 8}, {"apart", 0, 8, 16}};

void run(const Piece& piece, const Placing& placing, bool tells) {
  grace::join(older, placing.older);
  grace::join(unlinker, placing.unlinker);
  grace::join(owner, placing.owner);
  piece.run();
  if (owner_used_it) {
    const bool wrote = attempt_used_it && piece.writes;
    check(owner_found == (wrote ? kWritten : 0), "an unlinked node, read plainly");
    check(node.load() == kPlain, "an unlinked node, written plainly");
  }
  if (tells)
    std::printf("%s, %s\n", attempt_used_it ? "linked" : "-", owner_used_it ? "owned" : "-");
  else
    std::puts("done");
}

}  // namespace

int main(int count, char** words) {
  for (const Piece& piece : kPieces)
    for (const Placing& placing : kPlacings) {
      const std::string word = std::string(piece.name) + "/" + std::string(placing.name);
      if (count == 1) std::puts(word.c_str());
      if (count == 1 || word != words[1]) continue;
      run(piece, placing, count > 2);
      return 0;
    }
  return count == 1 ? 0 : 2;
}
