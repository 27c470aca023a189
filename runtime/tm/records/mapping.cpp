#include "runtime/tm/records/mapping.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>
#include <cstring>

namespace loam::tm {
namespace {

constexpr unsigned kWindowBits = 40;

// A range of records that is backed as it is touched. returns a map without base where the system refuses it
RecordMap reserve_sparse(unsigned address_bits, std::string_view kind) noexcept {
  const std::size_t records = std::size_t{1} << (address_bits - kShadowShift);
  const std::size_t bytes = records * sizeof(Orec);
  void* const base = platform::map_lazy(bytes, {.huge_pages = false, .core_dump = false});
  RecordMap map;
  map.base = static_cast<Orec*>(base);
  map.kind = kind;
  map.bytes = bytes;
  map.use(Mapping::shadow, kShadowShift, address_bits - kShadowShift);
  return map;
}

RecordMap reserve_table(Mapping mapping, unsigned shift, unsigned records_log2, unsigned capacity_log2) noexcept {
  const std::size_t bytes = sizeof(Orec) << capacity_log2;
  void* const base = platform::map_lazy_or_die(bytes, "tm: table of ownership records", {.core_dump = false});
  RecordMap map;
  map.base = static_cast<Orec*>(base);
  map.kind = mapping == Mapping::hash ? "hash" : "table";
  map.bytes = bytes;
  map.use(mapping, shift, records_log2);
  return map;
}

}  // namespace

void RecordMap::use(Mapping mapping, unsigned shift_wanted, unsigned records_log2) noexcept {
  const unsigned drop = 64 - records_log2;
  shift = shift_wanted;
  mask = (std::uint64_t{1} << records_log2) - 1;
  formula = {std::uint64_t{1} << (drop - shift), drop};
  if (mapping == Mapping::hash) {
    const auto apart = static_cast<std::uint64_t>(kSpread * static_cast<double>(mask)) | 1;
    formula.multiplier += apart << (drop - shift - records_log2);
  }
}

void check_mapping(const Config& config) noexcept {
  LOAM_CHECK(config.shift >= kShiftMin && config.shift <= kShiftMax, "tm: shift={}: must be {} to {}", config.shift,
             kShiftMin, kShiftMax);
  LOAM_CHECK(config.records_log2 >= kRecordsLog2Min && config.records_log2 <= kRecordsLog2Max,
             "tm: records_log2={}: must be {} to {}", config.records_log2, kRecordsLog2Min, kRecordsLog2Max);
}

RecordMap map_records(const Config& config, unsigned capacity_log2) noexcept {
  check_mapping(config);
  if (config.mapping == Mapping::shadow) {
    if (const RecordMap full = reserve_sparse(platform::kAddressBits, "shadow-full"); full.base != nullptr) return full;
    if (const RecordMap window = reserve_sparse(kWindowBits, "shadow-window"); window.base != nullptr) return window;
  }
  return reserve_table(config.mapping == Mapping::hash ? Mapping::hash : Mapping::table, config.shift,
                       config.records_log2, std::max(config.records_log2, capacity_log2));
}

void RecordMap::touch() const noexcept {
  if (!is_sparse()) std::memset(static_cast<void*>(base), 0, bytes);
}

std::size_t RecordMap::resident_bytes() const noexcept { return platform::resident_bytes(base, bytes); }

}  // namespace loam::tm
