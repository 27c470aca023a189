#include "runtime/tm/blame/blame.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/pages.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/tm/blame/explain.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>
#include <mutex>

namespace loam::tm::blame {
namespace {

constexpr unsigned kGranuleShift = 4;

// Block map: one 32-bit number per granule, 1 + its distance in granules from the block's first (0: no known block).
// A window of 2^40 bytes where one of all addresses is refused; addresses then alias modulo 1 TiB, as the records do.
struct BlockMap {
  std::atomic<std::uint32_t>* distance = nullptr;
  std::uint64_t mask = 0;

  std::atomic<std::uint32_t>& at(std::uint64_t granule) const noexcept { return distance[granule & mask]; }

  // returns the block's first granule, or nothing known (~0)
  std::uint64_t block_of(const void* address) const noexcept {
    const std::uint64_t granule = reinterpret_cast<std::uintptr_t>(address) >> kGranuleShift;
    // relaxed: a block is noted by the thread that allocates it, before any other can know its address.
    const std::uint32_t value = at(granule).load(std::memory_order_relaxed);
    return value == 0 ? ~0ULL : granule - (value - 1);
  }
};

// Trail: a cell per record, the record's own neighbourhood kept together so that a dense heap uses few pages.
struct Written {
  const Word* word;
  std::uint64_t version;
  std::uint64_t by;  // site and, in the upper kSlotBits, the slot

  static constexpr unsigned kSlotBits = 16, kSiteBits = 64 - kSlotBits;
  Site site() const noexcept {
    return reinterpret_cast<Site>(static_cast<std::uintptr_t>(by & ((1ULL << kSiteBits) - 1)));
  }
  unsigned slot() const noexcept { return static_cast<unsigned>(by >> kSiteBits); }
};
struct alignas(256) Cell {
  static constexpr unsigned kWords = 9;
  sync::SpinLock lock;
  const Orec* record = nullptr;
  std::uint64_t next = 0;  // words noted so far; the ring keeps the last kWords
  Written ring[kWords];
};
static_assert(sizeof(Cell) == 256, "a cell is two pairs of cache lines");

constexpr std::size_t kCellsLog2 = 20;
constexpr std::size_t kCells = std::size_t{1} << kCellsLog2;

constinit BlockMap block_map;
constinit Cell* cells = nullptr;
constinit std::atomic<std::uint64_t> not_separable{0};

Cell& cell_of(const Orec& record) noexcept {
  const std::uint64_t index = reinterpret_cast<std::uintptr_t>(&record) / sizeof(Orec);
  // Neighbours stay neighbours; records a multiple of 2^20 apart (two arenas at the same offset) are spread.
  return cells[(index + (index >> kCellsLog2) * 0x9E3779B1ULL) & (kCells - 1)];
}

}  // namespace

void start() noexcept {
  if (cells != nullptr) return;
  for (unsigned bits : {platform::kAddressBits, 40u, 32u}) {
    const std::size_t granules = std::size_t{1} << (bits - kGranuleShift);
    void* const map = platform::map_lazy(granules * sizeof(std::uint32_t), {.huge_pages = false, .core_dump = false});
    if (map == nullptr) continue;
    block_map = {static_cast<std::atomic<std::uint32_t>*>(map), granules - 1};
    break;
  }
  LOAM_CHECK(block_map.distance != nullptr, "tm: no address space for the block map of a blame run; raise `ulimit -v`");
  cells = static_cast<Cell*>(platform::map_lazy_or_die(kCells * sizeof(Cell), "tm: trail of a blame run",
                                                       {.huge_pages = false, .core_dump = false}));
}

void note_block(const void* start, std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uint64_t first = address >> kGranuleShift;
  const std::uint64_t last = (address + (bytes == 0 ? 0 : bytes - 1)) >> kGranuleShift;
  if (address % (1u << kGranuleShift) != 0 && bytes <= kWordBytes)
    not_separable.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic
  for (std::uint64_t granule = first; granule <= last; ++granule)
    block_map.at(granule).store(static_cast<std::uint32_t>(granule - first + 1), std::memory_order_relaxed);
}

void note_write(const Orec& record, const Word* word, std::uint64_t version) noexcept {
  const unsigned slot = Descriptor::current_or_detached().slot;
  std::uint64_t by = std::uint64_t{slot} << Written::kSiteBits;
  if (explain::every != 0) by |= reinterpret_cast<std::uintptr_t>(explain::site_of_own_write(slot, word));
  Cell& cell = cell_of(record);
  const std::lock_guard guard(cell.lock);
  if (cell.record != &record) {
    cell.record = &record;
    cell.next = 0;
  }
  cell.ring[cell.next++ % Cell::kWords] = {word, version, by};
}

const void* block_start(const void* address) noexcept {
  if (block_map.distance == nullptr) return nullptr;
  const std::uint64_t granule = block_map.block_of(address);
  return granule == ~0ULL ? nullptr : reinterpret_cast<const void*>(granule << kGranuleShift);
}

AbortCause relation(const Word* mine, const Word* theirs) noexcept {
  if (mine == theirs) return AbortCause::same_word;
  if (shared.map.stripe(mine) != shared.map.stripe(theirs)) return AbortCause::other_stripe;
  const std::uint64_t block_a = block_map.distance ? block_map.block_of(mine) : ~0ULL;
  const std::uint64_t block_b = block_map.distance ? block_map.block_of(theirs) : ~0ULL;
  if (block_a == ~0ULL || block_b == ~0ULL) return AbortCause::unknown;
  return block_a == block_b ? AbortCause::same_block : AbortCause::other_block;
}

Suspect suspect_of_version(const Orec& record, const Word* mine, std::uint64_t snapshot) noexcept {
  Cell& cell = cell_of(record);
  const std::lock_guard guard(cell.lock);
  Suspect suspect;
  if (cell.record != &record) return suspect;
  const std::uint64_t kept = cell.next < Cell::kWords ? cell.next : Cell::kWords;
  for (std::uint64_t i = 0; i < kept; ++i) {
    const Written& written = cell.ring[i];
    if (written.version > snapshot)
      suspect = closer(suspect, {.cause = relation(mine, written.word),
                                 .word = written.word,
                                 .site = written.site(),
                                 .slot = written.slot()});
  }
  return suspect;
}

std::uint64_t blocks_not_separable() noexcept { return not_separable.load(std::memory_order_relaxed); }

}  // namespace loam::tm::blame
