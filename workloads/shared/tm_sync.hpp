// tm_sync: Loam's transactional memory as a synchronisation, for any of its algorithms.
//   A file of workloads/syncs/ names the algorithm:
//     using Sync = TmSync<tm::EtlWb, false>;
//     using BlameSync = TmSync<tm::EtlWb, true>;
//   Parameters: how addresses map to ownership records, where the algorithm has any, the contention manager,
//   privatization (runtime/tm/types.hpp).
#pragma once

#include "runtime/tm/blame.hpp"
#include "runtime/tm/contention.hpp"
#include "runtime/tm/driver.hpp"
#include "runtime/tm/explain.hpp"
#include "runtime/tm/runtime.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/shared/explain_records.hpp"

#include <algorithm>

namespace loam::workloads {

template <template <bool kBlame> class AlgorithmOf, bool kBlame>
struct TmSync {
  using Algorithm = AlgorithmOf<kBlame>;
  using Driver = tm::Driver<Algorithm>;

  static const SyncDescription& description() {
    static constexpr std::string_view kPrivatizations[] = {"none", "commit"};
    static constexpr std::string_view kAllMappings[] = {"hash", "table", "shadow"};
    constexpr auto kMappings = std::span(kAllMappings).subspan(tm::knows_hash<Algorithm>() ? 0 : 1);
    static constexpr std::string_view kTunings[] = {"fixed", "adaptive"};
    static constexpr std::size_t kOfTheMapping = 4;  // these come first
    static constexpr ParameterSpec kParameters[] = {
        ParameterSpec::choice("mapping", kMappings,
                              "table: 2^records_log2 ownership records that stripes share; hash: the same, but stripes "
                              "a power of two apart do not; shadow: a record for each 16 bytes of the address space "
                              "(shift and records_log2 do not apply)"),
        ParameterSpec::integer("shift", tm::Config{}.shift, tm::kShiftMin, tm::kShiftMax, "",
                               "table and hash: log2 of the bytes in a stripe"),
        ParameterSpec::integer("records_log2", tm::Config{}.records_log2, tm::kRecordsLog2Min, tm::kRecordsLog2Max, "",
                               "table and hash: log2 of the number of records"),
        ParameterSpec::choice("tuning", kTunings,
                              "adaptive: shift and records_log2 are where it begins; a thread of the runtime's own "
                              "tries others while transactions run, and stays with the best (table and hash)"),
        ParameterSpec::choice("manager", tm::contention::kManagerNames,
                              "who gives way where two meet, and what the loser does before it tries again"),
        ParameterSpec::choice("privatization", kPrivatizations,
                              "commit: what a transaction unlinks may be used plainly after it; each commit waits"),
        ParameterSpec::integer(
            "serialise_after", tm::Config{}.serialise_after, 0, 1'000'000, "",
            "aborts in a row after which a transaction runs alone, those behind an owner that stands "
            "still not counted; 0: never"),
    };
    static constexpr SyncDescription kDescription{
        .name = Algorithm::kDescription.name,
        .summary = Algorithm::kDescription.summary,
        .paper = Algorithm::kDescription.paper,
        .guarantees = Algorithm::kDescription.guarantees,
        // The main thread, which fills the structures, holds a slot too.
        .threads_max = std::min(kThreadsMax - 1, Algorithm::kDescription.threads_max),
        .blame = true,
        .aborts = SyncDescription::Aborts::counted,
        .parameters = std::span(kParameters).subspan(kUsesRecords ? 0 : kOfTheMapping)};
    return kDescription;
  }

  static void configure(const ParameterValues& values, bool blame) {
    tm::Config config{.blame = blame,
                      .manager = manager_of(values.choice("manager")),
                      .privatization = values.choice("privatization") == "commit" ? tm::Privatization::commit
                                                                                  : tm::Privatization::none,
                      .serialise_after = static_cast<unsigned>(values.integer("serialise_after"))};
    if constexpr (kUsesRecords) {
      const std::string_view mapping = values.choice("mapping");
      config.mapping = mapping == "hash"     ? tm::Mapping::hash
                       : mapping == "shadow" ? tm::Mapping::shadow
                                             : tm::Mapping::table;
      config.shift = static_cast<unsigned>(values.integer("shift"));
      config.records_log2 = static_cast<unsigned>(values.integer("records_log2"));
      config.adaptive = values.choice("tuning") == "adaptive";
    } else {
      config.records_log2 = tm::kRecordsLog2Min;  // nobody looks at them
    }
    tm::configure(config);
  }

  // The transaction is taken by value and the operation inlined whole: its four words stay in registers.
  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return Driver::read_only([&f](auto tx) __attribute__((flatten)) { return f(tx); });
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    return Driver::update([&f](auto tx) __attribute__((flatten)) { return f(tx); });
  }

  static Counters counters() {
    const tm::Statistics s = tm::statistics();
    const auto aborts = [&s](tm::AbortCause cause) { return s.aborts[static_cast<std::size_t>(cause)]; };
    return {.commits = s.commits,
            .attempts = s.attempts,
            .aborts_same_word = aborts(tm::AbortCause::same_word),
            .aborts_same_block = aborts(tm::AbortCause::same_block),
            .aborts_other_block = aborts(tm::AbortCause::other_block),
            .aborts_other_stripe = aborts(tm::AbortCause::other_stripe),
            .aborts_explicit = aborts(tm::AbortCause::explicit_),
            .aborts_unknown = aborts(tm::AbortCause::unknown),
            .serialised = s.serialised};
  }

  static AbortHistogram abort_histogram() {
    static_assert(AbortHistogram::kBounds == tm::kAbortsBounds, "the record's buckets are the runtime's");
    return {tm::statistics().histogram()};
  }

  static void note_block(const void* block, std::size_t bytes) {
    if constexpr (kBlame) {
      tm::blame::note_block(block, bytes);
      tm::explain::allocated(block, bytes);
    }
  }

  static void explain(unsigned every_nth) { tm::explain::start(every_nth); }
  static void write_explanation(Recorder& recorder) { write_explain_records(recorder); }

  static void thread_exit() { tm::thread_exit(); }
  static void quiesce() { tm::quiesce(); }
  static std::int64_t live_blocks() {
    const tm::Statistics s = tm::statistics_of_all();
    return static_cast<std::int64_t>(s.blocks_allocated - s.blocks_freed);
  }

  static RecordsInfo records() {
    if constexpr (!kUsesRecords) return {.read_set_entry_bytes = Algorithm::kReadEntryBytes};
    return {.mapping = tm::shared.map.kind,
            .read_set_entry_bytes = sizeof(tm::Orec*),
            .rss_bytes = tm::shared.map.resident_bytes()};
  }

 private:
  static constexpr bool kUsesRecords = tm::uses_records<Algorithm>();

  static tm::Manager manager_of(std::string_view name) {
    const auto& names = tm::contention::kManagerNames;
    return static_cast<tm::Manager>(std::find(names.begin(), names.end(), name) - names.begin());
  }
};
}  // namespace loam::workloads
