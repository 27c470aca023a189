// Call stacks that allocate, by number.
//   How   A stack is walked once for each return address and height of the stack: calls that agree in both come, in
//         programs as they are, by the same way.  So most blocks cost a look into a table, not a walk.
//   When not stacks beyond kStacks, or ways to allocate beyond kKnown: they have the number 0, none.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "../marks.hpp"
#include "../walk.hpp"

namespace loam::interposer::sharing {

inline constexpr unsigned kSiteBits = 20;

struct Stack {
  static constexpr std::size_t kDepth = 15;
  std::atomic<std::uint64_t> hash;  // 0: free
  std::uint64_t depth;
  std::uintptr_t callers[kDepth];  // from the innermost outwards
};

class Sites {
 public:
  static constexpr std::size_t kStacks = 1 << 16, kKnown = 1 << 18, kProbes = 32;

  bool map() noexcept {
    stacks_ = mapped<Stack>(kStacks);
    known_ = mapped<Known>(kKnown);
    return stacks_ != nullptr && known_ != nullptr;
  }

  // Of the call that returns to an address, from a frame so high.
  std::uint64_t number(std::uintptr_t caller, std::uintptr_t height) noexcept {
    if (known_ == nullptr) return 0;
    const std::uint64_t key = mixed(caller * 31 + height) | kKeyUsed;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Known& place = known_[((key >> kSiteBits) + probe) & (kKnown - 1)];
      // acquire: pairs with the release below (sites.A): the stack was written before its number was told.
      const std::uint64_t known = place.load(std::memory_order_acquire);
      if ((known ^ key) >> kSiteBits == 0) return known & kSiteMask;
      if (known == 0) return walk_slow(key, place);
    }
    return 0;
  }

  // nullptr for 0
  const Stack* stack(std::uint64_t number) const noexcept { return number == 0 ? nullptr : &stacks_[number - 1]; }

 private:
  //   bits 63..20: of the key    bits 19..0: number of the stack
  using Known = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t kSiteMask = (std::uint64_t{1} << kSiteBits) - 1;
  static constexpr std::uint64_t kKeyUsed = std::uint64_t{1} << 63;
  static_assert(kStacks <= kSiteMask);

  template <typename Entry>
  static Entry* mapped(std::size_t count) noexcept {
    void* pages = mmap(nullptr, count * sizeof(Entry), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<Entry*>(pages);
  }

  static std::uint64_t mixed(std::uint64_t value) noexcept {
    value *= 0x9E3779B97F4A7C15;
    return value ^ value >> 29;
  }

  [[gnu::noinline]] std::uint64_t walk_slow(std::uint64_t key, Known& place) noexcept {
    Walk<Stack::kDepth> walk;
    walk.take();
    const std::uint64_t hash = mixed(walk.hash()) | 1;
    const Lock lock;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Stack& stack = stacks_[((hash >> 40) + probe) & (kStacks - 1)];
      // relaxed: writers are ordered by Lock.
      const std::uint64_t there = stack.hash.load(std::memory_order_relaxed);
      if (there != 0 && there != hash) continue;
      if (there == 0) {
        stack.depth = walk.depth;
        for (std::size_t at = 0; at < walk.depth; ++at) stack.callers[at] = walk.callers[at];
        stack.hash.store(hash, std::memory_order_relaxed);
      }
      const auto number = static_cast<std::uint64_t>(&stack - stacks_) + 1;
      // release: sites.A.  Two threads may have found the place free: the later key is walked for again, no more.
      place.store((key & ~kSiteMask) | number, std::memory_order_release);
      return number;
    }
    return 0;
  }

  Stack* stacks_ = nullptr;
  Known* known_ = nullptr;
};

}  // namespace loam::interposer::sharing
