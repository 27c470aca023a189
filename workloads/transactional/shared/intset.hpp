// The integer-set workload's description and what is the same for every implementation of the sets: keys, the harness's
// records, the check of the final contents. intset.cpp runs it over any synchronisation, peers/plain/ without any.
#pragma once

#include "runtime/base/random.hpp"
#include "structures/verdict.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loam::workloads::intset {

inline constexpr std::int64_t kNoKey = -1;
inline constexpr unsigned kPercent = 100;

// The description, with the function that runs it.
Workload workload(bool (*run)(const Options& options, Recorder& recorder));

// The parameters, looked up once.
struct Settings {
  explicit Settings(const Options& options);

  std::string_view structure;
  bool multiplicative, erand48;
  bool overwrites;  // each word of a node that a removal frees
  std::uint32_t range, update_percent;
  std::uint64_t seed, elements, duration_ms;  // duration_ms 0: `operations` per thread
  std::uint64_t operations;                   // ~0: no limit
};

// Stream 0 of the seed fills the set, thread i draws from stream i + 1.

// One draw decides the operation (upper half) and the key (lower half).
class FastKeys {
 public:
  FastKeys(const Settings& settings, std::uint64_t stream) noexcept
      : random_(settings.seed, stream),
        range_(settings.range),
        update_below_((std::uint64_t{settings.update_percent} << 32) / kPercent) {}

  bool next_is_update() noexcept {
    word_ = random_();
    return word_ >> 32 < update_below_;
  }
  std::int64_t key() const noexcept { return base::scale_to(static_cast<std::uint32_t>(word_), range_); }
  // For the filling, which has no operation to draw.
  std::int64_t next_key() noexcept { return random_.below(range_); }

 private:
  base::Random random_;
  std::uint32_t range_;
  std::uint64_t update_below_;
  std::uint64_t word_ = 0;
};

// Two draws of libc's erand48 per look-up or insertion, one per removal, as the published benchmark has it.
class Erand48Keys {
 public:
  Erand48Keys(const Settings& settings, std::uint64_t stream) noexcept
      : random_(settings.seed, stream), range_(settings.range), update_percent_(settings.update_percent) {}

  bool next_is_update() noexcept { return random_.below(kPercent) < update_percent_; }
  std::int64_t key() noexcept { return random_.below(range_); }
  std::int64_t next_key() noexcept { return key(); }

 private:
  base::Erand48 random_;
  std::uint32_t range_, update_percent_;
};

// What one worker leaves behind. Aligned, so that neighbours do not share a line.
struct alignas(platform::kApartBytes) WorkerResult {
  std::uint64_t operations = 0;       // in the timed phase
  TmCounters counters;                // in the timed phase
  std::uint64_t lookup_hits = 0;      // over all phases; kept so that no compiler may drop a look-up
  std::uint64_t updates_lost = 0;     // removals that did not find the key this thread had inserted: always a bug
  std::int64_t outstanding = kNoKey;  // the key inserted last and not yet removed
};

// The results of the first `threads` workers; static, so that they move no block of the allocator under study.
std::span<WorkerResult> worker_results(unsigned threads = kThreadsMax) noexcept;

struct Check {
  bool verified;
  std::string_view message;
};

// The final contents must be the initial keys and the outstanding ones, and the structure's own invariants hold.
// for_each_key(visit): calls visit(key) for each key of the structure.
class ContentCheck {
 public:
  explicit ContentCheck(const Settings& settings);
  ~ContentCheck();
  ContentCheck(const ContentCheck&) = delete;
  ContentCheck& operator=(const ContentCheck&) = delete;

  template <class Set>
  Check run(const Set& set, std::span<const WorkerResult> results) {
    const structures::Verdict verdict = set.verify();
    if (!verdict.holds()) return {false, verdict.broken};
    expect(results);
    set.for_each_key([this](std::int64_t key) { found(key); });
    return conclude(verdict.elements, results);
  }

 private:
  void expect(std::span<const WorkerResult> results);
  void found(std::int64_t key) noexcept;
  Check conclude(std::uint64_t elements, std::span<const WorkerResult> results) const noexcept;

  const Settings& settings_;
  std::uint64_t expected_ = 0, foreign_ = 0;
  std::uint8_t* present_;  // range bytes from the operating system: 1 = expected
};

// What was measured, for report().
struct Findings {
  const Team& team;
  std::optional<TmRecords> tm;  // of a transactional memory that counts what it does
  Check check;
  std::int64_t live_blocks_delta;                // blocks from the allocator minus nodes in the structure
  std::optional<std::uint64_t> live_bytes = {};  // that the structure asked for and holds, where it knows
};

// Records the iteration, the histogram and the end. returns whether all was right
bool report(Recorder& recorder, std::span<const WorkerResult> results, const Findings& findings);

}  // namespace loam::workloads::intset
