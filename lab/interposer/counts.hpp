// What a profile counts of each thread (profile.cpp), and the sums that follow from it.
//   Of blocks up to kSmall bytes only their number is counted, by bytes: one addition when a block is made, and one when it
//   goes. Classes, bytes asked for, bytes given are worked out when somebody asks.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "forward.hpp"

namespace loam::interposer {

//   bits 63..30: bytes    bits 29..20: thread, from 1    bits 19..0: when, in kStampBytes that its thread had allocated
//   A word without a thread stands beside that of a block of more than kSmall bytes: bits 63..30: bytes that it was given
inline constexpr unsigned kThreadBits = 10, kStampBits = 20, kStampBytesBits = 12,
                          kBytesShift = kThreadBits + kStampBits;
inline constexpr std::uint64_t kThreadMax = (1 << kThreadBits) - 1, kStampMask = (1 << kStampBits) - 1;
inline constexpr std::uint64_t kBytesMax = (std::uint64_t{1} << (64 - kBytesShift)) - 1;
// Four classes for each doubling, from 16 bytes on; the last one is open.
inline constexpr std::size_t kClasses = 4 * 32;
inline constexpr std::size_t kLifetimes = kStampBits + 2;
inline constexpr std::size_t kSmall = 4096;  // up to here the allocator is asked once what it gives
inline constexpr std::size_t kOwners = 64;   // threads that are told apart where blocks are freed by others
// Bytes between samples; 0: every block is looked at.
#ifdef LOAM_SAMPLED
inline constexpr std::int64_t kMean = 512 * 1024;
#else
inline constexpr std::int64_t kMean = 0;
#endif
inline constexpr bool kSampled = kMean != 0;

// Written by its thread alone, read by any: a plain addition without a lock.
struct Count {
  std::atomic<std::uint64_t> value{0};
  // relaxed, all of them: a figure; nothing is ordered by it.
  void set(std::uint64_t n) noexcept { value.store(n, std::memory_order_relaxed); }
  void add(std::uint64_t n) noexcept { set(get() + n); }
  std::uint64_t get() const noexcept { return value.load(std::memory_order_relaxed); }
};

// The number of a thread where a block's word has it.
inline std::uint64_t in_word(std::uint64_t number) noexcept { return std::min(number, kThreadMax) << kStampBits; }

struct Thread {
  std::uint64_t number, who;  // who: in_word(number)
  Thread* older;
  std::uint64_t clock;  // bytes that it asked for; of samples, bytes that they stand for
  std::uint32_t until_tick;
  Count small[kSmall + 1], small_freed[kSmall + 1];
  // Of longer blocks, and of all that samples stand for.
  Count blocks[kClasses], bytes[kClasses];
  Count requested, requested_freed, usable, usable_freed;
  Count lifetimes[kLifetimes];
  Count freed_of[kOwners];
  Count remote, unknown;
};

// Bytes that the allocator gives for each small size; 0: not asked yet.
inline std::atomic<std::uint16_t> usable_of[kSmall + 1];

[[gnu::noinline]] inline void ask_usable(void* block, std::size_t bytes) noexcept {
  const Inside unseen;
  // relaxed: every thread would find the same.
  usable_of[bytes].store(static_cast<std::uint16_t>(std::min<std::size_t>(usable_bytes(block), 0xFFFF)),
                         std::memory_order_relaxed);
}

inline std::size_t given(void* block, std::size_t bytes) noexcept {
  if (bytes > kSmall) return usable_bytes(block);
  if (usable_of[bytes].load(std::memory_order_relaxed) == 0) ask_usable(block, bytes);
  return usable_of[bytes].load(std::memory_order_relaxed);
}

inline std::size_t class_of(std::size_t bytes) noexcept {
  if (bytes <= 16) return 0;
  const unsigned top = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;  // 16 < bytes <= 32: 4
  const std::size_t quarter = (bytes - 1) >> (top - 2) & 3;
  return std::min(kClasses - 1, 1 + 4 * (top - 4) + quarter);
}

inline std::size_t class_bytes(std::size_t number) noexcept {
  if (number == 0) return 16;
  const std::size_t top = 4 + (number - 1) / 4;
  return (std::size_t{1} << top) + ((number - 1) % 4 + 1) * (std::size_t{1} << (top - 2));
}

// Which of kLifetimes a block of that age has lived: the number of its age's bits.
inline std::size_t lifetime_of(std::uint64_t age) noexcept {
  return 63U - static_cast<unsigned>(std::countl_zero(2 * age + 1));
}

// What was asked for and freed, all sizes together.
struct Totals {
  std::uint64_t requested = 0, requested_freed = 0, usable = 0, usable_freed = 0;

  void add(const Thread& thread) noexcept {
    requested += thread.requested.get(), requested_freed += thread.requested_freed.get();
    usable += thread.usable.get(), usable_freed += thread.usable_freed.get();
    if (kSampled) return;  // all sizes are counted there
    for (std::size_t bytes = 0; bytes <= kSmall; ++bytes) {
      const std::uint64_t made = thread.small[bytes].get(), freed = thread.small_freed[bytes].get();
      const std::uint64_t each = usable_of[bytes].load(std::memory_order_relaxed);
      requested += made * bytes, requested_freed += freed * bytes;
      usable += made * each, usable_freed += freed * each;
    }
  }
};

// Moves what the small sizes counted to where longer blocks are counted.  What the thread counts meanwhile may be lost.
inline void spread(Thread& thread) noexcept {
  if (kSampled) return;
  Totals all;
  all.add(thread);
  thread.requested.set(all.requested), thread.requested_freed.set(all.requested_freed);
  thread.usable.set(all.usable), thread.usable_freed.set(all.usable_freed);
  for (std::size_t bytes = 0; bytes <= kSmall; ++bytes) {
    const std::uint64_t made = thread.small[bytes].get();
    thread.blocks[class_of(bytes)].add(made);
    thread.bytes[class_of(bytes)].add(made * bytes);
    thread.small[bytes].set(0), thread.small_freed[bytes].set(0);
  }
}

}  // namespace loam::interposer
