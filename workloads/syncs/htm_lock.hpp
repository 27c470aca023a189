// htm-lock: each operation is a hardware transaction of plain code, or runs under a lock that hardware attempts watch.
//   runtime/tm/hardware/elision.hpp has the method and its limits.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/tm/hardware/availability.hpp"
#include "runtime/tm/hardware/elision.hpp"
#include "structures/plain_access.hpp"
#include "workloads/harness/sync.hpp"
#include "workloads/harness/tm_counters.hpp"

namespace loam::workloads {

// The accesses of a section: plain reads and writes, and allocations that an abort undoes by itself.
class ElidedAccess : public structures::PlainAccess {
 public:
  explicit ElidedAccess(tm::hardware::Section& section) noexcept : section_(&section) {}

  template <class Node, class... Values>
  [[gnu::always_inline]] Node* create(Values... values) const noexcept {
    return ::new (allocate(sizeof(Node))) Node{values...};
  }
  template <class Node>
  [[gnu::always_inline]] void destroy(Node* node) const noexcept {
    static_assert(std::is_trivially_destructible_v<Node>);
    release(node);
  }
  [[gnu::always_inline]] void* allocate(std::size_t bytes) const noexcept {
    void* const block = section_->allocate(bytes);
    LOAM_CHECK(block != nullptr, "malloc({}) failed", bytes);
    return block;
  }
  [[gnu::always_inline]] void release(void* block) const noexcept { section_->release(block); }

 private:
  tm::hardware::Section* section_;
};

struct Sync {
  static const SyncDescription& description() {
    static constexpr SyncDescription kDescription{
        .name = "htm-lock",
        .summary = "hardware transactions of plain code, with one lock to fall back to",
        .paper = "Speculative lock elision, MICRO 2001",
        .kind = SyncKind::transactional,
        .guarantees = "opacity; publication and privatization safe; under the lock nothing is taken back",
        .needs = "hardware transactions",
        .reason_against = tm::hardware::reason_against};
    return kDescription;
  }

  static void configure(const Options&) {}

  template <class F>
  [[gnu::always_inline]] static auto read_only(F&& f) {
    return update(f);
  }
  template <class F>
  [[gnu::always_inline]] static auto update(F&& f) {
    return tm::hardware::elide(lock, statistics, memory, [&f](tm::hardware::Section& section) {
      ElidedAccess access(section);
      return f(access);
    });
  }

  static TmCounters counters() {
    const tm::Statistics& s = statistics;
    return {.commits = s.commits,
            .attempts = s.commits + s.aborts_total(),
            .hardware = s.hardware,
            .serialised = s.serialised,
            .aborts = s.aborts,
            .commits_after_aborts = s.histogram()};
  }
  static TmRecords records() { return {.hardware = true}; }

  static void note_block(const void*, std::size_t) {}
  static void thread_exit() {
    memory.end_thread();
    structures::PlainAccess::count(memory.take_live());
    structures::PlainAccess::hand_over_counts();
  }
  static void quiesce() {}
  static std::int64_t live_blocks() { return structures::PlainAccess::live_blocks() + memory.live(); }

 private:
  inline static constinit tm::hardware::FallbackLock lock;
  inline static thread_local constinit tm::hardware::ElidedMemory memory;
  // On lines of its own: a neighbour's write would abort the attempt.
  alignas(platform::kApartBytes) inline static thread_local constinit tm::Statistics statistics;
};
using BlameSync = Sync;

}  // namespace loam::workloads
