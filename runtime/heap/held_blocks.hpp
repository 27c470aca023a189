// HeldBlocks: looks at blocks that the program holds, whoever holds them, for what was written before their start or
// past their end. A hardened heap does so for blocks that are never freed: for some while it runs, for all at its end.
//   Other threads may take and free the same blocks meanwhile. The last word of a front is written last and cleared
//   first (fronts.hpp); a frame that looks broken is looked at again, and only if it stays as it is, it is.
//   Cost: two cache lines a block.   When not: to decide about a block that its holder passes: that needs no second look.
#pragma once

#include "runtime/heap/fault.hpp"
#include "runtime/heap/fronts.hpp"
#include "runtime/heap/padding.hpp"
#include "runtime/heap/seals.hpp"
#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::heap {

enum class Held : std::uint8_t { no, intact, before_start, past_end };

class HeldBlocks {
 public:
  // A place of a slab. start: where it begins; usable: its bytes
  static Held look(const Seals& seals, const std::byte* start, std::size_t usable) noexcept {
    const std::byte* const block = start + fronts::kBytes;
    const std::byte* const seal = start + usable - sizeof(std::uint64_t);
    Held found = once(seals, block, seal);
    for (unsigned looks = 1; looks < kLooks && is_broken(found); ++looks) {
      platform::yield();
      found = once(seals, block, seal);
    }
    return found;
  }

  static bool is_broken(Held found) noexcept { return found == Held::before_start || found == Held::past_end; }

 private:
  static constexpr unsigned kLooks = 4;

  [[gnu::always_inline]] static std::uint64_t word(const std::byte* at) noexcept {
    // acquire: pairs with no single store. On the processors that we know it keeps the order of these reads, and the
    // writes were kept in order by compiler_barrier(); where that is not enough, the second look is.
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
  }

  // It races by design, so it is hidden from the thread sanitizer, with all that is inlined here.
  __attribute__((no_sanitize("thread"))) static Held once(const Seals& seals, const std::byte* block,
                                                          const std::byte* seal) noexcept {
    const std::uint64_t mark = seals.mark_of(block);
    const std::uint64_t last = word(block - 8);
    const std::size_t bytes = seals.opened(word(seal), block);
    const auto room = static_cast<std::size_t>(seal - block);
    // 0: free, aligned, or changing hands. Where no block was yet, there is no seal either.
    if (last != mark) return last == 0 || bytes > room ? Held::no : Held::before_start;
    const bool padded = bytes <= room && is_padded(block + bytes, room - bytes);
    const bool fronted = word(block - 32) == mark && word(block - 24) == mark && word(block - 16) == mark;
    if (word(block - 8) != mark) return Held::no;
    return !fronted ? Held::before_start : !padded ? Held::past_end : Held::intact;
  }
};

}  // namespace loam::heap
