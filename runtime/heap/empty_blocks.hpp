// EmptyBlocks: blocks of no bytes in a hardened heap. Each is an address of its own in a range that is inaccessible, so
// that a read or a write of such a block ends the process at once.
//   An address serves again when all others have served: a second free is found until then.
//   Source: hardened_malloc, which gives size 0 a region without access.
//   Cost: a lock, and a scan of the set of addresses; 16 MiB of addresses, 128 KiB for the set, of which pages in use are
//   backed.   When not: more blocks of no bytes at a time than kPlaces; take() returns nullptr then.
//   E1 a place's bit is set exactly while the program holds its block.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/page_source.hpp"
#include "runtime/heap/unit_bits.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace loam::heap {

template <class Pages>
class EmptyBlocks {
 public:
  static constexpr unsigned kPlaces = 1u << 20;
  static constexpr std::size_t kBytes = std::size_t{kPlaces} * kBlockAlignment;

  // alignment: a power of two, at most that of a page. nullptr: all places are held, or the system refuses
  [[gnu::cold, gnu::noinline]] void* take(std::size_t alignment) noexcept {
    const std::lock_guard guard(lock_);
    if (held_ == nullptr && !make()) return nullptr;
    const auto step = static_cast<unsigned>(std::max(alignment, kBlockAlignment) / kBlockAlignment);
    unsigned place = find(next_, step);
    if (place == kPlaces) place = find(0, step);
    if (place == kPlaces) return nullptr;
    held_->set(place);
    next_ = place + 1;
    return begin_.load(std::memory_order_relaxed) + place * kBlockAlignment;
  }

  bool covers(const void* address) const noexcept {
    // empty.A: pairs with the release in make(): who finds the range finds the set.
    const std::byte* const begin = begin_.load(std::memory_order_acquire);
    return begin != nullptr && address_of(address) - address_of(begin) < kBytes;
  }

  // Whether the covered address is one that the program holds.
  bool holds(const void* address) noexcept {
    const std::lock_guard guard(lock_);
    return address_of(address) % kBlockAlignment == 0 && (*held_)[place_of(address)];
  }

  // A covered address. returns false where the program does not hold it
  [[gnu::cold, gnu::noinline]] bool give(const void* address) noexcept {
    const std::lock_guard guard(lock_);
    if (address_of(address) % kBlockAlignment != 0 || !(*held_)[place_of(address)]) return false;
    held_->clear(place_of(address), 1);
    return true;
  }

  // Call it in the child of a fork. A place that another thread of the parent was taking may stay held.
  void mend_in_child() noexcept {
    if (lock_.is_orphaned()) lock_.unlock();
  }

 private:
  using Set = UnitBits<kPlaces>;

  unsigned place_of(const void* address) const noexcept {
    return static_cast<unsigned>((address_of(address) - address_of(begin_.load(std::memory_order_relaxed))) /
                                 kBlockAlignment);
  }

  // The first free place from `from` on that is a multiple of `step`; kPlaces: none.
  unsigned find(unsigned from, unsigned step) const noexcept {
    if (step == 1) return held_->next_clear(from);
    unsigned place = base::round_up(from, step);
    while (place < kPlaces && (*held_)[place]) place += step;
    return std::min(place, kPlaces);
  }

  // Once, under the lock.
  bool make() noexcept {
    if (refused_) return false;
    std::byte* const set = Pages::metadata(base::round_up(sizeof(Set), platform::page_bytes()));
    std::byte* const range = set != nullptr ? Pages::metadata(kBytes) : nullptr;
    refused_ = range == nullptr || !Pages::protect(range, kBytes, false);
    if (refused_) return false;
    held_ = reinterpret_cast<Set*>(set);             // zeroed pages are an empty set
    begin_.store(range, std::memory_order_release);  // empty.A
    return true;
  }

  sync::OwnedLock lock_;
  Set* held_ = nullptr;
  std::atomic<std::byte*> begin_{nullptr};
  unsigned next_ = 0;
  bool refused_ = false;
};

}  // namespace loam::heap
