// A set of simulated cores.
#pragma once

#include <bit>
#include <cstdint>

namespace loam::simulator {

inline constexpr unsigned kCoresMax = 128;

class CoreSet {
 public:
  constexpr void add(unsigned core) noexcept { words_[core >> 6] |= bit(core); }
  constexpr void remove(unsigned core) noexcept { words_[core >> 6] &= ~bit(core); }
  constexpr void clear() noexcept { words_[0] = words_[1] = 0; }
  constexpr bool contains(unsigned core) const noexcept { return (words_[core >> 6] & bit(core)) != 0; }
  constexpr bool empty() const noexcept { return (words_[0] | words_[1]) == 0; }
  constexpr unsigned size() const noexcept {
    return static_cast<unsigned>(std::popcount(words_[0]) + std::popcount(words_[1]));
  }
  // The lowest; of a set that is not empty.
  constexpr unsigned first() const noexcept {
    return static_cast<unsigned>(words_[0] != 0 ? std::countr_zero(words_[0]) : 64 + std::countr_zero(words_[1]));
  }
  // Whether there is a core in it beside this one.
  constexpr bool has_other_than(unsigned core) const noexcept {
    CoreSet rest = *this;
    rest.remove(core);
    return !rest.empty();
  }
  constexpr bool meets(const CoreSet& other) const noexcept {
    return ((words_[0] & other.words_[0]) | (words_[1] & other.words_[1])) != 0;
  }
  constexpr CoreSet& operator|=(const CoreSet& other) noexcept {
    words_[0] |= other.words_[0];
    words_[1] |= other.words_[1];
    return *this;
  }
  friend constexpr bool operator==(const CoreSet&, const CoreSet&) = default;

  // Calls visit(core) for each, the lowest first. The set that is walked is the one at the call: visit may change this.
  template <class Visit>
  constexpr void for_each(Visit visit) const {
    for (unsigned word = 0; word < 2; ++word)
      for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1)
        visit(word * 64 + static_cast<unsigned>(std::countr_zero(rest)));
  }

 private:
  static constexpr std::uint64_t bit(unsigned core) noexcept { return std::uint64_t{1} << (core & 63); }

  std::uint64_t words_[2] = {0, 0};
};

}  // namespace loam::simulator
