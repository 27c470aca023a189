// contention: what an attempt does that finds a record locked by another, and what it does before its next try. A
// run-time choice (Config::manager), asked on slow paths only.
//   suicide    aborts at once, tries again at once                     short transactions on as many cores as threads
//   delay      aborts at once, tries again when that record is free    the best simple one at high conflict
//   backoff    aborts at once, waits a random time that doubles        many threads on few words
//   karma      who has lost more work in its aborted tries waits for the owner, who has lost less aborts
//   timestamp  who lost first waits for the owner, the younger aborts  no transaction starves
//   Who waits has the higher priority of the two, so waits form no circle; they are bounded all the same, since an
//   owner may not be running.
//   Source  Scherer and Scott, PODC 2005 (karma, timestamp, backoff); TinySTM, PPoPP 2008 (suicide, delay); wait-die:
//           Rosenkrantz et al., TODS 1978.
#pragma once

#include "runtime/tm/descriptor.hpp"

#include <array>
#include <string_view>

namespace loam::tm::contention {

inline constexpr std::array<std::string_view, 5> kManagerNames{"suicide", "delay", "backoff", "karma", "timestamp"};

// `record` was `seen` locked by another thread. returns true once it has changed, false if the caller has to abort
bool wait_for_owner(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept;

// The attempt is about to abort because `record` was `seen`.
void lost(Descriptor& d, const Orec& record, std::uint64_t seen) noexcept;

// Before the next try, outside of attempts. aborts: in a row so far
void before_retry(Descriptor& d, unsigned aborts) noexcept;

// The transaction has committed after at least one abort.
void settled(Descriptor& d) noexcept;

}  // namespace loam::tm::contention
