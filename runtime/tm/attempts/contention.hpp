// contention: what an attempt does when it finds a record locked by another one, and what it does before its next try.
// Config::manager chooses the policy at run time; only slow paths ask.
//   suicide    aborts at once, tries again at once                     short transactions, a core for each thread
//   pure-suicide   the same, however often: no wait, never alone       to repeat what was measured with TinySTM
//   delay      aborts at once, tries again when that record is free    the best simple one at high conflict
//   backoff    aborts at once, waits a random time that doubles        many threads on few words
//   karma      more work done (aborted tries included): waits for the  long beside short ones, fair by work
//              owner; less work done: aborts
//   timestamp  lost first: waits for the owner; the younger aborts     no writer is overtaken by younger ones
//   No policy makes another attempt abort. It can only wait for it.
//   Waits     Inside an attempt records are held. So it waits only for an owner of lower priority, spinning, and never
//             longer than Waits::owner_ns, because the owner may not be running. If two attempts hold what the other
//             needs, each sees the other's priority and the lower one aborts. Before the next try nothing is held: it
//             waits up to Waits::free_ns for a record to become free, or up to kBackoffNsMost at random.
//   Alone     After Config::serialise_after aborts a transaction runs alone, under every manager but pure-suicide. Two
//             kinds of abort do not count. First, those behind a stalled owner: after kEagerRetries aborts in a row, a
//             wait in which the record kept the same lock. That owner has lost its core; a transaction that runs alone
//             would have to wait for it too, with everybody else stopped. Second, those of retry().
//   Pure      Under pure-suicide two transactions may abort each other without end, and with more threads than cores
//             one may spin until the owner gets its core back: TinySTM's own is so.
//   Limits    Reads are invisible: priorities decide who waits at locks; they do not protect what a transaction has
//             read. A long reader among many writers is saved by running alone, not by its age.
//   Source    Scherer and Scott, PODC 2005 (karma, timestamp, backoff); TinySTM, PPoPP 2008 (pure-suicide, delay);
//             wait-die: Rosenkrantz et al., TODS 1978. Where theirs kill the one with the lower priority, ours wait for
//             it.
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <array>
#include <string_view>

namespace loam::tm::contention {

inline constexpr std::array<std::string_view, 6> kManagerNames{"suicide", "pure-suicide", "delay",
                                                               "backoff", "karma",        "timestamp"};

// Aborts in a row after which every manager but pure-suicide waits for the record that was met, as `delay` does from
// the first on.
inline constexpr unsigned kEagerRetries = 8;
// How long to wait for an owner inside an attempt, and for a record to become free before the next: about what it costs
// to give up the core and get it back a few times. Changed by tests alone, before threads start.
struct Waits {
  std::uint64_t owner_ns = 50'000, free_ns = 50'000;
};
inline constinit Waits waits;
// The random wait of `backoff` is below 2 x kBackoffNsLeast after the first abort, and never above kBackoffNsMost.
inline constexpr std::uint64_t kBackoffNsLeast = 128, kBackoffNsMost = 100'000;

// Below what `backoff` draws its wait after `aborts` in a row (at least 1).
constexpr std::uint64_t backoff_ns_below(unsigned aborts) noexcept {
  constexpr unsigned kDoublingsMax = 16;
  const std::uint64_t doubled = kBackoffNsLeast << (aborts < kDoublingsMax ? aborts : kDoublingsMax);
  return doubled < kBackoffNsMost ? doubled : kBackoffNsMost;
}

// `record` was `seen` locked by another thread. returns true once it has changed, false if the caller has to abort
bool wait_for_owner(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept;

// The attempt is about to abort because `record` was `seen`. Its logs are still there.
void lost(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept;

// Before the next try, outside of attempts. aborts: in a row so far
void before_retry(Descriptor& d, unsigned aborts) noexcept;

// The last of those aborts was not because of a conflict, so it does not count.
void excuse(Descriptor& d) noexcept;

// Whether the transaction has aborted so often that it has to run alone; counts it.
bool runs_alone(Descriptor& d, unsigned aborts) noexcept;

// The transaction has ended after at least one abort, or by an exception.
void settled(Descriptor& d) noexcept;

}  // namespace loam::tm::contention
