// HeldFlags: a flag for each 16 bytes of the areas, set where a block begins that the program holds.
//   Whole bytes, which are set by a plain store: bits would need a locked instruction each time. An area's flags are
//   made for its first block, 16 MiB of which only pages with blocks are ever touched.
//   Cost: a load to find the area's, and one line for 1 KiB of blocks.
//   F1 an area has no flags, or the same from then on.
#pragma once

#include "runtime/heap/geometry.hpp"
#include "runtime/heap/page_source.hpp"
#include "runtime/sync/spin_lock.hpp"

#include <atomic>
#include <mutex>

namespace loam::heap {

using HeldFlag = std::atomic<std::uint8_t>;

template <PageSource Pages>
class HeldFlags {
 public:
  // The flag of a block that lies in an area. nullptr: no block was ever made in that area
  HeldFlag* of_block(const void* block) const noexcept {
    HeldFlag* const flags = of_area(address_of(block) >> kAreaShift);
    return flags == nullptr ? nullptr : &flags[address_of(block) % kAreaBytes / kBlockAlignment];
  }

  // The same for any address; nullptr also where no block can begin.
  HeldFlag* of_address(const void* address) const noexcept {
    const std::uintptr_t number = address_of(address);
    return number >> kAddressBits == 0 && number % kBlockAlignment == 0 ? of_block(address) : nullptr;
  }

  // The same, where a block that the program holds begins; nullptr anywhere else.
  HeldFlag* of_held(const void* address) const noexcept {
    HeldFlag* const flag = of_address(address);
    return flag != nullptr && flag->load(std::memory_order_relaxed) != 0 ? flag : nullptr;
  }
  bool holds(const void* address) const noexcept { return of_held(address) != nullptr; }

  // Makes the flags of the block's area where there are none. returns false: no memory
  bool make(const void* block) noexcept {
    const std::lock_guard guard(lock_);
    const std::uintptr_t area = address_of(block) >> kAreaShift;
    if (of_area(area) != nullptr) return true;
    auto* const made = reinterpret_cast<HeldFlag*>(Pages::metadata(kBytes));
    // held.A: release, pairs with the acquire in of_area(): the flags are zero, and what the caller did before is done.
    std::atomic_ref(areas_[area]).store(made, std::memory_order_release);
    return made != nullptr;
  }

  // Around a fork.
  void lock() noexcept { lock_.lock(); }
  void unlock() noexcept { lock_.unlock(); }

 private:
  static constexpr std::size_t kBytes = kAreaBytes / kBlockAlignment;
  static constexpr unsigned kAreasMax = 1u << (kAddressBits - kAreaShift);

  HeldFlag* of_area(std::uintptr_t area) const noexcept {
    return std::atomic_ref(areas_[area]).load(std::memory_order_acquire);  // held.A
  }

  sync::SpinLock lock_{};
  // Plain pointers, since clang constructs no such number of atomic ones in a constant; mutable, since what refers to
  // them atomically is no reference to a constant.
  mutable HeldFlag* areas_[kAreasMax]{};
};

}  // namespace loam::heap
