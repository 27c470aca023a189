#include "runtime/tm/blame/explain.hpp"

#include "runtime/platform/pages.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace loam::tm::explain {

constinit unsigned every = 0;

namespace {

// A thread's share of what is kept. Accesses beyond kAccessesMax of an attempt are not kept, their sites not known.
constexpr std::size_t kAccessesMax = std::size_t{1} << 20;
constexpr std::size_t kRecentWrites = std::size_t{1} << 12;
constexpr std::size_t kConflictsMax = 1024;
constexpr std::size_t kFootprintsMax = 32;
constexpr std::size_t kFootprintWords = std::size_t{1} << 14;

// An even sample of an endless stream in a bounded buffer: each interval-th item is taken, and when the buffer is full
// every second one is given up and the interval doubles. Item i stands for `interval()` items of the stream.
template <class Item, std::size_t kMax>
class Sample {
 public:
  explicit Sample(std::uint64_t interval) noexcept : interval_(interval) {}

  // The place for the item that has come along, or nullptr if it is not to be taken.
  Item* next() noexcept {
    if (++passed_ < interval_) return nullptr;
    passed_ = 0;
    if (size_ == kMax) {
      // Of items 1, 2, 3, ... the second, fourth, ... are what twice the interval would have taken.
      for (std::size_t i = 0; i < kMax / 2; ++i) std::swap(items_[i], items_[2 * i + 1]);
      size_ = kMax / 2;
      interval_ *= 2;
      passed_ = interval_ / 2;
      return nullptr;
    }
    return &items_[size_++];
  }
  void clear(std::uint64_t interval) noexcept {
    interval_ = interval;
    passed_ = size_ = 0;
  }
  std::uint64_t interval() const noexcept { return interval_; }
  std::span<const Item> items() const noexcept { return {items_.data(), size_}; }
  std::array<Item, kMax>& storage() noexcept { return items_; }

 private:
  std::uint64_t interval_, passed_ = 0;
  std::size_t size_ = 0;
  std::array<Item, kMax> items_{};
};

struct Access {
  const Word* word = nullptr;
  Site site = nullptr;
  bool written = false;
};

struct RecentWrite {
  std::atomic<const Word*> word;
  std::atomic<Site> site;
};

struct Kept {
  std::span<Touched> room;
  std::size_t size = 0;
  bool whole = false;
};

// What one thread keeps. Made at its first attempt, used again by a later thread of the slot, never unmapped: others
// look into `recent`.
struct ThreadLog {
  explicit ThreadLog(std::uint64_t interval) noexcept : conflicts(interval) {}

  Log<Access> accesses;  // of the attempt that runs, or ran last
  std::size_t count = 0, lost = 0;
  Sample<Conflict, kConflictsMax> conflicts;
  Sample<Kept, kFootprintsMax> footprints{1};
  std::array<RecentWrite, kRecentWrites> recent{};
};

constinit std::array<std::atomic<ThreadLog*>, reclaim::Domain::kSlots> logs{};
// The log that the calling thread has begun to fill.
thread_local constinit ThreadLog* begun = nullptr;

// A block's details, in a cell that its first granule chooses, neighbours in neighbouring cells.
struct alignas(64) BlockCell {
  sync::SpinLock lock;
  Block block;
};
constexpr unsigned kBlockCellsLog2 = 20;
constexpr std::size_t kBlockCells = std::size_t{1} << kBlockCellsLog2;
constinit BlockCell* block_cells = nullptr;

BlockCell& cell_of(const void* start) noexcept {
  const std::uint64_t granule = reinterpret_cast<std::uintptr_t>(start) >> kShadowShift;
  return block_cells[(granule + (granule >> kBlockCellsLog2) * 0x9E3779B1ULL) & (kBlockCells - 1)];
}

Block block_of(const Word* word) noexcept {
  const void* const start = blame::block_start(word);
  if (start == nullptr) return {};
  BlockCell& cell = cell_of(start);
  const std::lock_guard guard(cell.lock);
  // The map knows starts by granules: the block itself may start later in its first one.
  const auto granule = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) >> kShadowShift; };
  return granule(cell.block.start) == granule(start) ? cell.block : Block{.start = start};
}

const Word* word_at(const void* address) noexcept {
  return reinterpret_cast<const Word*>(reinterpret_cast<std::uintptr_t>(address) & ~(kWordBytes - 1));
}

RecentWrite& recent_write(ThreadLog& log, const Word* word) noexcept {
  return log.recent[reinterpret_cast<std::uintptr_t>(word) / kWordBytes * 0x9E3779B97F4A7C15ULL >> 52];
}
static_assert(kRecentWrites == std::size_t{1} << (64 - 52), "the hash gives an index");

ThreadLog* log_of(unsigned slot) noexcept { return logs[slot].load(std::memory_order_acquire); }  // explain.B

ThreadLog& make_log(unsigned slot) noexcept {
  void* const place = platform::map_lazy_or_die(sizeof(ThreadLog), "tm: what a thread explains", {.huge_pages = false});
  auto* const log = new (place) ThreadLog(every);
  log->accesses.reserve(kAccessesMax, 0, "log of accesses (explain)");
  auto* room = static_cast<Touched*>(platform::map_lazy_or_die(kFootprintsMax * kFootprintWords * sizeof(Touched),
                                                               "tm: footprints", {.huge_pages = false}));
  for (Kept& kept : log->footprints.storage()) {
    kept.room = {room, kFootprintWords};
    room += kFootprintWords;
  }
  logs[slot].store(log, std::memory_order_release);  // explain.B
  return *log;
}

void add(ThreadLog& log, const Access& access) noexcept {
  if (log.count == log.accesses.capacity()) {
    ++log.lost;
    return;
  }
  log.accesses.begin()[log.count++] = access;
}

// Where the attempt touched, or wrote, `word` last.
Site site_of(const ThreadLog& log, const Word* word, bool written = false) noexcept {
  for (std::size_t i = log.count; i-- > 0;) {
    const Access& access = log.accesses.begin()[i];
    if (access.word == word && (access.written || !written)) return access.site;
  }
  return nullptr;
}

}  // namespace

void start(unsigned every_nth) noexcept {
  if (block_cells == nullptr)
    block_cells = static_cast<BlockCell*>(platform::map_lazy_or_die(
        kBlockCells * sizeof(BlockCell), "tm: details of blocks (explain)", {.huge_pages = false, .core_dump = false}));
  every = every_nth;
}

void attempt_began(const Descriptor& d) noexcept {
  ThreadLog* log = log_of(d.slot);
  if (log == nullptr) log = &make_log(d.slot);
  if (begun != log) {
    begun = log;
    // An earlier thread of the slot filled a structure, say, before there was anybody to meet.
    log->footprints.clear(1);
  }
  log->count = log->lost = 0;
}

void attempt_committed(const Descriptor& d) noexcept {
  ThreadLog& log = *log_of(d.slot);
  if (log.count == 0) return;
  Kept* const kept = log.footprints.next();
  if (kept == nullptr) return;
  kept->size = std::min(log.count, kept->room.size());
  kept->whole = log.lost == 0 && kept->size == log.count;
  for (std::size_t i = 0; i < kept->size; ++i) {
    const Access& access = log.accesses.begin()[i];
    const Block block = block_of(access.word);
    kept->room[i] = {access.word, access.written, block.start, static_cast<std::uint32_t>(block.bytes)};
  }
}

void note_read(const Descriptor& d, const void* address) noexcept {
  if (ThreadLog* const log = log_of(d.slot)) add(*log, {word_at(address), __builtin_return_address(0), false});
}

void note_write(const Descriptor& d, const void* address) noexcept {
  ThreadLog* const log = log_of(d.slot);
  if (log == nullptr) return;
  const Word* const word = word_at(address);
  const Site site = __builtin_return_address(0);
  add(*log, {word, site, true});
  RecentWrite& recent = recent_write(*log, word);
  // relaxed: own. Where the word stands already it stays: there is no moment at which its site is not known, also for
  // an owner that loses its core here, with the word's record locked, and is met again and again.
  if (recent.word.load(std::memory_order_relaxed) == word) {
    recent.site.store(site, std::memory_order_release);  // explain.A
    return;
  }
  recent.word.store(nullptr, std::memory_order_relaxed);
  recent.site.store(site, std::memory_order_release);  // explain.A
  recent.word.store(word, std::memory_order_release);  // explain.A
}

void note_block(const void* start, std::size_t bytes) noexcept {
  const Site site = __builtin_return_address(0);
  const Descriptor& d = Descriptor::current_or_detached();
  const bool transactional = d.mode != Mode::idle && d.mode != Mode::detached;
  BlockCell& cell = cell_of(start);
  const std::lock_guard guard(cell.lock);
  cell.block = {.start = start,
                .bytes = bytes,
                .ordinal = transactional ? d.statistics.blocks_allocated : 0,
                .thread = d.slot,
                .site = site};
}

Site site_of_write(unsigned slot, const Word* word) noexcept {
  ThreadLog* const log = log_of(slot);
  if (log == nullptr) return nullptr;
  const RecentWrite& recent = recent_write(*log, word);
  if (recent.word.load(std::memory_order_acquire) != word) return nullptr;  // explain.A
  const Site site = recent.site.load(std::memory_order_acquire);            // explain.A
  return recent.word.load(std::memory_order_relaxed) == word ? site : nullptr;
}

Site site_of_own_write(unsigned slot, const Word* word) noexcept {
  if (const Site site = site_of_write(slot, word); site != nullptr) return site;
  const ThreadLog* const log = log_of(slot);
  return log == nullptr ? nullptr : site_of(*log, word, true);
}

void conflict(const Descriptor& d, const Orec& record, const Word* mine, const blame::Suspect& suspect) noexcept {
  ThreadLog* const log = log_of(d.slot);
  Conflict* const kept = log == nullptr ? nullptr : log->conflicts.next();
  if (kept == nullptr) return;
  *kept = {.mine = {.word = mine, .thread = d.slot, .block = {}},
           .theirs = {.word = suspect.word, .site = suspect.site, .thread = suspect.slot, .block = {}},
           .cause = suspect.cause,
           .locked = suspect.locked,
           .shift = shared.map.shift,
           .record = static_cast<std::uint64_t>(&record - shared.map.base)};
  if (mine != nullptr) {
    kept->mine.site = site_of(*log, mine);
    kept->mine.block = block_of(mine);
  }
  if (suspect.word != nullptr) {
    if (suspect.locked) kept->theirs.site = site_of_write(suspect.slot, suspect.word);
    kept->theirs.block = block_of(suspect.word);
  }
}

void for_each_conflict(void* context, VisitConflict visit) noexcept {
  for (const auto& each : logs)
    if (const ThreadLog* const log = each.load(std::memory_order_acquire))  // explain.B
      for (const Conflict& conflict : log->conflicts.items()) visit(context, conflict, log->conflicts.interval());
}

void for_each_footprint(void* context, VisitFootprint visit) noexcept {
  for (std::size_t slot = 0; slot < logs.size(); ++slot)
    if (const ThreadLog* const log = logs[slot].load(std::memory_order_acquire))  // explain.B
      for (const Kept& kept : log->footprints.items())
        visit(context, {kept.room.first(kept.size), static_cast<unsigned>(slot), kept.whole},
              log->footprints.interval());
}

}  // namespace loam::tm::explain
