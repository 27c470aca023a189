// Where the function around an address begins, by the unwind tables that nearly all code has.
//   Source   the sorted table of .eh_frame_hdr (Linux Standard Base, 10.6.2), found by _dl_find_object, which takes no lock.
//   When not code without unwind tables, or with tables in another form than GCC and Clang write: nothing is found.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "memory.hpp"

namespace loam::interposer::sharing {

// Where the unwind tables of the code at an address are; 0: it has none.
inline std::uintptr_t unwind_tables(std::uintptr_t address) noexcept {
  dl_find_object object{};
  if (_dl_find_object(reinterpret_cast<void*>(address), &object) != 0) return 0;
  return reinterpret_cast<std::uintptr_t>(object.dlfo_eh_frame);
}

// 0 where nothing tells.
inline std::uintptr_t function_start(std::uintptr_t address) noexcept {
  const std::uintptr_t table = unwind_tables(address);
  if (table == 0) return 0;
  struct Header {
    std::uint8_t version, frame_form, count_form, table_form;
    std::int32_t frame;
    std::uint32_t count;
  } header;
  // 4-byte numbers: of the frames relative to where they stand (0x1b), of the table to its own start (0x3b).
  if (!read_value(table, header) || header.version != 1 || header.frame_form != 0x1B || header.count_form != 0x03 ||
      header.table_form != 0x3B)
    return 0;
  struct Row {
    std::int32_t start, description;
  } row, last{0, 0};
  for (std::size_t low = 0, high = header.count; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (!read_value(table + sizeof header + middle * sizeof row, row)) return 0;
    if (table + static_cast<std::uintptr_t>(std::intptr_t{row.start}) <= address)
      last = row, low = middle + 1;
    else
      high = middle;
  }
  if (last.description == 0) return 0;
  struct Description {
    std::uint32_t length, common;
    std::int32_t start;
    std::uint32_t bytes;
  } description;
  if (!read_value(table + static_cast<std::uintptr_t>(std::intptr_t{last.description}), description)) return 0;
  const std::uintptr_t start = table + static_cast<std::uintptr_t>(std::intptr_t{last.start});
  return address - start < description.bytes ? start : 0;
}

}  // namespace loam::interposer::sharing
