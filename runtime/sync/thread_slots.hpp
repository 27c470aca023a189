// ThreadSlots: small dense numbers for threads, reused after exit.
//   A scan over "all threads" visits the slots below high_water(), not every slot that could exist.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

namespace loam::sync {

template <unsigned kSlots>
class ThreadSlots {
  static_assert(kSlots % 64 == 0, "slots are kept in words of 64");

 public:
  // The lowest free slot, or nothing when all are taken. Lock-free.
  std::optional<unsigned> acquire() noexcept {
    for (unsigned w = 0; w < kSlots / 64; ++w) {
      // relaxed: the CAS below decides.
      std::uint64_t word = words_[w].load(std::memory_order_relaxed);
      while (~word != 0) {
        const auto bit = static_cast<unsigned>(std::countr_one(word));
        // slots.A: acquire pairs with the release in release(): the new owner of a slot sees what the old one left.
        if (words_[w].compare_exchange_weak(word, word | (1ULL << bit), std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
          raise_high_water(w * 64 + bit + 1);
          return w * 64 + bit;
        }
      }
    }
    return std::nullopt;
  }

  void release(unsigned slot) noexcept {
    words_[slot / 64].fetch_and(~(1ULL << (slot % 64)), std::memory_order_release);  // slots.A
  }

  // Backs the memory that the first acquire() writes.
  void touch() noexcept { words_[0].fetch_or(0, std::memory_order_relaxed); }  // relaxed: changes nothing

  // One more than the highest slot ever taken. A scan that must not miss a thread loads it after an announce_heavy().
  unsigned high_water() const noexcept { return high_water_.load(std::memory_order_acquire); }  // slots.B

 private:
  void raise_high_water(unsigned to) noexcept {
    unsigned seen = high_water_.load(std::memory_order_relaxed);  // relaxed: the CAS decides
    while (seen < to &&
           // slots.B: release pairs with high_water(): whoever sees the number may visit the slot.
           !high_water_.compare_exchange_weak(seen, to, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  std::array<std::atomic<std::uint64_t>, kSlots / 64> words_{};
  std::atomic<unsigned> high_water_{0};
};

}  // namespace loam::sync
