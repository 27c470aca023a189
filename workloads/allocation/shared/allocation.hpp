// What the allocation workloads (workloads/allocation/) share: how long they run, and in which phases, the ledger
// through which each thread allocates and frees, sizes, and the records.
//   Tags: every block carries one from malloc to free, in its first word and in its last (blocks under 16 bytes: in the
//   last byte). A block that has lost its tag when it is freed was handed out twice, or overlaps another: the run is
//   not verified. Nor is it if a block is aligned too little, if malloc fails, or if blocks are lost.
//   Cost  two stores and two loads of memory that whoever uses a block touches anyway, and counters of the thread.
//   Caveat: what lies between first word and last is not written; an overlap that hits neither is not seen.
//   Nothing here calls the allocator but Ledger: arrays of blocks come from the operating system.
#pragma once

#include "runtime/base/random.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/pages.hpp"
#include "workloads/harness/joined.hpp"
#include "workloads/harness/metric.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/team.hpp"
#include "workloads/harness/workload.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace loam::workloads::allocation {

// ---- how long ------------------------------------------------------------------------------------------------------

inline constexpr ParameterSpec kDuration =
    duration_parameter(0, 0, "length of the timed part; counts where operations is 0; 0: fixed work");

// help: ends with "0: N, or use duration_ms", where N is what the workload gives to Length.
constexpr ParameterSpec operations_parameter(std::string_view help) {
  return ParameterSpec::integer("operations", 0, 0, std::int64_t{1} << 40, "1", help);
}

struct Length {
  // fallback: operations per thread where neither parameter says how many
  Length(const ParameterValues& values, std::uint64_t fallback);

  std::uint64_t duration_ms;  // 0: `operations` per thread
  std::uint64_t operations;   // ~0: no limit
};

// ---- sizes ---------------------------------------------------------------------------------------------------------

using Word = std::uint64_t;

inline constexpr std::int64_t kSizeMin = sizeof(Word), kSizeMax = 1 << 20;

constexpr ParameterSpec size_parameter(std::string_view name, std::int64_t fallback, std::string_view help) {
  return ParameterSpec::integer(name, fallback, kSizeMin, kSizeMax, "B", help);
}

// Rejects size_max < size_min.
void check_sizes(const ParameterValues& values);

// Ends the program: parameter `name`, whose value this is, is less than `other` allows.
[[noreturn]] void reject_less(std::string_view name, std::int64_t value, std::string_view other, std::int64_t limit);

// Sizes from size_min to size_max, all as likely.
class EvenSizes {
 public:
  explicit EvenSizes(const ParameterValues& values);
  std::size_t of(std::uint32_t uniform) const noexcept { return least_ + base::scale_to(uniform, count_); }
  std::size_t drawn(base::Random& random) const noexcept { return of(static_cast<std::uint32_t>(random() >> 32)); }

 private:
  std::uint32_t least_, count_;
};

// Sizes whose logarithm is uniform, so that one is drawn with a probability inverse to itself: many small, few large.
// A table of quantiles, since a draw must cost little beside malloc.
class SkewedSizes {
 public:
  SkewedSizes(std::size_t size_min, std::size_t size_max) noexcept;
  std::size_t of(std::uint32_t uniform) const noexcept { return sizes_[uniform >> (32 - kLog2)]; }
  std::size_t drawn(base::Random& random) const noexcept { return of(static_cast<std::uint32_t>(random() >> 32)); }

 private:
  static constexpr unsigned kLog2 = 8;
  std::array<std::uint32_t, 1 << kLog2> sizes_;
};

// ---- blocks --------------------------------------------------------------------------------------------------------

// A block that is held, 16 bytes of bookkeeping.
//   tag  bits 63..34: how many its thread had allocated before, modulo 2^30    33..24: the thread    23..0: the size
struct Held {
  static constexpr unsigned kSizeBits = 24, kThreadBits = 10;

  std::size_t size() const noexcept { return tag & ((Word{1} << kSizeBits) - 1); }
  Word thread() const noexcept { return tag >> kSizeBits & ((Word{1} << kThreadBits) - 1); }

  void* block = nullptr;  // null: malloc failed
  Word tag = 0;
};
static_assert(kThreadsMax <= 1 << Held::kThreadBits, "every thread has tags of its own");
static_assert(8 * kSizeMax < 1 << Held::kSizeBits, "room for sizes that a workload multiplies");

// One thread's blocks: allocated, tagged, checked, freed and counted. Another thread's ledger may release a block.
class alignas(platform::kApartBytes) Ledger {
 public:
  [[gnu::always_inline]] Held allocate(std::size_t size) noexcept { return tagged(std::malloc(size), size); }

  // added: what the workload has added to the first word meanwhile. A block that malloc refused is passed over.
  [[gnu::always_inline]] void release(const Held& held, Word added = 0) noexcept {
    if (checked(held, added)) std::free(held.block);
  }

  // The same for who calls malloc and free in a way of its own: after the one, and before the other.
  [[gnu::always_inline]] Held tagged(void* block, std::size_t size) noexcept {
    const Held held{block, (allocated_ << kCountShift) | (thread_ << Held::kSizeBits) | size};
    if (held.block == nullptr) [[unlikely]] {
      ++failures_;
      return {};
    }
    // ISO C lets a block be aligned for the largest type that fits into it.
    const std::uintptr_t alignment = size < kTailed ? alignof(Word) : alignof(std::max_align_t);
    misaligned_ += (reinterpret_cast<std::uintptr_t>(held.block) & (alignment - 1)) != 0 ? 1 : 0;
    std::memcpy(held.block, &held.tag, sizeof held.tag);
    const Word tail = ~held.tag;
    if (size >= kTailed) {
      std::memcpy(end_of(held) - sizeof tail, &tail, sizeof tail);
    } else if (size > sizeof tail) {
      std::memcpy(end_of(held) - 1, &tail, 1);
    }
    ++allocated_;
    live_bytes_ += static_cast<std::int64_t>(size);
    return held;
  }

  // returns whether there is a block to be freed
  [[gnu::always_inline]] bool checked(const Held& held, Word added = 0) noexcept {
    if (held.block == nullptr) [[unlikely]]
      return false;
    wrong_ += is_intact(held, added) ? 0 : 1;
    ++freed_;
    freed_remotely_ += held.thread() == thread_ ? 0 : 1;
    live_bytes_ -= static_cast<std::int64_t>(held.size());
    return true;
  }

  // Asked for and not freed yet; less than 0 where others' blocks were freed.
  std::int64_t live_bytes() const noexcept { return live_bytes_; }

  std::uint64_t operations = 0;  // in the timed phase

 private:
  friend std::span<Ledger> open_ledgers(unsigned threads) noexcept;
  friend struct Totals;

  static constexpr std::size_t kTailed = 2 * sizeof(Word);
  static constexpr unsigned kCountShift = Held::kSizeBits + Held::kThreadBits;

  static char* end_of(const Held& held) noexcept { return static_cast<char*>(held.block) + held.size(); }

  static bool is_intact(const Held& held, Word added) noexcept {
    Word first, last;
    const Word tail = ~held.tag;
    std::memcpy(&first, held.block, sizeof first);
    if (first != held.tag + added) return false;
    if (held.size() >= kTailed) {
      std::memcpy(&last, end_of(held) - sizeof last, sizeof last);
      return last == tail;
    }
    return held.size() == sizeof tail || std::memcmp(end_of(held) - 1, &tail, 1) == 0;
  }

  std::uint64_t thread_ = 0;
  std::uint64_t allocated_ = 0, freed_ = 0, freed_remotely_ = 0;
  std::int64_t live_bytes_ = 0;
  std::uint64_t failures_ = 0, misaligned_ = 0, wrong_ = 0;
};

// The ledgers of the process, empty and numbered; static, so that they move no block of the allocator under study.
std::span<Ledger> open_ledgers(unsigned threads) noexcept;

// Bytes asked for and not freed yet, over all threads, while none of them runs.
std::uint64_t live_bytes(std::span<const Ledger> ledgers) noexcept;

// An array in pages of the operating system, touched, so that its faults are in no timed part.
template <class Entry>
class PageArray {
 public:
  PageArray(std::size_t count, const char* what)
      : entries_(static_cast<Entry*>(platform::map_lazy_or_die(count * sizeof(Entry), what)), count) {
    std::memset(static_cast<void*>(entries_.data()), 0, entries_.size_bytes());
  }
  ~PageArray() { platform::unmap(entries_.data(), entries_.size_bytes()); }
  PageArray(const PageArray&) = delete;
  PageArray& operator=(const PageArray&) = delete;

  std::span<Entry> span() const noexcept { return entries_; }
  // The i-th of parts of `size` entries.
  std::span<Entry> part(std::size_t i, std::size_t size) const noexcept { return entries_.subspan(i * size, size); }
  Entry& operator[](std::size_t i) const noexcept { return entries_[i]; }

 private:
  const std::span<Entry> entries_;
};

// ---- phases --------------------------------------------------------------------------------------------------------

// What every member does after its set-up: it warms up, and is timed over at most `limit` operations.
//   operate(pace): works as long as the pace goes on, and returns how many operations it did. One function for both
//   phases, so that the warm-up warms the code that is timed.
//   between(): what has to be done before the timed phase
template <class Operate, class Between>
void work(Team::Member& member, Ledger& ledger, std::uint64_t limit, Operate operate, Between between) {
  member.wait_for_start();
  operate(member.warm_up());
  between();
  member.timed([&](Pace& pace) { ledger.operations = operate(pace); }, limit);
}

template <class Operate>
void work(Team::Member& member, Ledger& ledger, std::uint64_t limit, Operate operate) {
  work(member, ledger, limit, operate, [] {});
}

// ---- records -------------------------------------------------------------------------------------------------------

inline constexpr auto& kMetrics = kRateMetrics;

// For workloads whose threads pass blocks on.
inline constexpr MetricSpec kFreedRemotely = {"freed_remotely", "1", MetricSpec::Better::neither,
                                              MetricSpec::Kind::count};

// What the ledgers say together: operations in the timed phase, all else in all phases.
struct Totals {
  explicit Totals(std::span<const Ledger> ledgers) noexcept;

  std::uint64_t operations = 0, allocated = 0, freed = 0, freed_remotely = 0;
  std::uint64_t failures = 0, misaligned = 0, wrong = 0;
};

// What threads used that the team does not know. Run delays: nothing where the kernel does not count them.
struct OtherThreads {
  OtherThreads& operator+=(const OtherThreads& more) noexcept {
    cpu_ns += more.cpu_ns;
    add(run_delay_ns, more.run_delay_ns);
    add(handover_ns, more.handover_ns);
    return *this;
  }

  std::uint64_t cpu_ns = 0;
  std::optional<std::uint64_t> run_delay_ns = 0;
  // Of their run delay and the team's: behind each other on one processor, which is the workload's own doing.
  std::optional<std::uint64_t> handover_ns = 0;

 private:
  static void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& more) noexcept {
    if (sum && more)
      *sum += *more;
    else
      sum.reset();
  }
};

// Opens the iteration's record with kMetrics; the workload adds its own, and calls write_report().
base::JsonLine& open_report(Recorder& recorder, const Team& team, const Totals& totals,
                            const OtherThreads& others = {});
// Writes it, and the slices where they are asked for.
void write_report(Recorder& recorder, const Team& team);
// Records the end. broken: what the workload itself found wrong, empty if nothing. returns whether the run is verified
bool close_report(Recorder& recorder, const Totals& totals, std::string_view broken = {});

// All of that, for a workload that adds nothing but counts. live_bytes: what it held at a time.
struct OwnCount {
  std::string_view name;
  std::uint64_t value;
};
bool report(Recorder& recorder, const Team& team, const Totals& totals, std::initializer_list<OwnCount> own);

}  // namespace loam::workloads::allocation
