// mapping: which ownership record guards an address.
//   record = base + ((address >> shift) & mask) * 8, with run-time values:
//     table           2^records_log2 records for stripes of 2^shift bytes. Addresses alias modulo the product of both
//     shadow records  every 16-byte granule of the address space has its own record. Nothing aliases, and no two blocks
//                     share a record under any allocator that aligns to 16 bytes
//   Some algorithms also know base + (address * multiplier mod 2^64 >> drop) * 8:
//     hash            the records of the table. With a power of two as the multiplier it would be the table. The
//                     multiplier is slightly larger: neighbouring stripes stay neighbours, but stripes
//                     2^(shift + records_log2) bytes apart, as the arenas of some allocators are, get records that lie
//                     kSpread of the table apart.
//   Source    the table: TinySTM, PPoPP 2008; its interaction with allocators: paper 000. Multiplicative hashing:
//             Knuth, The Art of Computer Programming 3, 6.4.
//   Cost      three instructions; four if the algorithm knows the hash. All records are backed when touched; a page of
//             zeros is a page of free records. Shadow records take half as much memory as transactions touch.
//   When not  shadow: under RLIMIT_AS, valgrind or a sanitizer the system may refuse the range of 64 TiB. Then a window
//             of 2^40 bytes is tried (addresses alias modulo 1 TiB), then the table; `kind` says which one it is.
//             hash: its stripes are 1 % shorter than 2^shift bytes, so their borders fall within blocks.
#pragma once

#include "runtime/tm/types.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace loam::tm {

// Where the record of an address lies in the array of records.
struct Formula {
  std::uint64_t multiplier = 0;
  unsigned drop = 63;

  std::uint64_t index_of_word(std::uintptr_t word) const noexcept { return word * multiplier >> drop; }
  template <class U>
  std::uint64_t index(const U* address) const noexcept {
    return index_of_word(whole_word(address));
  }
  // The number of a stripe among all of the address space, of which those that share a record are equal modulo the
  // number of records.
  template <class U>
  std::uint64_t stripe(const U* address) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(whole_word(address)) * multiplier >> drop);
  }

 private:
  // The word that an address lies in: all of its bytes have one record, also where a stripe of the hash ends among
  // them.
  template <class U>
  static std::uintptr_t whole_word(const U* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if constexpr (std::is_void_v<U>)
      return at & ~(sizeof(Word) - 1);
    else if constexpr (sizeof(U) < sizeof(Word))
      return at & ~(sizeof(Word) - 1);
    else
      return at;
  }
};

struct RecordMap {
  Orec* base = nullptr;
  std::uint64_t mask = 0;  // of table and shadow records
  unsigned shift = 0;
  Formula formula;                 // of all
  std::string_view kind = "none";  // "table", "hash", "shadow-full", "shadow-window"
  std::size_t bytes = 0;           // of addresses reserved

  Orec& record(const void* address) const noexcept { return base[formula.index(address)]; }
  std::uint64_t stripe(const void* address) const noexcept { return formula.stripe(address); }
  // From now on 2^records_log2 records for stripes of 2^shift bytes; no more than there is capacity for.
  void use(Mapping mapping, unsigned shift, unsigned records_log2) noexcept;
  // Records that there are addresses for: no fewer than the formula reaches.
  std::size_t capacity() const noexcept { return bytes / sizeof(Orec); }
  bool is_sparse() const noexcept { return kind.starts_with("shadow"); }
  // Backs a table, whose records no transaction has seen yet.
  void touch() const noexcept;
  // Resident bytes of the records; walks the kernel's account of the process.
  std::size_t resident_bytes() const noexcept;
};

// The part of the table that lies between two stripes that would share a record without the hash: the golden ratio, so
// that many periods fall far from one another, over 64, so that stripes become hardly shorter.
inline constexpr double kSpread = 0.6180339887498949 / 64;

// Ends the program if a value of the mapping is out of range.
void check_mapping(const Config& config) noexcept;

// Reserves the records that `config` asks for. Ends the program if a value is out of range.
// capacity_log2: of the records that a table may grow to (tuning.hpp), if that is more
RecordMap map_records(const Config& config, unsigned capacity_log2 = 0) noexcept;

}  // namespace loam::tm
