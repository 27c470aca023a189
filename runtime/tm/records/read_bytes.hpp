// read_bytes: a byte for each stripe and thread that says: the thread is reading the stripe (two-phase).
//   A group of eight threads has eight bytes of each stripe, a line those of eight stripes. Whoever looks for the readers
//   of a stripe reads a line for each group, where the bits of stripes.hpp are a line for each thread. Only the thread
//   that has a byte writes it: it is cleared by a plain store.
//   Groups   A thread gets its place when it first reads. Those of a group first ran on neighbouring cores, so that a line
//            of bytes is written by cores that share a cache. A slot's place is its own for ever, also when a later thread
//            with this slot runs elsewhere, which costs time only, and in the child of a fork.
//   Threads behind the last group have no place. They use their bits, and who looks for readers looks at all bits from
//            then on.
//   Memory   A group's bytes are mapped when its first thread reads, and backed as they are touched: addresses of 8 MiB
//            for 2^20 records, 512 MiB for the largest table. With shadow records, stripes 2^32 apart share a byte: 32 GiB
//            of addresses.
// Memory orders; in brackets the failure without the pair
//   read_bytes.A  a group's word is changed with seq_cst before the new thread's first byte is set / whoever looks for
//                 readers loads the words with seq_cst after its lock [a byte that nobody looks at]. Words are filled in
//                 their order, and who comes later has loaded the earlier ones with seq_cst
#pragma once

#include "runtime/reclaim/epoch.hpp"
#include "runtime/tm/records/stripes.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace loam::tm::read_bytes {

// Set while the thread reads the stripe.
using Byte = std::atomic<std::uint8_t>;

inline constexpr unsigned kPlaces = 8;
inline constexpr unsigned kGroups = 64;

// A group, as its word says. 0: there is none, and none behind it.
class Group {
 public:
  constexpr explicit Group(std::uint64_t word) noexcept : word_(word) {}
  Group(const Byte* bytes, unsigned die) noexcept
      : word_(std::uint64_t{die} << kDieShift | reinterpret_cast<std::uintptr_t>(bytes) | 1) {}
  // Behind the last group: there are threads without a place.
  static constexpr Group nobodys() noexcept { return Group(kNobodys); }

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr bool is_there() const noexcept { return word_ > kNobodys; }
  constexpr bool is_nobodys() const noexcept { return word_ == kNobodys; }
  constexpr unsigned places() const noexcept { return static_cast<unsigned>(word_ % 16); }  // that are taken
  constexpr unsigned die() const noexcept { return static_cast<unsigned>(word_ >> kDieShift); }
  Byte* bytes() const noexcept { return reinterpret_cast<Byte*>(word_ & kBytesMask); }
  // The group's bytes of a stripe, one for each place.
  Byte* of(std::uint64_t stripe) const noexcept { return bytes() + offset(stripe); }

  static constexpr std::uint64_t offset(std::uint64_t stripe) noexcept {
    static_assert(stripes::kIndicatorBits == 32);
    return std::uint64_t{static_cast<std::uint32_t>(stripe)} * kPlaces;
  }

 private:
  static constexpr unsigned kDieShift = 48;
  static constexpr std::uint64_t kBytesMask = ((std::uint64_t{1} << kDieShift) - 1) & ~std::uint64_t{15};
  static constexpr std::uint64_t kNobodys = 1;

  std::uint64_t word_;
};

struct Groups {
  alignas(platform::kApartBytes) std::array<std::atomic<std::uint64_t>, kGroups + 1> words{};
  // By group and place. relaxed throughout: stored before the thread's first byte is set.
  alignas(platform::kApartBytes) std::array<std::array<std::atomic<std::uint16_t>, kPlaces>, kGroups> slots{};

  Group of(unsigned group) const noexcept {
    return Group(words[group].load(std::memory_order_seq_cst));  // read_bytes.A
  }
};
extern constinit Groups groups;

struct Place {
  Byte* bytes = nullptr;  // the first stripe's; of a thread without a place: zeroes, never written
  unsigned group = kGroups, index = 0;

  bool is_there() const noexcept { return group != kGroups; }
  Byte& of(std::uint64_t stripe) const noexcept { return bytes[Group::offset(stripe)]; }
};

// The place of a slot, of whose thread the caller is; `core` is where it runs. Ends the program where the system refuses
// the addresses.
Place take_place(unsigned slot, unsigned core) noexcept;

// Test hook, before the first thread reads: so many groups, at most kGroups, of so many threads, at most kPlaces.
void limit(unsigned group_count, unsigned places) noexcept;

}  // namespace loam::tm::read_bytes
