// The wait that commits share (runtime/tm/attempts/grace.hpp), under every schedule: what privatization needs of it, with
// attempts of two accesses. A transaction would be too long for that; transactional_orders.cpp has whole ones.
//   grace_orders PIECE together|apart   all threads in one group, or each in its own
//   zombie                 an attempt that has seen the node linked reads it; a commit unlinks it, and writes it plainly
//   write-back             the same, with an attempt that writes the node
//   zombie-by-proxy        a third thread unlinks; the owner reads that in an attempt of its own
//   write-back-by-proxy    the same, with an attempt that writes the node
//   settled                the owner has waited for nobody: it has found the version of the commit settled
// Prints what the attempt and the owner did.
#include "runtime/tm/attempts/grace.hpp"
#include "runtime/tm/runtime.hpp"
#include "tests/simulator/pieces.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
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

void find_settled_and_use() {
  if (unlinked.load(std::memory_order_acquire) == 0) return;
  std::uint64_t now = 1;
  tm::version_clock.now.compare_exchange_strong(now, 2, std::memory_order_seq_cst);
  if (grace::settled(owner) >= 2) use_plainly();
}

struct Piece {
  std::string_view name;
  void (*run)();
};
constexpr Piece kPieces[] = {
    {"zombie", [] { together(read_in_an_attempt, unlink_and_use); }},
    {"write-back", [] { together(write_in_an_attempt, unlink_and_use); }},
    {"zombie-by-proxy", [] { together(read_in_an_attempt, unlink, see_and_use); }},
    {"write-back-by-proxy", [] { together(write_in_an_attempt, unlink, see_and_use); }},
    {"settled", [] { together(write_in_an_attempt, unlink, find_settled_and_use); }},
};

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const bool apart = std::string_view(words[2]) == "apart";
  unsigned core = 0;
  for (tm::Descriptor* each : {&older, &unlinker, &owner}) {
    grace::join(*each, core);
    if (apart) core += 8;
  }
  for (const Piece& piece : kPieces) {
    if (piece.name != words[1]) continue;
    piece.run();
    const bool wrote = attempt_used_it && std::string_view(words[1]).find("zombie") == std::string_view::npos;
    if (owner_used_it) {
      check(owner_found == (wrote ? kWritten : 0), "an unlinked node, read plainly");
      check(node.load() == kPlain, "an unlinked node, written plainly");
    }
    std::printf("%s %s\n", attempt_used_it ? "linked" : "-", owner_used_it ? "owned" : "-");
    return 0;
  }
  return 2;
}
