// Slabs: the spans that a thread heap cuts into blocks of one class, and lists of slabs that have free blocks.
//   Blocks are carved a page at a time in address order, so that memory is touched only when it is needed. A block is
//   carved and on its slab's free_list, or not carved yet, or out: a user or some list of a heap has it, which the slab
//   does not know. A slab without blocks that are out is whole. Whole slabs return to the store, except some for each
//   class. Slabs come from the store, and return to it, in lots of an eighth of the class's slabs. The store is shared
//   by all threads: so its lock and its cache lines are paid once for each lot. Spans of one unit come in lots for all
//   classes together, of half of the heap's units, eight at most; what the class does not need is the reserve, from
//   which other classes take.
//   Stripped slabs lack the memory of some of their free blocks (stripping.hpp). They serve when the class has no other
//   block to give, before a whole slab does.
//   Cost: O(1) to refill from a slab; giving a list back walks it once and splices runs of one slab.
//   B1 carved <= capacity, noted <= free <= carved. free_list has the slab's free blocks except those that are noted at
//      their places: short blocks that serve by address (serving_order.hpp), and blocks without memory.
//   B2 a slab is listed exactly if it has a block to give: free > 0 or carved < capacity; among the whole ones if none
//   of its blocks is out.
//   B3 the page map's word of each of a slab's units is the owner heap's address xor its class times kWordStep.
//   B4 a slab's blocks lie within its span.
//   Not thread-safe: only its heap's thread calls it, or the thread that holds an idle heap.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/heap/area.hpp"
#include "runtime/heap/free_block.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/serving_order.hpp"
#include "runtime/heap/size_classes.hpp"
#include "runtime/heap/span_store.hpp"
#include "runtime/heap/stripping.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace loam::heap {

template <SizeClasses Classes, SpanStore Spans>
class Slabs {
 public:
  explicit constexpr Slabs(ServingOrder order) noexcept : order_(order) {}

  // Whether blocks of the class serve by address.
  bool is_by_address(unsigned c) const noexcept {
    return order_ == ServingOrder::by_address && is_short(Classes::bytes_of(c));
  }

  static PageMap::Word word_of(Key owner, unsigned c) noexcept { return owner ^ PageMap::Word{c} * kWordStep; }

  // Some blocks of the class, linked with the key; none where the system has no memory.
  // elsewhere(): called before slabs are made; blocks that serve instead, linked with the key, or none.
  // grown(): called after slabs of new memory were made; it may give blocks back.
  template <class Elsewhere, class Grown>
  BlockList take(unsigned c, Key owner, Elsewhere elsewhere, Grown grown) noexcept {
    Class& own = classes_[c];
    Span* slab = own.giving;
    if (slab == nullptr) {
      if (own.whole == nullptr) {
        if (sparse_[c].stripped == nullptr)
          if (const BlockList found = elsewhere(); found.first != nullptr) return found;
        if (!bring(c, owner, grown)) return {nullptr, 0};
      }
      slab = own.whole;
      unlist(own.whole, *slab);
      --own.wholes;
      list(own.giving, *slab, Listed::giving);
    }
    BlockList found{slab->free_list, slab->free};
    if (slab->free != 0) {
      if (slab->noted != 0) [[unlikely]]
        return take_noted(*slab, owner);
      slab->free_list = nullptr;
      slab->free = 0;
    } else {
      found = carve(*slab, owner);
    }
    own.taken += found.count;
    if (slab->carved == slab->capacity) unlist(own.giving, *slab);
    return found;
  }

  // Takes a list of blocks back, each to its slab; slabs that become whole go back to the store.
  // away(block, word): for blocks of other owners
  template <class Away>
  [[gnu::always_inline]] void give(FreeBlock* first, unsigned c, Key owner, Away away) noexcept {
    while (first != nullptr) {
      if (const PageMap::Word word = PageMap::at(unit_of(first)); word != word_of(owner, c)) [[unlikely]] {
        FreeBlock* const next = next_of(first, owner);
        away(first, word);
        first = next;
        continue;
      }
      Span& slab = *Spans::span_of(first);
      const Run run = is_by_address(c) ? note_run(slab, first, owner) : splice_run(slab, first, owner);
      LOAM_ASSERT(slab.kind == SpanKind::slab && slab.size_class == c, "B3: a block of class {} lies in a slab of it",
                  c);
      LOAM_ASSERT(slab.free + run.length <= slab.carved, "B1: {} blocks came back to a slab that had {} out",
                  run.length, slab.carved - slab.free);
      slab.free += run.length;
      if (slab.listed == Listed::no) list(classes_[c].giving, slab, Listed::giving);
      if (slab.free == slab.carved) keep_whole(slab);
      first = run.next;
    }
  }

  // Whether the heap's slabs have become a sixteenth longer than they were at any time in the period before.
  bool is_period_over() const noexcept { return units_ >= period_ends_at_; }
  bool is_strip_due() const noexcept { return units_ >= strips_at_; }

  // Begins a period (ADR 0035). In it a class keeps memory behind twice as many free blocks as it took in the last one.
  // If many pages came back into use in the last period, fewer pages are stripped at once.
  void begin_period(Key owner) noexcept {
    for (unsigned c = 0; c < Classes::kClasses; ++c) sparse_[c].spare = 2 * std::exchange(classes_[c].taken, 0);
    period_ends_at_ = std::exchange(units_max_, units_) + period_units();
    pages_max_ = std::clamp(pages_back_ > pages_max_ / 4 ? pages_max_ / 2 : 2 * pages_max_, kPagesMin, kPagesMax);
    pages_back_ = 0;
    strip(owner);
  }

  // Strips slabs of free blocks that are more than the classes need, pages_max_ pages or little more: no call takes long.
  void strip(Key owner) noexcept {
    if (order_ == ServingOrder::by_address) return;
    const unsigned pages_max = pages_max_;
    unsigned pages = 0;
    for (unsigned c = 0; c < Classes::kClasses && pages < pages_max; ++c) {
      Class& own = classes_[c];
      Sparse& sparse = sparse_[c];
      std::uint32_t spare = sparse.spare;
      const auto strip_one = [&](Span& slab) {
        Stripping<Spans> stripping(slab, Classes::bytes_of(c), owner);
        pages += stripping.strip();
        slab.left = static_cast<std::uint16_t>(slab.free - slab.noted);
      };
      for (Span *slab = own.giving, *next; slab != nullptr && pages < pages_max; slab = next) {
        next = slab->next;
        const std::uint32_t to_give = slab->free - slab->noted + slab->capacity - slab->carved;
        if (spare != 0) {
          spare -= std::min(spare, to_give);
        } else if (is_worth_stripping(*slab)) {
          strip_one(*slab);
          unlist(own.giving, *slab);
          list(sparse.stripped, *slab, Listed::stripped);
        }
      }
      for (Span* slab = sparse.spare == 0 ? own.whole : nullptr; slab != nullptr && pages < pages_max;
           slab = slab->next)
        pages += renew(*slab);
      for (Span* slab = sparse.stripped; slab != nullptr && pages < pages_max; slab = slab->next)
        if (is_worth_stripping(*slab)) strip_one(*slab);
    }
    strips_at_ = pages < pages_max ? period_ends_at_ : units_ + kStripUnits;
  }

  // From now on whole slabs stay until give_whole(). A heap that gives all it has comes to the store once then: its lock
  // is the same for all threads.
  void gather_whole() noexcept { gathers_ = true; }

  // Returns to the store also the whole slabs that classes keep.
  void give_whole() noexcept {
    gathers_ = false;
    Span* gone = nullptr;
    for (unsigned c = 0; c < Classes::kClasses; ++c) gone = cut_off(c, 0, gone);
    while (reserve_ != nullptr) {
      reserve_->clean = reserve_->zero;  // as it came, so it goes
      put_in_front(gone, *std::exchange(reserve_, reserve_->next));
    }
    if (gone != nullptr) Spans::give(gone);
  }

  // Whether one of the slab's blocks begins there that were made so far.
  static bool has_carved(const Span& slab, const void* address) noexcept {
    const std::size_t offset = address_of(address) - address_of(slab.blocks);
    const std::size_t bytes = Classes::bytes_of(slab.size_class);
    return offset % bytes == 0 && offset / bytes < slab.carved;
  }

  // Whether the block came back to the slab in which it lies.
  static bool has_back(const FreeBlock* block, Key owner) noexcept {
    const Span* const slab = Spans::span_of(block);
    const FreeBlock* listed = slab->free_list;
    while (listed != nullptr && listed != block) listed = next_of(listed, owner);
    return listed != nullptr || place_set(*slab, block)[place_of(block)];
  }

  // nullptr, or the invariant that does not hold for a slab of this owner.
  static const char* verify(const Span& slab, Key owner) noexcept {
    const unsigned c = slab.size_class;
    if (slab.carved > slab.capacity || slab.free > slab.carved) return "B1: free <= carved <= capacity";
    if ((slab.listed != Listed::no) != (slab.free > 0 || slab.carved < slab.capacity))
      return "B2: listed if it has a block to give";
    if ((slab.listed == Listed::whole) != (slab.free == slab.carved)) return "B2: among the whole ones if none is out";
    const std::size_t shift = address_of(slab.blocks) % kUnitBytes;
    if (shift + slab.capacity * Classes::bytes_of(c) > slab.units * kUnitBytes) return "B4: blocks end within the slab";
    for (unsigned unit = 0; unit < slab.units; ++unit)
      if (PageMap::at((address_of(slab.blocks) >> kUnitShift) + unit) != word_of(owner, c))
        return "B3: the page map names owner and class";
    std::uint32_t length = 0;
    for (const FreeBlock* block = slab.free_list; block != nullptr; block = next_of(block, owner)) {
      if (!has_carved(slab, block)) return "B1: what is on a free list are carved blocks of the slab";
      if (++length > slab.free) break;
    }
    if (length != slab.free - slab.noted) return "B1: a free list has the blocks that are free and not noted";
    length = 0;
    for (const std::byte* unit = slab.blocks - shift; unit < slab.blocks - shift + slab.units * kUnitBytes;
         unit += kUnitBytes) {
      const UnitPlaces& places = place_set(slab, unit);
      for (unsigned place = places.next_set(0); place < kPlaces; place = places.next_set(place + 1), ++length)
        if (!has_carved(slab, unit + place * kBlockAlignment))
          return "B1: what is noted as free are carved blocks of the slab";
    }
    return length == slab.noted ? nullptr : "B1: `noted` blocks are noted";
  }

 private:
  static constexpr unsigned kPlaces = kUnitBytes / kBlockAlignment;
  static constexpr std::size_t kAtOnce = 16;
  static constexpr std::uint32_t kLotMax = 8;
  static constexpr std::size_t kUnitsForOneInReserve = 2;
  // So many units more begin a period at the earliest; and while there is more to strip, so many strip again.
  static constexpr std::size_t kPeriodUnits = 64, kStripUnits = 16;
  static constexpr unsigned kPagesMin = 8, kPagesMax = 512;

  std::size_t period_units() const noexcept { return std::max(kPeriodUnits, units_ / 16); }

  // Makes a whole slab a new one, without memory. returns the number of pages that went back
  static unsigned renew(Span& slab) noexcept {
    if (slab.carved == 0) return 0;
    const std::size_t shift = address_of(slab.blocks) % kUnitBytes;
    const std::size_t bytes =
        base::round_up(shift + slab.carved * Classes::bytes_of(slab.size_class), platform::kPageBytes);
    Spans::purge(slab.blocks - shift, bytes);
    if (slab.noted != 0) std::fill_n(&Spans::places_of(&slab), slab.units, UnitPlaces{});
    slab.carved = slab.free = slab.noted = slab.left = 0;
    slab.free_list = nullptr;
    slab.zero = true;
    return static_cast<unsigned>(bytes / platform::kPageBytes);
  }

  // Enough blocks came back since it was stripped last.
  static bool is_worth_stripping(const Span& slab) noexcept {
    return slab.free - slab.noted > slab.left + slab.capacity / 8;
  }

  struct Class {
    Span* giving;  // slabs with blocks to give of which some are out
    Span* whole;   // slabs of which none is out, the last one that became so first
    std::uint32_t wholes, slabs;
    std::uint32_t taken;  // blocks, in this period

    std::uint32_t lot() const noexcept { return std::clamp(slabs / 8, 1u, kLotMax); }
  };
  // What only looks and slow paths use of a class.
  struct Sparse {
    Span* stripped;       // slabs that were stripped, with blocks to give of which some are out
    std::uint32_t spare;  // blocks that keep their memory while they are free
  };

  // The number of whole slabs that a class keeps: several of long blocks, because a slab has few of them. For short
  // blocks the shelf already keeps the blocks that serve again soon.
  static constexpr std::uint32_t whole_max(unsigned c) noexcept { return Classes::bytes_of(c) < kLongBytes ? 1 : 4; }

  // Puts a slab among the whole ones that gives blocks next: a stripped one, or else a lot of new ones. returns false
  // where the system has no memory
  template <class Grown>
  [[gnu::noinline]] bool bring(unsigned c, Key owner, Grown grown) noexcept {
    if (Span* const slab = sparse_[c].stripped; slab != nullptr) {
      unlist(sparse_[c].stripped, *slab);
      slab->left = 0;
      list(classes_[c].whole, *slab, Listed::whole);
      ++classes_[c].wholes;
      return true;
    }
    Span* slab = take_spans(c);
    const bool made = slab != nullptr, is_new = made && slab->zero;
    for (Span* next; slab != nullptr; slab = next) {
      next = slab->next;
      make_slab(*slab, c, owner);
    }
    units_max_ = std::max(units_max_, units_);
    if (is_new || units_ >= strips_at_) grown();  // whatever it gives back, the class keeps a whole slab
    return made;
  }

  // Spans for a lot of slabs, the highest first. Those of one unit come from the reserve, which classes share.
  Span* take_spans(unsigned c) noexcept {
    const std::uint32_t wanted = classes_[c].lot();
    if (Classes::units_of(c) != 1) return Spans::take(Classes::units_of(c), 1, wanted);
    if (reserve_ == nullptr) {
      const auto lot = static_cast<std::uint32_t>(std::min<std::size_t>(units_ / kUnitsForOneInReserve, kLotMax));
      for (Span *span = Spans::take(1, 1, std::max(wanted, lot)), *next; span != nullptr; span = next) {
        next = span->next;
        span->kind = SpanKind::reserved;
        put_in_front(reserve_, *span);
      }
    }
    Span* taken = nullptr;
    for (std::uint32_t i = 0; i < wanted && reserve_ != nullptr; ++i)
      put_in_front(taken, *std::exchange(reserve_, reserve_->next));
    return taken;
  }
  static void put_in_front(Span*& list, Span& span) noexcept {
    span.next = list;
    list = &span;
  }

  void make_slab(Span& slab, unsigned c, Key owner) noexcept {
    const unsigned units = slab.units;
    const std::uintptr_t unit = unit_of(slab.blocks);
    const bool natural = Classes::is_natural(c);
    slab.kind = SpanKind::slab;
    slab.size_class = static_cast<std::uint8_t>(c);
    slab.capacity =
        static_cast<std::uint32_t>((units * kUnitBytes - (natural ? 0 : kColourBytesMax)) / Classes::bytes_of(c));
    slab.blocks += natural ? 0 : colour_of(unit);
    for (unsigned i = 1; i < units; ++i) (&slab)[i].first = slab.first;
    PageMap::set(unit, units, word_of(owner, c));
    list(classes_[c].whole, slab, Listed::whole);
    ++classes_[c].wholes;
    ++classes_[c].slabs;
    units_ += units;
  }

  // Blocks of one slab that follow each other in a list, and what comes behind them.
  struct Run {
    FreeBlock* next;
    std::uint32_t length;
  };
  static Run splice_run(Span& slab, FreeBlock* first, Key owner) noexcept {
    const std::uintptr_t low = unit_of(slab.blocks) << kUnitShift, bytes = slab.units * kUnitBytes;
    FreeBlock *last = first, *next;
    std::uint32_t length = 1;
    while ((next = next_of(last, owner)) != nullptr && address_of(next) - low < bytes) {
      last = next;
      ++length;
    }
    link_to(last, slab.free_list, owner);
    slab.free_list = first;
    return {next, length};
  }
  // The same where they serve by address, of slabs of one unit.
  static Run note_run(Span& slab, FreeBlock* first, Key owner) noexcept {
    UnitPlaces& places = Spans::places_of(&slab);
    const std::uintptr_t unit = unit_of(first);
    Run run{first, 0};
    do {
      places.set(place_of(run.next));
      ++run.length;
      run.next = next_of(run.next, owner);
    } while (run.next != nullptr && unit_of(run.next) == unit);
    slab.noted += run.length;
    return run;
  }

  static const UnitPlaces& place_set(const Span& slab, const void* address) noexcept {
    return (&Spans::places_of(&slab))[unit_of(address) - unit_of(slab.blocks)];
  }

  // Of a slab with noted blocks: those that it lists, or else noted ones.
  [[gnu::noinline]] BlockList take_noted(Span& slab, Key owner) noexcept {
    const unsigned c = slab.size_class;
    BlockList found{slab.free_list, slab.free - slab.noted};
    if (found.count != 0) {
      slab.free_list = nullptr;
    } else {
      found = is_by_address(c) ? take_in_order(Spans::places_of(&slab), unit_of(slab.blocks), slab.noted, owner)
                               : Stripping<Spans>(slab, Classes::bytes_of(c), owner).take();
      ++pages_back_;
      slab.noted -= found.count;
    }
    slab.free -= found.count;
    classes_[c].taken += found.count;
    if (slab.free == 0 && slab.carved == slab.capacity) unlist(classes_[c].giving, slab);
    return found;
  }

  // The next blocks in address order: those that begin in the page where the carved ones end, and at least kAtOnce
  // where the slab's memory is there already.
  static BlockList carve(Span& slab, Key owner) noexcept {
    const std::size_t bytes = Classes::bytes_of(slab.size_class);
    std::byte* const begin = slab.blocks + slab.carved * bytes;
    const std::size_t page_left = platform::kPageBytes - address_of(begin) % platform::kPageBytes;
    const std::size_t wanted = std::max((page_left + bytes - 1) / bytes, slab.zero ? 1 : kAtOnce);
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(wanted, slab.capacity - slab.carved));
    const auto block = [begin, bytes](std::size_t i) { return reinterpret_cast<FreeBlock*>(begin + i * bytes); };
    for (std::uint32_t i = 0; i + 1 < count; ++i) link_to(block(i), block(i + 1), owner);
    link_to(block(count - 1), nullptr, owner);
    slab.carved += count;
    return {block(0), count};
  }

  // A slab of which no block is out any more.
  void keep_whole(Span& slab) noexcept {
    const unsigned c = slab.size_class;
    Class& own = classes_[c];
    unlist(slab.listed == Listed::giving ? own.giving : sparse_[c].stripped, slab);
    list(own.whole, slab, Listed::whole);
    if (++own.wholes >= whole_max(c) + own.lot() && !gathers_) Spans::give(cut_off(c, whole_max(c), nullptr));
  }

  // Takes whole slabs from the heap, for the store, except for so many that became whole last. returns them, before those
  // that were cut off already
  Span* cut_off(unsigned c, std::uint32_t but, Span* already) noexcept {
    Class& own = classes_[c];
    if (own.wholes <= but) return already;
    own.slabs -= own.wholes - but;
    units_ -= std::size_t{own.wholes - but} * Classes::units_of(c);
    own.wholes = but;
    Span** link = &own.whole;
    for (; but != 0; --but) link = &(*link)->next;
    Span* const gone = *link;
    *link = nullptr;
    Span* last = gone;
    for (Span* slab = gone; slab != nullptr; slab = slab->next) {
      PageMap::set(unit_of(slab->blocks), slab->units, 0);
      if (slab->noted != 0) std::fill_n(&Spans::places_of(slab), slab->units, UnitPlaces{});
      last = slab;
    }
    last->next = already;
    return gone;
  }

  static void list(Span*& head, Span& slab, Listed where) noexcept {
    slab.listed = where;
    slab.previous = nullptr;
    slab.next = head;
    if (head != nullptr) head->previous = &slab;
    head = &slab;
  }

  static void unlist(Span*& head, Span& slab) noexcept {
    slab.listed = Listed::no;
    (slab.previous != nullptr ? slab.previous->next : head) = slab.next;
    if (slab.next != nullptr) slab.next->previous = slab.previous;
  }

  std::array<Class, Classes::kClasses> classes_{};
  std::array<Sparse, Classes::kClasses> sparse_{};
  std::size_t units_ = 0, units_max_ = 0;                                 // of all slabs: now, and most in this period
  std::size_t strips_at_ = kPeriodUnits, period_ends_at_ = kPeriodUnits;  // units
  unsigned pages_max_ = kPagesMax;                                        // that are stripped at once
  unsigned pages_back_ = 0;  // times that noted blocks served in this period
  ServingOrder order_;
  Span* reserve_ = nullptr;  // spans of one unit, the lowest first
  bool gathers_ = false;     // between gather_whole() and give_whole()
};

}  // namespace loam::heap
