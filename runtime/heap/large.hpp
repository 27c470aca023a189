// LargeBlocks: blocks longer than the longest class, one span each; the longest have a mapping of their own.
//   The page map's word of the block's first unit is the tagged address of the block's metadata. Its other units have
//   no word, so a pointer into a large block is not taken for a block.
//   A span grows in place if the addresses behind it are free; a mapping grows by moving its pages, not their contents.
//   Spans of 4 MiB and more are advised to be huge pages: their first touch costs a quarter (guide: 0.34 instead of
//   1.5 us for 4 KiB). The advice ends with the block: a small block would be backed by 2 MiB after it.
//   The memory of a freed block is kept only if the program has recently requested long blocks again (kept_memory.hpp);
//   otherwise it returns to the system at once.
//   Cost: a lock and a few hundred instructions.   When not: blocks that are allocated often.
//   L1 a large block begins within the first unit of its span, behind a colour.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/heap/kept_memory.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/span_store.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace loam::heap {

struct LargeUsage {
  std::uint64_t blocks, bytes;
};

template <SpanStore Spans, PageSource Pages>
class LargeBlocks {
 public:
  struct Taken {
    void* block;  // nullptr: no memory
    bool zero;    // all its bytes are
  };

  // alignment: a power of two.
  static Taken allocate(std::size_t alignment, std::size_t bytes) noexcept {
    const std::size_t shift = alignment <= platform::kCacheLineBytes ? kColourBytesMax : 0;
    const std::size_t units = units_for(std::max(bytes, kBlockAlignment) + shift),
                      alignment_units = std::max<std::size_t>(alignment >> kUnitShift, 1);
    if (units > kSpanUnitsMax || alignment_units > kSpanUnitsMax) return map(alignment, bytes);
    Span* const span = Spans::take(static_cast<unsigned>(units), static_cast<unsigned>(alignment_units), 1);
    if (span == nullptr) return {nullptr, false};
    kept_.note_taken(units, used_bytes_.load(std::memory_order_relaxed) / kUnitBytes);
    span->kind = SpanKind::large;
    if (shift != 0) span->blocks += colour_of(unit_of(span->blocks));
    if (units >= kHugeUnits) Pages::huge_pages(span->blocks, units * kUnitBytes, true);
    PageMap::set(unit_of(span->blocks), 1, address_of(span) | kSpanTag);
    count(1, span->units * kUnitBytes);
    return {span->blocks, span->zero};
  }

  static bool is_large(PageMap::Word word) noexcept { return (word & kTags) != 0; }

  // Whether the block with this word begins at `block`.
  static bool begins_at(PageMap::Word word, const void* block) noexcept {
    return (is_mapping(word) ? mapping(word)->block : span(word)->blocks) == block;
  }

  static std::size_t usable_bytes(PageMap::Word word) noexcept {
    return is_mapping(word) ? mapping(word)->usable_bytes : usable_bytes(*span(word));
  }

  static void deallocate(PageMap::Word word) noexcept {
    if (is_mapping(word)) return unmap(mapping(word));
    Span* const span = LargeBlocks::span(word);
    PageMap::set(unit_of(span->blocks), 1, 0);
    if (span->moved) {
      Pages::renew(begin_of(*span), span->units * kUnitBytes);
      span->clean = true;
    } else {
      if (span->units >= kHugeUnits) Pages::huge_pages(span->blocks, span->units * kUnitBytes, false);
      if (!kept_.keeps(span->units, Spans::dirty_units())) {
        Pages::purge(begin_of(*span), span->units * kUnitBytes);
        span->clean = true;
      }
    }
    count(-1, span->units * kUnitBytes);
    Spans::give(span);
  }

  // Resizes the block to `bytes` without copying it. returns its address now; nullptr: it is unchanged
  static void* resize(PageMap::Word word, std::size_t bytes) noexcept {
    if (is_mapping(word)) return resize(*mapping(word), bytes);
    return resize(*span(word), bytes) ? span(word)->blocks : nullptr;
  }

  // Zeroes the first bytes of a block of used memory. It writes zeroes if that is cheaper than new pages from the
  // system at the next touch. Pages that are not backed stay so.
  static void zero(void* block, std::size_t bytes) noexcept {
    auto* const begin = static_cast<std::byte*>(block);
    if (bytes < kLookedAt) {
      std::memset(begin, 0, bytes);
    } else if (bytes < kHugeUnits * kUnitBytes) {
      Pages::zero(begin, bytes);
    } else {
      // The rest of the last page is the block's too.
      const std::size_t head = base::round_up(address_of(begin), platform::page_bytes()) - address_of(begin);
      std::memset(begin, 0, head);
      Pages::purge(begin + head, base::round_up(bytes - head, platform::page_bytes()));
    }
  }

  // Moves the pages behind a block with the word `from` to one with the word `to`, in place of copying its contents:
  // pages that nothing backs stay so. The new block begins where the old one does in its page, which `moved` is set to.
  // returns false where that is not possible or not worth a call of the system: nothing has moved
  static bool move(PageMap::Word from, PageMap::Word to, std::size_t bytes, void*& moved) noexcept {
    if (is_mapping(from) || is_mapping(to)) return false;
    Span &source = *span(from), &target = *span(to);
    const std::size_t shift = address_of(source.blocks) % kUnitBytes;
    const std::size_t length =
        std::min(source.units * kUnitBytes, base::round_up(bytes + shift, platform::page_bytes()));
    if (length < kMovedMin || length > target.units * kUnitBytes) return false;
    std::byte* const there = begin_of(target);
    if (!Pages::move(begin_of(source), length, there)) return false;
    source.moved = target.moved = true;
    target.blocks = there + shift;
    moved = target.blocks;
    return true;
  }

  static LargeUsage usage() noexcept {
    return {blocks_.load(std::memory_order_relaxed), used_bytes_.load(std::memory_order_relaxed)};
  }

  // Call it in the child of a fork. The list of descriptors is valid at every moment; a descriptor that another thread
  // of the parent had taken is lost.
  static void mend_in_child() noexcept {
    if (lock_.is_orphaned()) lock_.unlock();
  }

 private:
  static constexpr std::size_t kHugeBytes = std::size_t{2} << 20;  // a huge page
  static constexpr std::size_t kSpanUnitsMax = Spans::kUnitsMax, kHugeUnits = 2 * kHugeBytes / kUnitBytes;
  // Measured (AMD EPYC, us for 1 MiB of backed pages of 4 KiB): to write zeroes 24, to give the pages back 28 and to
  // touch new ones 250 more; to copy 40, to move 30. In huge pages, for 4 MiB: to write 150, to give back 9, and 146 to
  // touch new ones. To ask which pages are backed takes as long as to write 64 KiB.
  static constexpr std::size_t kLookedAt = std::size_t{128} << 10, kMovedMin = std::size_t{1} << 20;
  static constexpr PageMap::Word kSpanTag = 1, kMappingTag = 2, kTags = kSpanTag | kMappingTag;

  struct alignas(platform::kCacheLineBytes) Mapping {
    std::byte *start, *block;
    std::size_t bytes, usable_bytes;
    Mapping* next;
  };

  static bool is_mapping(PageMap::Word word) noexcept { return (word & kMappingTag) != 0; }
  static Span* span(PageMap::Word word) noexcept { return reinterpret_cast<Span*>(word & ~kTags); }
  static Mapping* mapping(PageMap::Word word) noexcept { return reinterpret_cast<Mapping*>(word & ~kTags); }

  static std::byte* begin_of(const Span& span) noexcept { return span.blocks - address_of(span.blocks) % kUnitBytes; }
  static std::size_t usable_bytes(const Span& span) noexcept {
    return span.units * kUnitBytes - address_of(span.blocks) % kUnitBytes;
  }

  static bool resize(Span& span, std::size_t bytes) noexcept {
    const std::size_t shift = address_of(span.blocks) % kUnitBytes;
    const std::size_t units = units_for(bytes + shift), had = span.units;
    if (units == had) return true;
    if (units < had && had >= kHugeUnits) return units >= had / 2;
    if (units > kSpanUnitsMax || (units > had && !Spans::grow(&span, static_cast<unsigned>(units)))) return false;
    if (units < had) Spans::shrink(&span, static_cast<unsigned>(units));
    if (units >= kHugeUnits) Pages::huge_pages(span.blocks, units * kUnitBytes, true);
    used_bytes_.fetch_add((units - had) * kUnitBytes, std::memory_order_relaxed);
    return true;
  }

  static void* resize(Mapping& mapping, std::size_t bytes) noexcept {
    const std::size_t had = mapping.usable_bytes;
    if (bytes <= had) return bytes >= had / 2 ? mapping.block : nullptr;
    const std::size_t usable = base::round_up(bytes, platform::page_bytes());
    if (usable + kHugeBytes < bytes) return nullptr;
    // As far behind a huge page's begin as before, so that huge pages move whole.
    std::byte* const start = Pages::mapping(usable + kHugeBytes);
    if (start == nullptr) return nullptr;
    std::byte* const block = start + (address_of(mapping.block) - address_of(start)) % kHugeBytes;
    if ((address_of(block) + usable) >> kUnitShift >= PageMap::limit() || !Pages::move(mapping.block, had, block)) {
      Pages::unmap(start, usable + kHugeBytes);
      return nullptr;
    }
    PageMap::set(unit_of(mapping.block), 1, 0);
    Pages::unmap(mapping.start, mapping.bytes);
    set_up(mapping, start, block, usable + kHugeBytes, usable);
    used_bytes_.fetch_add(usable - had, std::memory_order_relaxed);
    return block;
  }

  // relaxed: counts for people.
  static void count(std::int64_t blocks, std::uint64_t bytes) noexcept {
    blocks_.fetch_add(static_cast<std::uint64_t>(blocks), std::memory_order_relaxed);
    used_bytes_.fetch_add(blocks > 0 ? bytes : 0 - bytes, std::memory_order_relaxed);
  }

  static Taken map(std::size_t alignment, std::size_t bytes) noexcept {
    alignment = std::max(alignment, kUnitBytes);
    const std::size_t usable = base::round_up(bytes, platform::page_bytes());
    if (usable + alignment < bytes || !opened()) return {nullptr, false};
    Mapping* const made = take_descriptor();
    if (made == nullptr) return {nullptr, false};
    auto* const start = Pages::mapping(usable + alignment);
    const std::uintptr_t block = base::round_up(address_of(start), std::uintptr_t{alignment});
    if (start == nullptr || (block + usable) >> kUnitShift >= PageMap::limit()) {
      if (start != nullptr) Pages::unmap(start, usable + alignment);
      give_descriptor(made);
      return {nullptr, false};
    }
    set_up(*made, start, start + (block - address_of(start)), usable + alignment, usable);
    count(1, usable);
    return {made->block, true};
  }

  static void set_up(Mapping& mapping, std::byte* start, std::byte* block, std::size_t bytes,
                     std::size_t usable) noexcept {
    mapping = {start, block, bytes, usable, nullptr};
    Pages::huge_pages(block, usable, true);
    PageMap::set(unit_of(block), 1, address_of(&mapping) | kMappingTag);
  }

  static void unmap(Mapping* gone) noexcept {
    PageMap::set(unit_of(gone->block), 1, 0);
    Pages::unmap(gone->start, gone->bytes);
    count(-1, gone->usable_bytes);
    give_descriptor(gone);
  }

  static bool opened() noexcept {
    Spans::lock();
    const bool open = Spans::open();
    Spans::unlock();
    return open;
  }

  static Mapping* take_descriptor() noexcept {
    const std::lock_guard guard(lock_);
    LOAM_POINT("heap.taking_descriptor");
    if (free_ == nullptr) {
      auto* const more = reinterpret_cast<Mapping*>(Pages::metadata(platform::kPageBytes));
      if (more == nullptr) return nullptr;
      constexpr std::size_t kMore = platform::kPageBytes / sizeof(Mapping);
      for (std::size_t i = 1; i < kMore; ++i) more[i - 1].next = &more[i];
      platform::compiler_barrier();  // what is listed is linked, in every moment: mend_in_child()
      free_ = more;
    }
    Mapping* const found = free_;
    free_ = found->next;
    return found;
  }
  static void give_descriptor(Mapping* gone) noexcept {
    const std::lock_guard guard(lock_);
    gone->next = free_;
    platform::compiler_barrier();  // as above
    free_ = gone;
  }

  static inline constinit KeptMemory<Pages> kept_{};
  static inline constinit sync::OwnedLock lock_{};
  static inline constinit Mapping* free_ = nullptr;
  static inline constinit std::atomic<std::uint64_t> blocks_{0}, used_bytes_{0};
};

}  // namespace loam::heap
