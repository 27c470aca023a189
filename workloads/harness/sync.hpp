// The interface of a synchronisation: how an executable protects shared data, and its description for the harness.
//   Its header (LOAM_SYNC_HEADER) defines the struct Sync. All members are static; a thread's own state is
//   thread_local.
//
//   struct Sync {
//     static const SyncDescription& description();
//     static void configure(const Options&);              // once, before the workload's first block
//
//     // What runs operations on shared data; `none` alone lacks these:
//     template <class F> static auto read_only(F&& f);    // f(auto& access); may run f several times
//     template <class F> static auto update(F&& f);
//     static void note_block(const void*, std::size_t);   // bounds of a block made outside of update(), for blame
//     static void thread_exit();                          // hands this thread's state over
//     static void quiesce();                              // after all workers joined: reclaims what is deferred
//     static std::int64_t live_blocks();                  // after quiesce(): created minus freed, of all threads
//
//     // Optional: several objects, each of which excludes its own operations alone, for structures of several parts.
//     static constexpr unsigned kDomains;
//     template <class Access, class F> static auto update_in(unsigned domain, F&& f);
//
//     // Of the kind `structure`: it brings the objects of workloads/objects/ themselves (Queue, Stack, ...) instead of
//     // update(), and runs the workloads of those that it brings.
//     static constexpr bool kBringsObjects = true;
//
//     // Optional: within update(), gives up what f has done and runs it again:
//     [[noreturn]] static void restart();
//     // Optional: there is one thread and nothing is protected.
//     static constexpr bool kAlone = true;
//
//     // Optional: threads of its own, for example a server. Around the workload, its set-up and its check.
//     static void start();
//     static void stop();
//
//     // Of a transactional memory that counts what it does (tm_counters.hpp), both or none:
//     static TmCounters counters();                       // this thread's, cumulative
//     static TmRecords records();                         // of the ownership records, after configure()
//
//     // Optional: evidence of conflicts, for --explain.
//     static void explain(unsigned every_nth);            // after configure()
//     static void write_explanation(Recorder&);           // after the threads ended
//   };
//   using BlameSync = ...;                                // the instantiation for --blame, or Sync itself
#pragma once

#include "workloads/harness/parameters.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace loam::workloads {

inline constexpr unsigned kThreadsMax = 1024;

// How shared data is protected.
enum class SyncKind : unsigned {
  transactional,  // operations are transactions: attempts that commit or abort
  lock,           // an operation holds a lock
  delegation,     // an operation is sent to the thread that owns the data
  structure,      // the structure is made so that it needs nothing around it
  managed,        // objects belong to a collector
  none,           // nothing is protected: threads share nothing, or there is only one
};
inline constexpr std::array<std::string_view, 6> kSyncKindNames{"transactional", "lock",    "delegation",
                                                                "structure",     "managed", "none"};
constexpr std::string_view name_of(SyncKind kind) noexcept { return kSyncKindNames[static_cast<std::size_t>(kind)]; }

// Those that a workload can run on.
class SyncKinds {
 public:
  constexpr SyncKinds(std::initializer_list<SyncKind> kinds) noexcept {
    for (const SyncKind kind : kinds) bits_ |= bit(kind);
  }
  constexpr bool contains(SyncKind kind) const noexcept { return (bits_ & bit(kind)) != 0; }

 private:
  static constexpr unsigned bit(SyncKind kind) noexcept { return 1U << static_cast<unsigned>(kind); }

  unsigned bits_ = 0;
};

struct SyncDescription {
  std::string_view name, summary, paper;
  SyncKind kind;
  std::string_view guarantees = "";  // what a program may rely on, in the field's terms
  unsigned threads_max = kThreadsMax;
  unsigned cpus_reserved = 0;  // processors that no worker is placed on: Options::reserved_cpus()
  bool blame = false;
  bool switches = false;  // of a transactional memory: it changes between two algorithms, and counts that
  std::span<const ParameterSpec> parameters = {};
  // Of one that needs something that not every machine has: what, and why it cannot run here, empty if it can.
  std::string_view needs = "";
  std::string_view (*reason_against)() noexcept = nullptr;
  // Of one that runs everywhere, and means little on some machines: what there is to know of this one, empty if nothing.
  std::string_view (*caution)() noexcept = nullptr;
};

}  // namespace loam::workloads
