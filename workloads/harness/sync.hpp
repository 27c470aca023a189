// What a synchronisation tells the harness about itself. A file of workloads/syncs/ defines, all static, with
// per-thread state in thread_local variables:
//   struct Sync {
//     static const SyncDescription& description();
//     static void configure(const ParameterValues&, bool blame);  // once, before threads start
//     template <class F> static auto read_only(F&& f);         // f(auto& access); may run f several times
//     template <class F> static auto update(F&& f);
//     static Counters counters();                              // this thread's, cumulative
//     static void note_block(const void* p, std::size_t bytes);  // bounds of a block made outside update(), for blame
//     static void thread_exit();                               // hands this thread's state over
//     static void quiesce();                                   // after all workers joined: reclaims what is deferred
//     static std::int64_t live_blocks();                       // after quiesce(): blocks created minus freed, all
//     threads static RecordsInfo records();                            // optional: what the ownership records cost
//     static AbortHistogram abort_histogram();                 // optional: this thread's, cumulative
//     static void explain(unsigned every_nth);                 // optional, with write_explanation(): after configure()
//     static void write_explanation(Recorder&);                // the records of what was kept, after the threads ended
//   };
//   using BlameSync = ...;                                     // the instantiation for --blame, or Sync itself
#pragma once

#include "workloads/harness/parameters.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads {

inline constexpr unsigned kThreadsMax = 1024;

struct SyncDescription {
  // never: every attempt commits, so commits and attempts equal operations.  counted: counters() has them.
  // unknown: a foreign library that does not say; the metrics are left out.
  enum class Aborts { never, counted, unknown };

  std::string_view name, summary, paper;
  std::string_view guarantees = "";  // what a program may rely on, in the field's terms
  unsigned threads_max = kThreadsMax;
  bool blame = false;
  Aborts aborts = Aborts::never;
  std::span<const ParameterSpec> parameters = {};
};

struct Counters {
  std::uint64_t commits = 0, attempts = 0;
  std::uint64_t aborts_same_word = 0, aborts_same_block = 0, aborts_other_block = 0, aborts_other_stripe = 0;
  std::uint64_t aborts_capacity = 0, aborts_reprovision = 0, aborts_interrupt = 0, aborts_explicit = 0;
  std::uint64_t aborts_unknown = 0;
  std::uint64_t serialised = 0;  // transactions that ran alone after too many aborts: no parallelism, hence shown

  std::uint64_t aborts() const noexcept {
    return aborts_same_word + aborts_same_block + aborts_other_block + aborts_other_stripe + aborts_capacity +
           aborts_reprovision + aborts_interrupt + aborts_explicit + aborts_unknown;
  }

  // combine(mine, other) for every field.
  template <class Combine>
  Counters& merge(const Counters& other, Combine combine) noexcept {
    static constexpr std::uint64_t Counters::* kFields[] = {
        &Counters::commits,           &Counters::attempts,           &Counters::aborts_same_word,
        &Counters::aborts_same_block, &Counters::aborts_other_block, &Counters::aborts_other_stripe,
        &Counters::aborts_capacity,   &Counters::aborts_reprovision, &Counters::aborts_interrupt,
        &Counters::aborts_explicit,   &Counters::aborts_unknown,     &Counters::serialised};
    static_assert(sizeof kFields / sizeof *kFields * sizeof(std::uint64_t) == sizeof(Counters), "every field");
    for (const auto field : kFields) this->*field = combine(this->*field, other.*field);
    return *this;
  }
  Counters& operator+=(const Counters& other) noexcept {
    return merge(other, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  }
  Counters& operator-=(const Counters& other) noexcept {
    return merge(other, [](std::uint64_t a, std::uint64_t b) { return a - b; });
  }
};

struct RecordsInfo {
  std::string_view mapping = "none";  // shadow-full, shadow-window, table, hash or none
  unsigned read_set_entry_bytes = 0;
  std::uint64_t rss_bytes = 0;
};

// counts[i]: transactions that aborted kBounds[i] times or more (but fewer than kBounds[i + 1]) before they committed.
struct AbortHistogram {
  static constexpr std::array<std::uint64_t, 12> kBounds = {0, 1, 2, 3, 4, 6, 8, 16, 32, 64, 256, 1024};
  std::array<std::uint64_t, kBounds.size()> counts{};
};

template <class Sync>
RecordsInfo records_of() {
  if constexpr (requires { Sync::records(); }) {
    return Sync::records();
  } else {
    return {};
  }
}

}  // namespace loam::workloads
