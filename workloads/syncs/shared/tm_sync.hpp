// tm_sync: Loam's transactional memory as a synchronisation, for any of its algorithms.
//   The build makes one of each file in runtime/tm/algorithms/ (cmake/LoamAlgorithms.cmake).
//   Parameters: those of tm_parameters.hpp.
#pragma once

#include "runtime/tm/attempts/contention.hpp"
#include "runtime/tm/attempts/driver.hpp"
#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/blame/explain.hpp"
#include "runtime/tm/runtime.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/harness/tm_counters.hpp"
#include "workloads/syncs/shared/explain_records.hpp"
#include "workloads/syncs/shared/tm_parameters.hpp"

#include <algorithm>

namespace loam::workloads {

// What an algorithm keeps to find conflicts.
template <class Algorithm>
TmRecords records_of() {
  if constexpr (tm::uses_records<Algorithm>())
    return {.mapping = tm::shared.map.kind,
            .read_set_entry_bytes = sizeof(tm::Orec*),
            .rss_bytes = tm::shared.map.resident_bytes(),
            .switches = tm::switches<Algorithm>()};
  else if constexpr (requires { Algorithm::kReadEntryBytes; })
    return {.read_set_entry_bytes = Algorithm::kReadEntryBytes};
  else
    return {};
}

// Backs what an algorithm keeps, after its configuration: otherwise the first run would time page faults.
template <class Algorithm>
void touch_metadata() {
  if constexpr (tm::uses_records<Algorithm>()) tm::touch_records();
  if constexpr (requires { Algorithm::touch_stripes(); }) Algorithm::touch_stripes();
}

template <template <bool kBlame> class AlgorithmOf, bool kBlame>
struct TmSync {
  using Algorithm = AlgorithmOf<kBlame>;
  using Driver = tm::Driver<Algorithm>;

  static const SyncDescription& description() {
    static constexpr std::string_view kAllMappings[] = {"hash", "table", "shadow"};
    static constexpr auto kMappings = std::span(kAllMappings).subspan(tm::knows_hash<Algorithm>() ? 0 : 1);
    static constexpr auto kParameters = tm_parameters(kMappings);
    static constexpr SyncDescription kDescription{
        .name = Algorithm::kDescription.name,
        .summary = Algorithm::kDescription.summary,
        .paper = Algorithm::kDescription.paper,
        .kind = SyncKind::transactional,
        .guarantees = Algorithm::kDescription.guarantees,
        // The main thread, which fills the structures, holds a slot too.
        .threads_max = std::min(kThreadsMax - 1, Algorithm::kDescription.threads_max),
        .blame = true,
        .switches = tm::switches<Algorithm>(),
        .parameters = std::span(kParameters).subspan(kUsesRecords ? 0 : kTmParametersOfRecords)};
    return kDescription;
  }

  static void configure(const Options& options) {
    const ParameterValues& values = options.parameters;
    tm::Config config{.blame = options.blame,
                      .manager = manager_of(values.choice("manager")),
                      .privatization = privatization_of(values.choice("privatization")),
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
    touch_metadata<Algorithm>();
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

  [[noreturn]] static void restart() { Driver::begin_again(); }

  static TmCounters counters() {
    static_assert(kAbortsBounds == tm::kAbortsBounds, "the record's buckets are the runtime's");
    const tm::Statistics s = tm::statistics();
    return {.commits = s.commits,
            .attempts = s.attempts,
            .hardware = s.hardware,
            .serialised = s.serialised,
            .scalable = s.scalable,
            .switches = s.switches,
            .aborts = s.aborts,
            .commits_after_aborts = s.histogram()};
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

  static TmRecords records() { return records_of<Algorithm>(); }

 private:
  static constexpr bool kUsesRecords = tm::uses_records<Algorithm>();

  static tm::Privatization privatization_of(std::string_view name) {
    if (name == "commit") return tm::Privatization::commit;
    return name == "shared" ? tm::Privatization::shared : tm::Privatization::none;
  }

  static tm::Manager manager_of(std::string_view name) {
    const auto& names = tm::contention::kManagerNames;
    return static_cast<tm::Manager>(std::find(names.begin(), names.end(), name) - names.begin());
  }
};
}  // namespace loam::workloads
