// BitmapSpans: spans of whole units from areas, first fit by address. Memory of free spans returns to the system by
//   decay. A free unit is clean (no memory is behind it, it reads as zero) or dirty (it has the memory of an earlier
//   span). A dirty unit that was not used for a whole tick is purged from the next tick on, so memory returns after 250
//   to 500 ms. Purging works in runs of units, without the lock. One call purges little more than it gave back, so that
//   no call takes long; the limit doubles for every tick that has passed. Purging needs calls: by threads that give
//   spans back, or of decay_if_due().
//   A process that frees much and then makes no call would keep all of it. So what is dirty is bounded (ADR 0032): who
//   gives slabs back beyond kDirtyMax purges them first, itself and without the lock, and a thread that ends purges what
//   is beyond kDirtyMaxAtEnd. Both bounds rise by what was missed afterwards: a program that frees and allocates the same
//   memory in turn purges it once (KeptMemory).
//   Source first fit by bitmaps as in jemalloc's and mimalloc's arenas; decay as in jemalloc 5.
//   Cost: a lock and a scan of at most 64 words an area; for slabs and large blocks only, never for a block.
//   S1 a unit is used, dirty or clean: dirty & used = 0, aged is part of dirty.
//   S2 a span's units are all used, and belong to no other span.
//   S3 the page map has no word for a unit that is not used.
//   S4 at every moment a unit that was in use is used or dirty: it is never marked clean before its memory is gone. The
//      child of a fork relies on that: it sees a thread's stores up to some moment and none after it.
//   S5 the entry of a unit has units exactly where a span begins.
#pragma once

#include "runtime/heap/area.hpp"
#include "runtime/heap/kept_memory.hpp"
#include "runtime/heap/page_source.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <algorithm>
#include <concepts>
#include <mutex>

namespace loam::heap {

struct SpanUsage {
  std::uint64_t areas, reserved_bytes, used_bytes, slab_bytes, dirty_bytes, clean_bytes, purged_bytes_total,
      metadata_bytes;
};

template <class S>
concept SpanStore = requires(Span* span, unsigned units, const void* pointer, std::byte* begin, std::size_t bytes) {
  // units, alignment in units, how many at most; linked by next, nullptr: no memory
  { S::take(units, units, units) } -> std::same_as<Span*>;
  // a span and those that it is linked to
  { S::give(span) };
  { S::grow(span, units) } -> std::same_as<bool>;  // to so many units, in place
  { S::shrink(span, units) };
  { S::trim() } -> std::same_as<bool>;
  { S::span_of(pointer) } -> std::same_as<Span*>;  // of a block in a slab
  { S::places_of(span) } -> std::same_as<UnitPlaces&>;
  { S::purge(begin, bytes) };
  { S::lock() };
  { S::unlock() };
  { S::open() } -> std::same_as<bool>;
  { S::mend_in_child() };  // after a fork
  { S::dirty_units() } -> std::same_as<std::size_t>;
  { S::decay_if_due(units) };
  { S::thread_ends() };
  { S::usage() } -> std::same_as<SpanUsage>;
};

template <PageSource Pages>
class BitmapSpans {
 public:
  static constexpr unsigned kUnitsMax = kUnitsOfArea / 4;  // longer ones would leave an area that serves nothing else
  static constexpr std::uint64_t kTickNs = 250'000'000;
  static constexpr unsigned kPurgedAtOnce = 8;  // units at least: the system takes some 20 us for them
  static constexpr std::size_t kDirtyMax = (std::size_t{64} << 20) / kUnitBytes,
                               kDirtyMaxAtEnd = (std::size_t{8} << 20) / kUnitBytes;

  // The highest comes first. Another area is begun for one span, not for more of them.
  static Span* take(unsigned units, unsigned alignment, unsigned count) noexcept {
    const std::lock_guard guard(lock_);
    if (!open()) return nullptr;
    Span* found = nullptr;
    for (Area* area = first_; area != nullptr && count != 0; area = area->next)
      count -= take_from(*area, units, alignment, count, found);
    if (found == nullptr)
      if (Area* const area = add_area()) take_from(*area, units, alignment, count, found);
    if (kept_.has_given()) [[unlikely]]
      for (const Span* span = found; span != nullptr; span = span->next) kept_.note_taken(span->units, kNoLimit);
    return found;
  }

  // The words of the spans in the page map are the caller's to clear, before.
  static void give(Span* spans) noexcept {
    if (dirty_units() >= kDirtyMax) [[unlikely]]
      give_slabs_back(spans);
    const std::lock_guard guard(lock_);
    std::uint64_t given = 0;
    for (Span* span = spans; span != nullptr; span = span->next) {
      Area& area = area_of(span);
      release(area, index_of(area, span), span->units, span->clean);
      if (!span->clean)
        given += span->units;
      else if (span->kind != SpanKind::reserved)
        purged_units_ += span->units;
      span->kind = SpanKind::none;
      span->units = 0;  // S5
    }
    add_dirty(given);
    decay(static_cast<unsigned>(given));
  }

  static bool grow(Span* span, unsigned units) noexcept {
    const std::lock_guard guard(lock_);
    Area& area = area_of(span);
    const unsigned end = index_of(area, span) + span->units, more = units - span->units;
    if (end + more > area.units || area.used.next_set(end) < end + more || !opened(area, end, more)) return false;
    occupy(area, end, more);
    span->units = units;
    span->zero = false;
    return true;
  }

  static void shrink(Span* span, unsigned units) noexcept {
    const std::lock_guard guard(lock_);
    Area& area = area_of(span);
    const unsigned less = span->units - units;
    span->units = units;
    release(area, index_of(area, span) + units, less, false);
    add_dirty(less);
    decay(less);
  }

  // Units that are free and still backed by memory.
  static std::size_t dirty_units() noexcept { return dirty_units_.load(std::memory_order_relaxed); }

  // If a tick has passed, purges units that have been free for a while, at least `units`. Any thread may call it; it
  // does not wait.
  static void decay_if_due(unsigned units = 0) noexcept {
    // relaxed: hints; the lock orders.
    if (dirty_units() == 0 || Pages::now_ns() - ticked_ns_.load(std::memory_order_relaxed) < kTickNs) return;
    if (!lock_.try_lock()) return;
    decay(units);
    lock_.unlock();
  }

  // A thread has given its slabs back and makes no call any more.
  static void thread_ends() noexcept {
    // relaxed: hints; the lock orders.
    if (dirty_units() <= kDirtyMaxAtEnd) return;
    const std::size_t stays = kDirtyMaxAtEnd + kept_.room_now();
    const std::lock_guard guard(lock_);
    // Another thread that purges for its end sees afterwards what this one has given.
    while (dirty_units() > stays && purging_.area == nullptr) {
      const std::size_t excess = dirty_units() - stays;
      kept_.note_given(excess);
      age_dirty();
      purge_aged(excess);
    }
  }

  // Purges every dirty unit. returns whether there was one
  static bool trim() noexcept {
    const std::lock_guard guard(lock_);
    const std::uint64_t before = purged_units_;
    age_dirty();
    purge_aged(~std::uint64_t{0});
    return purged_units_ != before;
  }

  static Span* span_of(const void* pointer) noexcept {
    return &of_address_[address_of(pointer) >> kAreaShift]->span_of(pointer);
  }
  // Of a span's first unit; those of its other units follow.
  static UnitPlaces& places_of(const Span* span) noexcept {
    Area& area = area_of(span);
    return area.noted[index_of(area, span)];
  }

  // Gives pages of a span that is in use back to the system.
  static void purge(std::byte* begin, std::size_t bytes) noexcept { Pages::purge(begin, bytes); }

  // From now on units of new areas are inaccessible until a span uses them, and stay accessible then: a write far beyond
  // a block ends the process. Costs a system call for each span of new units.
  static void close_unused() noexcept { closes_.store(true, std::memory_order_relaxed); }

  static void lock() noexcept { lock_.lock(); }
  static void unlock() noexcept { lock_.unlock(); }

  // Under the lock: makes the page map and the table of areas, once. returns false: no memory
  static bool open() noexcept {
    if (of_address_ != nullptr) [[likely]]
      return true;
    if (!PageMap::is_open() && !PageMap::open()) return false;
    of_address_ =
        reinterpret_cast<Area**>(Pages::metadata((PageMap::limit() >> (kAreaShift - kUnitShift)) * sizeof(Area*)));
    return of_address_ != nullptr;
  }

  // Call it in the child of a fork: other threads of the parent may have been at any place in this code. Units that one
  // of them was returning to the system are free. Units that one of them was taking or giving back stay used, and never
  // serve again.
  static void mend_in_child() noexcept {
    if (Purge& left = purging_; left.area != nullptr && left.thread != lock_.this_thread()) {
      release(*left.area, left.first, left.units, false);
      add_dirty(left.units);
      left = {};
    }
    if (!lock_.is_orphaned()) return;
    dirty_units_.store(0, std::memory_order_relaxed);
    for (Area* area = first_; area != nullptr; area = area->next) {
      mend(*area);
      dirty_units_.fetch_add(area->dirty.count(0, area->units), std::memory_order_relaxed);
    }
    lock_.unlock();
  }

  static SpanUsage usage() noexcept {
    const std::lock_guard guard(lock_);
    SpanUsage sum{};
    for (const Area* next = first_; next != nullptr; next = next->next) {
      const Area& area = *next;
      ++sum.areas;
      const std::uint64_t used = area.used.count(0, area.units), dirty = area.dirty.count(0, area.units);
      sum.reserved_bytes += std::uint64_t{area.units} * kUnitBytes;
      sum.metadata_bytes += Area::bytes_for(area.units);
      sum.used_bytes += used * kUnitBytes;
      sum.dirty_bytes += dirty * kUnitBytes;
      sum.clean_bytes += (area.once_used.count(0, area.units) - used - dirty) * kUnitBytes;
      for (unsigned unit = 0; (unit = area.used.next_set(unit)) < area.units;) {
        const Span& span = area.spans[unit];
        if (span.kind == SpanKind::slab) sum.slab_bytes += span.units * kUnitBytes;
        unit += std::max(span.units, 1u);  // a run that is being purged is used and no span
      }
    }
    sum.purged_bytes_total = purged_units_ * kUnitBytes;
    return sum;
  }

  // visit(span), for each span that is in use, as long as it returns true. Other threads may be working in the spans.
  template <class Visit>
  static void for_each(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (const Area* area = first_; area != nullptr; area = area->next)
      for (unsigned unit = 0; (unit = area->used.next_set(unit)) < area->units;) {
        const Span& span = area->spans[unit];
        if (span.units != 0 && !visit(span)) return;
        unit += std::max(span.units, 1u);  // a run that is being purged is used and no span
      }
  }

  // nullptr, or the invariant that does not hold. visit(span) for each span that is in use.
  template <class Visit>
  static const char* verify(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (Area* next = first_; next != nullptr; next = next->next) {
      Area& area = *next;
      for (unsigned unit = 0; unit < area.units;) {
        const bool used = area.used[unit];
        if (used && area.dirty[unit]) return "S1: a used unit is not dirty";
        if (area.aged[unit] && !area.dirty[unit]) return "S1: an aged unit is dirty";
        if (!used) {
          if (PageMap::at(unit_of(area.base) + unit) != 0) return "S3: a free unit has no word in the page map";
          ++unit;
          continue;
        }
        Span& span = area.spans[unit];
        if (span.units == 0) return "S2: a used unit belongs to a span";
        if (area.used.count(unit, span.units) != span.units) return "S2: a span's units are used";
        if (const char* const broken = visit(span)) return broken;
        unit += span.units;
      }
    }
    return nullptr;
  }

 private:
  using Bits = UnitBits<kUnitsOfArea>;

  static constexpr unsigned kUnitsOfAreaMin = 8;

  // The memory of slabs, before the store gets them; long blocks have their own rule.
  [[gnu::cold, gnu::noinline]] static void give_slabs_back(Span* spans) noexcept {
    for (Span* span = spans; span != nullptr; span = span->next) {
      // Other threads may have taken units since the caller looked.
      const std::size_t beyond = std::max(dirty_units(), kDirtyMax) - kDirtyMax;
      if (span->kind != SpanKind::slab || kept_.keeps(span->units, beyond)) continue;
      Pages::purge(span->blocks - address_of(span->blocks) % kUnitBytes, span->units * kUnitBytes);
      span->clean = true;
    }
  }

  static unsigned index_of(const Area& area, const Span* span) noexcept {
    return static_cast<unsigned>(span - area.spans);
  }
  static Area& area_of(const Span* span) noexcept {
    // blocks lies within the span's first unit.
    return *of_address_[address_of(span->blocks) >> kAreaShift];
  }

  // The lowest place for a span, dirty units before clean ones where one unit is wanted; area.units: none.
  static unsigned find(Area& area, unsigned units, unsigned alignment) noexcept {
    if (units == 1 && alignment == 1) {
      const unsigned dirty = area.dirty.next_set(0);
      if (dirty < area.units) return dirty;
    }
    area.hint = area.used.next_clear(area.hint);
    for (unsigned from = area.hint;;) {
      const unsigned first = area.used.clear_run(from, area.units, units);
      if (first >= area.units || alignment == 1) return first;
      const auto aligned = base::round_up(static_cast<unsigned>(unit_of(area.base)) + first, alignment) -
                           static_cast<unsigned>(unit_of(area.base));
      if (aligned + units <= area.units && area.used.next_set(aligned) >= aligned + units) return aligned;
      from = aligned + 1;
      if (from >= area.units) return area.units;
    }
  }

  // Puts up to `count` spans before those found so far. returns how many
  static unsigned take_from(Area& area, unsigned units, unsigned alignment, unsigned count, Span*& found) noexcept {
    unsigned taken = 0;
    for (unsigned first; taken < count && (first = find(area, units, alignment)) < area.units; ++taken) {
      if (!opened(area, first, units)) break;
      Span* const span = use(area, first, units);
      span->next = found;
      found = span;
    }
    return taken;
  }

  static Span* use(Area& area, unsigned first, unsigned units) noexcept {
    Span& span = area.spans[first];
    span = Span{};
    span.units = units;
    span.first = first;
    span.blocks = area.base + std::size_t{first} * kUnitBytes;
    span.zero = occupy(area, first, units) == 0;
    return &span;
  }

  // Makes units accessible that no span has used yet. returns false where the system refuses
  static bool opened(const Area& area, unsigned first, unsigned units) noexcept {
    return !area.closed || area.once_used.count(first, units) == units ||
           Pages::protect(area.base + std::size_t{first} * kUnitBytes, std::size_t{units} * kUnitBytes, true);
  }

  // Makes free units used. returns how many were dirty
  static unsigned occupy(Area& area, unsigned first, unsigned units) noexcept {
    const unsigned dirty = Bits::pass(area.dirty, area.used, first, units);  // S4
    if (dirty != units) area.once_used.set(first, units);
    if (dirty != 0) {
      area.aged.clear(first, units);
      add_dirty(-std::size_t{dirty});
    }
    return dirty;
  }

  // Makes used units free; clean: no memory is behind them.
  static void release(Area& area, unsigned first, unsigned units, bool clean) noexcept {
    if (clean) [[unlikely]]
      area.used.clear(first, units);
    else
      Bits::pass(area.used, area.dirty, first, units);  // S4
    area.hint = std::min(area.hint, first);
  }

  // Under the lock.
  static void add_dirty(std::size_t units) noexcept {
    dirty_units_.store(dirty_units() + units, std::memory_order_relaxed);
  }

  // For a fork during which another thread changed the area. Units that it was taking or giving back become spans of
  // one unit that never serve. Spans of this thread stay as they are, even one that it is about to give back.
  static void mend(Area& area) noexcept {
    for (unsigned unit = 0; (unit = area.used.next_set(unit)) < area.units;) {
      Span& span = area.spans[unit];
      if (span.units == 0) {
        span = Span{};
        span.units = 1;
        span.first = unit;
      }
      area.used.set(unit, span.units);
      area.dirty.clear(unit, span.units);
      area.aged.clear(unit, span.units);
      unit += span.units;
    }
    area.hint = 0;
  }

  // Makes an area as long as the system allows. The metadata is reserved first; if that is refused, the area is
  // shorter.
  static Area* add_area() noexcept {
    for (unsigned units = kUnitsOfArea; units >= kUnitsOfAreaMin; units /= 2) {
      const std::size_t known = Area::bytes_for(units);
      std::byte* const memory = Pages::metadata(known);
      if (memory == nullptr) continue;
      const Reservation found = Pages::area(std::size_t{units} * kUnitBytes);
      if (found.base == nullptr) {
        // The metadata itself may have taken what was left.
        Pages::unmap(memory, known);
        continue;
      }
      auto* const area = reinterpret_cast<Area*>(memory);  // zeroed pages are an Area of no units
      area->base = found.base;
      area->set_units(static_cast<std::uint32_t>(found.bytes >> kUnitShift));
      area->closed = closes_.load(std::memory_order_relaxed) && Pages::protect(found.base, found.bytes, false);
      if (const std::size_t needed = base::round_up(Area::bytes_for(area->units), platform::page_bytes());
          needed < known)
        Pages::unmap(memory + needed, known - needed);
      of_address_[address_of(found.base) >> kAreaShift] = area;
      Area** end = &first_;
      while (*end != nullptr) end = &(*end)->next;
      platform::compiler_barrier();  // S4: the child of a fork finds only areas that are complete
      *end = area;
      return area;
    }
    return nullptr;
  }

  // Call with the lock held.
  static void decay(unsigned given) noexcept {
    // relaxed: written under the lock.
    const std::uint64_t now = Pages::now_ns(), ticks = (now - ticked_ns_.load(std::memory_order_relaxed)) / kTickNs;
    if (ticks == 0) return;
    const std::uint64_t units = std::uint64_t{std::max(given, kPurgedAtOnce)} << std::min<std::uint64_t>(ticks - 1, 31);
    if (!purge_aged(units)) return;
    ticked_ns_.store(now, std::memory_order_relaxed);
    age_dirty();
  }

  static void age_dirty() noexcept {
    for (Area* area = first_; area != nullptr; area = area->next) area->aged = area->dirty;
  }

  // Gives the memory of aged units back, so many at most, run by run. While the system works on a run it counts as
  // used, and the lock, which the caller holds, is free. One thread at a time. returns whether none is left
  static bool purge_aged(std::uint64_t units) noexcept {
    if (purging_.area != nullptr) return false;
    for (Area* next = first_; next != nullptr; next = next->next) {
      Area& area = *next;
      for (unsigned first = 0; (first = area.aged.next_set(first)) < area.units;) {
        if (units == 0) return false;
        const unsigned left = static_cast<unsigned>(std::min<std::uint64_t>(units, area.units - first));
        const unsigned end = std::min(area.aged.next_clear(first), first + left);
        units -= end - first;
        occupy(area, first, end - first);
        purging_ = {nullptr, first, end - first, lock_.this_thread()};
        platform::compiler_barrier();  // S4: the child of a fork reads the rest where there is an area
        purging_.area = &area;
        lock_.unlock();
        Pages::purge(area.base + std::size_t{first} * kUnitBytes, std::size_t{end - first} * kUnitBytes);
        lock_.lock();
        area.used.clear(first, end - first);
        purging_.area = nullptr;
        area.hint = std::min(area.hint, first);
        purged_units_ += end - first;
        first = end;
      }
    }
    return true;
  }

  struct Purge {
    Area* area;  // nullptr: none
    unsigned first, units;
    std::uintptr_t thread;
  };

  static constexpr std::size_t kNoLimit = ~std::size_t{0};

  static inline constinit sync::OwnedLock lock_{};
  static inline constinit KeptMemory<Pages, 1'000'000'000> kept_{};  // what slabs missed
  static inline constinit Purge purging_{};
  static inline constinit std::atomic<bool> closes_{false};
  static inline constinit Area* first_ = nullptr;        // the others follow by `next`, in the order of their making
  static inline constinit Area** of_address_ = nullptr;  // by address, as far as the page map goes
  static inline constinit std::uint64_t purged_units_ = 0;
  static inline constinit std::atomic<std::uint64_t> ticked_ns_{0};
  static inline constinit std::atomic<std::size_t> dirty_units_{0};
};

}  // namespace loam::heap
