// LargeBlocks: blocks longer than the longest class, one span each; the longest have a mapping of their own.
//   The page map's word of the block's first unit is the address of what is known of it, tagged; the other units have
//   none, so that a pointer into a large block is found to be no block.
//   A span grows where it lies if nothing lies behind it; a mapping grows by moving its pages, not their contents.
//   Spans of 4 MiB and more are advised to be huge pages: their first touch costs a quarter (guide: 0.34 instead of
//   1.5 us for 4 KiB). The advice ends with the block: a small block would be backed by 2 MiB after it.
//   Cost: a lock and a few hundred instructions; not for what is allocated often.
//   L1 a large block begins within the first unit of its span, behind a colour.
#pragma once

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
    if (span->units >= kHugeUnits) Pages::huge_pages(span->blocks, span->units * kUnitBytes, false);
    count(-1, span->units * kUnitBytes);
    Spans::give(span);
  }

  // Makes the block serve `bytes` without copying it. returns where it lies now; nullptr: it is as it was
  static void* resize(PageMap::Word word, std::size_t bytes) noexcept {
    if (is_mapping(word)) return resize(*mapping(word), bytes);
    return resize(*span(word), bytes) ? span(word)->blocks : nullptr;
  }

  static LargeUsage usage() noexcept {
    return {blocks_.load(std::memory_order_relaxed), used_bytes_.load(std::memory_order_relaxed)};
  }

  static void lock() noexcept { lock_.lock(); }
  static void unlock() noexcept { lock_.unlock(); }

 private:
  static constexpr std::size_t kHugeBytes = std::size_t{2} << 20;  // a huge page
  static constexpr std::size_t kSpanUnitsMax = Spans::kUnitsMax, kHugeUnits = 2 * kHugeBytes / kUnitBytes;
  static constexpr PageMap::Word kSpanTag = 1, kMappingTag = 2, kTags = kSpanTag | kMappingTag;

  struct alignas(platform::kCacheLineBytes) Mapping {
    std::byte *start, *block;
    std::size_t bytes, usable_bytes;
    Mapping* next;
  };

  static bool is_mapping(PageMap::Word word) noexcept { return (word & kMappingTag) != 0; }
  static Span* span(PageMap::Word word) noexcept { return reinterpret_cast<Span*>(word & ~kTags); }
  static Mapping* mapping(PageMap::Word word) noexcept { return reinterpret_cast<Mapping*>(word & ~kTags); }

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
    const std::size_t usable = base::round_up(bytes, platform::kPageBytes);
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
    const std::size_t usable = base::round_up(bytes, platform::kPageBytes);
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
    const bool open = PageMap::is_open() || PageMap::open();
    Spans::unlock();
    return open;
  }

  static Mapping* take_descriptor() noexcept {
    const std::lock_guard guard(lock_);
    if (free_ == nullptr) {
      auto* const more = reinterpret_cast<Mapping*>(Pages::metadata(platform::kPageBytes));
      if (more == nullptr) return nullptr;
      for (std::size_t i = 0; i < platform::kPageBytes / sizeof(Mapping); ++i) {
        more[i].next = free_;
        free_ = &more[i];
      }
    }
    Mapping* const found = free_;
    free_ = found->next;
    return found;
  }
  static void give_descriptor(Mapping* gone) noexcept {
    const std::lock_guard guard(lock_);
    gone->next = free_;
    free_ = gone;
  }

  static inline constinit sync::SpinLock lock_{};
  static inline constinit Mapping* free_ = nullptr;
  static inline constinit std::atomic<std::uint64_t> blocks_{0}, used_bytes_{0};
};

}  // namespace loam::heap
