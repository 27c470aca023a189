// UnitBits: one bit a unit, with runs. Not thread-safe.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace loam::heap {

template <unsigned kBits>
class UnitBits {
  static_assert(kBits % 64 == 0);

 public:
  bool operator[](unsigned bit) const noexcept { return (words_[bit / 64] >> (bit % 64) & 1) != 0; }

  void set(unsigned bit) noexcept { words_[bit / 64] |= std::uint64_t{1} << bit % 64; }
  void set(unsigned first, unsigned count) noexcept {
    for_words(first, count, [this](unsigned w, std::uint64_t mask) { words_[w] |= mask; });
  }
  void clear(unsigned first, unsigned count) noexcept {
    for_words(first, count, [this](unsigned w, std::uint64_t mask) { words_[w] &= ~mask; });
  }

  // Sets bits of `to` and clears them in `from`: what is in `from` before is in one of both in every moment, also for the
  // child of a fork, which sees what a thread had stored up to some moment and nothing after it. returns how many were
  // in `from`
  static unsigned pass(UnitBits& from, UnitBits& to, unsigned first, unsigned count) noexcept {
    unsigned were = 0;
    for_words(first, count, [&](unsigned w, std::uint64_t mask) {
      to.words_[w] |= mask;
      LOAM_POINT("heap.passing_units");
      platform::compiler_barrier();
      were += static_cast<unsigned>(std::popcount(from.words_[w] & mask));
      from.words_[w] &= ~mask;
    });
    return were;
  }

  unsigned count(unsigned first, unsigned length) const noexcept {
    unsigned found = 0;
    for_words(first, length,
              [&](unsigned w, std::uint64_t mask) { found += static_cast<unsigned>(std::popcount(words_[w] & mask)); });
    return found;
  }

  // Clears all bits; visit(bit) for each that was set, the lowest first.
  template <class Visit>
  void take_all(Visit visit) noexcept {
    for (unsigned w = 0; w < words_.size(); ++w)
      for (std::uint64_t word = std::exchange(words_[w], 0); word != 0; word &= word - 1)
        visit(w * 64 + static_cast<unsigned>(std::countr_zero(word)));
  }

  // The first bit from `from` on that is set, or kBits.
  unsigned next_set(unsigned from) const noexcept { return next(from, 0); }
  unsigned next_clear(unsigned from) const noexcept { return next(from, ~std::uint64_t{0}); }

  // The lowest `count` clear bits in a row within [from, end), or end.
  unsigned clear_run(unsigned from, unsigned end, unsigned count) const noexcept {
    for (unsigned first = next_clear(from); first + count <= end;) {
      const unsigned stop = next_set(first);
      if (stop - first >= count) return first;
      first = next_clear(stop);
    }
    return end;
  }

 private:
  unsigned next(unsigned from, std::uint64_t flip) const noexcept {
    if (from >= kBits) return kBits;
    std::uint64_t word = (words_[from / 64] ^ flip) & ~std::uint64_t{0} << (from % 64);
    for (unsigned w = from / 64;;) {
      if (word != 0) return w * 64 + static_cast<unsigned>(std::countr_zero(word));
      if (++w == words_.size()) return kBits;
      word = words_[w] ^ flip;
    }
  }

  // visit(word, mask) for each word that [first, first + count) touches.
  template <class Visit>
  static void for_words(unsigned first, unsigned count, Visit visit) noexcept {
    if (first % 64 + count < 64) [[likely]]
      return visit(first / 64, ((std::uint64_t{1} << count) - 1) << (first % 64));
    for (unsigned end = first + count; first < end;) {
      const unsigned low = first % 64, length = end - first < 64 - low ? end - first : 64 - low;
      visit(first / 64, (length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1) << low);
      first += length;
    }
  }

  std::array<std::uint64_t, kBits / 64> words_{};
};

}  // namespace loam::heap
