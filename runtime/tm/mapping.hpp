// mapping: which ownership record guards an address.
//   record = base + ((address >> shift) & mask) * 8, with run-time values:
//     table           2^records_log2 records, stripes of 2^shift bytes; addresses alias modulo their product
//     shadow records  every 16-byte granule of the address space has a record of its own: nothing aliases, and no two
//                     blocks share a record under any allocator that aligns to 16 bytes
//   Source  the table: TinySTM, PPoPP 2008; its interaction with allocators: paper 000.
//   Cost    three instructions. The table is touched before the first transaction, shadow records are backed by 4 KiB
//           pages as they are touched (half of the memory that transactions touch).
//   When not shadow: under RLIMIT_AS, valgrind or a sanitizer the 64 TiB range may be refused. Then a window of 2^40
//           bytes is tried (addresses alias modulo 1 TiB), then the table; `kind` says which it is.
#pragma once

#include "runtime/tm/types.hpp"

namespace loam::tm {

struct RecordMap {
  Orec* base = nullptr;
  std::uint64_t mask = 0;
  unsigned shift = 0;
  std::string_view kind = "none";  // "table", "shadow-full", "shadow-window"
  std::size_t bytes = 0;           // of addresses reserved

  Orec& record(const void* address) const noexcept {
    return base[(reinterpret_cast<std::uintptr_t>(address) >> shift) & mask];
  }
  std::uintptr_t stripe(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) >> shift;
  }
  // Resident bytes of the records; walks the kernel's account of the process.
  std::size_t resident_bytes() const noexcept;
};

// Reserves the records that `config` asks for. Ends the program if a value is out of range.
RecordMap map_records(const Config& config) noexcept;

}  // namespace loam::tm
