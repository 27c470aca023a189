#include "simulator/orders/search.hpp"

#include "runtime/base/format.hpp"

#include <algorithm>
#include <charconv>

namespace loam::simulator {

void Search::begin(unsigned bound) noexcept {
  bound_ = bound;
  place_ = given_ = made_ = 0;
  cut_ = diverged_ = follows_ = false;
}

unsigned Search::chosen(Choice& choice, unsigned free, unsigned ways) noexcept {
  const bool known = choice.ways != 0;
  if (choice.taken >= ways || (known && (choice.free != free || choice.ways != ways))) {
    diverged_ = true;
    return 0;
  }
  choice.free = static_cast<std::uint16_t>(free);
  choice.ways = static_cast<std::uint16_t>(ways);
  return choice.taken;
}

unsigned Search::choose(unsigned free, unsigned ways) noexcept {
  const std::uint32_t place = place_++;
  if (made_ < given_) {
    Choice& choice = choices_[made_];
    if (choice.place == place) {
      ++made_;
      return chosen(choice, free, ways);
    }
    // Those that are followed are not all that can be met (follow()); those of a search are.
    if (!follows_ && ways > 1) diverged_ = true;
    return 0;
  }
  if (ways == 1 || follows_) return 0;
  if (made_ == kChoicesMax) {
    cut_ = true;
    return 0;
  }
  choices_[made_++] = {place, 0, static_cast<std::uint16_t>(free), static_cast<std::uint16_t>(ways)};
  return 0;
}

bool Search::next() noexcept {
  unsigned spent = departures();
  for (std::uint32_t at = made_; at-- > 0;) {
    Choice& choice = choices_[at];
    if (choice.taken >= choice.free) --spent;
    if (choice.taken + 1 == choice.ways) continue;
    if (choice.taken + 1 >= choice.free && spent == bound_) {
      cut_ = true;
      continue;
    }
    ++choice.taken;
    given_ = at + 1;
    place_ = made_ = 0;
    return true;
  }
  return false;
}

unsigned Search::departures() const noexcept {
  return static_cast<unsigned>(
      std::count_if(choices_, choices_ + made_, [](const Choice& choice) { return choice.taken >= choice.free; }));
}

std::string_view Search::text(std::span<char> buffer) const noexcept {
  std::size_t used = 0;
  for (const Choice& choice : std::span(choices_).first(made_))
    if (choice.taken != 0)
      used += base::format_to(buffer.subspan(used), "{}{}:{}", used == 0 ? "" : ",", choice.place, choice.taken).size();
  return {buffer.data(), used};
}

bool Search::follow(std::string_view text) noexcept {
  begin(0);
  follows_ = true;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](auto& value) {
    const auto [stopped, problem] = std::from_chars(at, end, value);
    at = stopped;
    return problem == std::errc{};
  };
  while (at != end) {
    Choice& choice = choices_[given_];
    choice = {};
    if (given_ != 0 && *at++ != ',') return false;
    if (!number(choice.place) || at == end || *at++ != ':' || !number(choice.taken)) return false;
    if (given_ != 0 && choice.place <= choices_[given_ - 1].place) return false;
    if (++given_ == kChoicesMax) return false;
  }
  return true;
}

}  // namespace loam::simulator
