// elision: a critical section as a hardware transaction, under a lock where that does not work.
//   Source      Rajwar and Goodman, "Speculative lock elision", MICRO 2001; the retry policy: policy.hpp.
//   Guarantees  mutual exclusion as if the lock were held; no attempt ever sees a torn state, because the processor
//               aborts it first. Publication and privatization safe. A body that runs under the lock cannot be undone.
//   Cost        begin, one load of the lock's line, commit: about three times an uncontended lock. Disjoint sections
//               write no common line.
//   Exceptions  leave a body under the lock only, where what it did stays; the lock is free again. In an attempt a throw
//               aborts.
//   When not    sections longer than a tenth of a millisecond, or larger than the first-level cache: each costs a
//               failed attempt and then takes the lock. Nested sections of the same lock: under the lock the inner one
//               would wait for itself.
//   The body    is plain code. It may run several times, but takes effect once. An abort also restores the local
//               variables of its callers. It calls the process's malloc and free: after an abort, the blocks of the
//               attempt were never allocated. An allocator with private pools may abort the attempt; it is then asked
//               to provide memory before the next attempt.
//   Memory      If malloc lends stocks, a body that takes a Section allocates from them (lent.hpp).
#pragma once

#include "runtime/tm/hardware/elided_memory.hpp"

#include "runtime/tm/hardware/fallback_lock.hpp"
#include "runtime/tm/hardware/policy.hpp"
#include "runtime/tm/types.hpp"

#include <mutex>
#include <type_traits>

namespace loam::tm::hardware {

// Runs f(in_hardware) as an elided section. provide(code): as provide() of lent.hpp.
template <class F, class Provide>
[[gnu::always_inline]] inline auto elide_with(FallbackLock& lock, Statistics& statistics, Provide&& provide, F&& f) {
  using Result = std::invoke_result_t<F&, bool>;
  static_assert(!std::is_void_v<Result> && std::is_trivially_copyable_v<Result>,
                "the result leaves the attempt in registers");
  for (unsigned tries = 1;; ++tries) {
    lock.wait_until_free();
    const unsigned status = platform::transaction_begin();
    if (status == platform::kTransactionStarted) [[likely]] {
      // Whoever takes the lock from now on aborts this attempt.
      if (lock.held()) platform::transaction_abort<kFallbackTaken>();
      const Result result = f(true);
      platform::transaction_commit();
      ++statistics.commits;
      ++statistics.hardware;
      if (tries > 1) statistics.count_commit_after(tries - 1);
      return result;
    }
    ++statistics.aborts[static_cast<std::size_t>(cause_of(status))];
    const Next next = next_after(status, tries);
    if (next == Next::fall_back || (next == Next::provide && !provide(platform::explicit_code(status)))) {
      const Result result = [&] {
        const std::lock_guard held(lock);  // an exception of the body frees it, too
        return f(false);
      }();
      ++statistics.commits;
      ++statistics.serialised;
      statistics.count_commit_after(tries);
      return result;
    }
  }
}

// Runs f() as if `lock` were held, and counts. `statistics`: of the calling thread; `serialised` counts runs under the
// lock.
template <class F>
[[gnu::always_inline]] inline auto elide(FallbackLock& lock, Statistics& statistics, F&& f) {
  const auto provide = [](unsigned code) {
    loam_provision(platform::provision_bytes(code));
    return true;
  };
  return elide_with(lock, statistics, provide, [&f](bool) { return f(); });
}

// The same for f(section), which allocates and frees by a Section. `memory`: of the calling thread
template <class F>
[[gnu::always_inline]] inline auto elide(FallbackLock& lock, Statistics& statistics, ElidedMemory& memory, F&& f) {
  struct Use {
    ~Use() { memory.end(section); }  // also if the body throws: what it did under the lock stays
    ElidedMemory& memory;
    Section section;
  };
  memory.begin();
  Use use{memory, Section(memory)};
  const auto provide = [&memory](unsigned code) { return hardware::provide(memory.stocks(), code); };
  return elide_with(lock, statistics, provide, [&](bool in_hardware) {
    use.section.begin(in_hardware);
    return f(use.section);
  });
}

}  // namespace loam::tm::hardware
