// Store: addresses for slabs, the table that finds a slab, and the pool in which empty slabs wait.
//   The pool is a stack for all processors, or one for each (factor `pool`); the newest slab leaves it first.
//   Source  the stack: Treiber 1986, with a count against ABA; scalloc's span pool, OOPSLA 2015.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/heap/design/factors.hpp"
#include "runtime/heap/design/slab.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/pages.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::heap::design {

class Store {
 public:
  static constexpr unsigned kStacks = 64;

  // returns false where the system refuses the addresses
  bool start(const Factors& factors, unsigned processors) noexcept {
    factors_ = &factors;
    stacks_used_ = factors.is(Pool::processor) ? (processors < kStacks ? processors : kStacks) : 1;
    unit_ = factors.slab != 0 ? factors.slab : kSlablessUnit;
    // Under a limit of the process, less.
    for (bytes_ = std::size_t{1} << 36; bytes_ >= std::size_t{1} << 26; bytes_ /= 2) {
      base_ = static_cast<std::byte*>(platform::map_lazy(bytes_ + kAlignmentMax, {.huge_pages = false}));
      if (base_ == nullptr) continue;
      const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(base_);
      base_ += (at + kAlignmentMax - 1) / kAlignmentMax * kAlignmentMax - at;
      const std::size_t table = bytes_ / unit_ * sizeof(Slab);
      if (in_slabs()) return true;
      table_ = static_cast<Slab*>(platform::map_lazy(table, {.huge_pages = false, .core_dump = false}));
      if (table_ != nullptr) return true;
      platform::unmap(base_, bytes_);
    }
    return false;
  }

  bool has(const void* block) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(block) - base_) < bytes_;
  }
  // Of a block within a slab; not where blocks have a word in front.
  Slab* slab_of(const void* block) noexcept {
    return slab_at(static_cast<std::size_t>(static_cast<const std::byte*>(block) - base_) / unit_);
  }
  Slab* slab_at(std::size_t place) noexcept {
    return in_slabs() ? reinterpret_cast<Slab*>(base_ + place * unit_) : table_ + place;
  }
  std::byte* start_of(const Slab& slab) noexcept { return base_ + std::size_t{slab.place} * unit_; }

  // Addresses that nobody has used, a multiple of `bytes`, a power of two. returns nullptr when there are none left
  std::byte* carve(std::size_t bytes) noexcept {
    std::size_t next = next_.load(std::memory_order_relaxed);  // relaxed: addresses alone, nothing lies there yet
    std::size_t at;
    do {
      at = (next + bytes - 1) & ~(bytes - 1);
      if (at + bytes > bytes_) return nullptr;
    } while (!next_.compare_exchange_weak(next, at + bytes, std::memory_order_relaxed));
    return base_ + at;
  }
  Slab* new_slab(std::byte* at) noexcept {
    const std::size_t place = static_cast<std::size_t>(at - base_) / unit_;
    Slab* const slab = ::new (static_cast<void*>(slab_at(place))) Slab;
    slab->place = static_cast<std::uint32_t>(place);
    return slab;
  }

  // An empty slab that no heap has.
  void put(Slab* slab, unsigned processor) noexcept {
    if (factors_->is(Purge::at_once)) {
      std::byte* const from = start_of(*slab) + (in_slabs() ? platform::kPageBytes : 0);
      platform::purge(from, static_cast<std::size_t>(start_of(*slab) + unit_ - from));
    }
    std::atomic<std::uint64_t>& stack = stacks_[processor % stacks_used_].top;
    std::uint64_t top = stack.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    do {
      slab->below.store(static_cast<std::uint32_t>(top), std::memory_order_relaxed);  // published by the exchange
      // store.A: release, with the acquire of take(): who takes the slab finds what was written to it.
    } while (!stack.compare_exchange_weak(top, ((top >> 32) + 1) << 32 | (slab->place + 1), std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  // The newest of this processor's, else of the others'; nullptr if there is none.
  Slab* take(unsigned processor) noexcept {
    for (unsigned i = 0; i < stacks_used_; ++i) {
      std::atomic<std::uint64_t>& stack = stacks_[(processor + i) % stacks_used_].top;
      std::uint64_t top = stack.load(std::memory_order_acquire);  // store.A
      while (static_cast<std::uint32_t>(top) != 0) {
        Slab* const slab = slab_at(static_cast<std::uint32_t>(top) - 1);
        // relaxed: one that was taken meanwhile has another count above, and the exchange fails
        const std::uint32_t below = slab->below.load(std::memory_order_relaxed);
        if (stack.compare_exchange_weak(top, ((top >> 32) + 1) << 32 | below, std::memory_order_acquire,
                                        std::memory_order_acquire))
          return slab;
      }
    }
    return nullptr;
  }

  std::size_t unit() const noexcept { return unit_; }

 private:
  static constexpr std::size_t kAlignmentMax = std::size_t{1} << 28;
  static constexpr std::size_t kSlablessUnit = 1 << 20;
  struct alignas(platform::kApartBytes) Stack {
    std::atomic<std::uint64_t> top{0};  // a count of changes, and the place of the newest slab plus one
  };

  bool in_slabs() const noexcept { return factors_->is(Metadata::slab); }

  const Factors* factors_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0, unit_ = 1;
  Slab* table_ = nullptr;
  unsigned stacks_used_ = 1;
  std::atomic<std::size_t> next_{0};
  Stack stacks_[kStacks];
};

}  // namespace loam::heap::design
