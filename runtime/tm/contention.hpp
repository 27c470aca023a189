// contention: what an attempt does that finds a record locked by another, and what it does before its next try. A
// run-time choice (Config::manager), asked on slow paths only.
//   suicide    aborts at once, tries again at once                     short transactions on as many cores as threads
//   delay      aborts at once, tries again when that record is free    the best simple one at high conflict
//   backoff    aborts at once, waits a random time that doubles        many threads on few words
//   karma      who has done more work, its aborted tries included,     long beside short ones, fair by work
//              waits for the owner; who has done less aborts
//   timestamp  who lost first waits for the owner, the younger aborts  no writer is passed over by younger ones
//   Nobody is killed: an attempt cannot be made to abort by another one, it can only be waited for.
//   Waits     Inside an attempt, holding records: only for an owner of lower priority, looked at again all the time,
//             and never longer than Waits::owner_ns (the owner may not be running). Two that hold what the other wants
//             see each other's priority: the lower one aborts. Before the next try nothing is held: up to kFreeWaitNs
//             for a record to become free, up to kBackoffNsMost at random.
//   Alone     After Config::serialise_after aborts a transaction runs alone, whatever the manager. Not counted are
//             those behind which the owner was seen standing still (kEagerRetries aborts in a row, then a wait in which
//             the record kept the same lock): such an owner has lost its core, going alone would have to wait for it as
//             well, with everybody else stopped. Nor those of retry().
//   Limits    Reads are invisible: priorities order who waits at locks, they do not protect what a transaction has
//             read. A long reader among many writers is saved by running alone, not by its age.
//   Source    Scherer and Scott, PODC 2005 (karma, timestamp, backoff); TinySTM, PPoPP 2008 (suicide, delay); wait-die:
//             Rosenkrantz et al., TODS 1978. Here the one with the higher priority waits where theirs would kill.
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <array>
#include <string_view>

namespace loam::tm::contention {

inline constexpr std::array<std::string_view, 5> kManagerNames{"suicide", "delay", "backoff", "karma", "timestamp"};

// Aborts in a row after which every manager waits for the record that was met, as `delay` does from the first on.
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

// The last of those aborts was none of a conflict.
void excuse(Descriptor& d) noexcept;

// Whether the transaction has aborted so often that it has to run alone; counts it.
bool runs_alone(Descriptor& d, unsigned aborts) noexcept;

// The transaction has ended after at least one abort, or by an exception.
void settled(Descriptor& d) noexcept;

}  // namespace loam::tm::contention
