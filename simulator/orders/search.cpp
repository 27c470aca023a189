#include "simulator/orders/search.hpp"

#include "runtime/base/format.hpp"

#include <algorithm>
#include <charconv>

namespace loam::simulator {

void Search::begin(unsigned bound) noexcept {
  bound_ = bound;
  level_ = 0;
  fixed_ = 0;
  cut_ = diverged_ = follows_ = false;
  again(0);
}

// The next execution is given so many choices.
void Search::again(std::uint32_t given) noexcept {
  given_ = given;
  place_ = met_ = made_ = 0;
}

unsigned Search::chosen(Choice& choice, unsigned free, unsigned ways) noexcept {
  const bool known = choice.ways != 0;
  if (choice.taken >= ways || (known && (choice.met != met_ || choice.ways != ways))) {
    diverged_ = true;
    return 0;
  }
  choice.met = met_;
  choice.free = static_cast<std::uint16_t>(free);
  choice.ways = static_cast<std::uint16_t>(ways);
  return choice.taken;
}

unsigned Search::choose(unsigned free, unsigned ways) noexcept {
  const std::uint32_t place = place_++;
  if (ways > 1)
    for (const std::uint32_t value : {place, free, ways}) met_ = (met_ ^ value) * 0x0100'0193;  // FNV-1a, by words
  if (made_ < given_) {
    Choice& choice = choices_[made_];
    if (choice.place == place) {
      ++made_;
      return chosen(choice, free, ways);
    }
    // Behind the prefix all are there.
    if (made_ >= fixed_ && ways > 1) diverged_ = true;
    return 0;
  }
  if (ways == 1 || follows_) return 0;
  if (made_ == kChoicesMax) {
    cut_ = true;
    return 0;
  }
  choices_[made_++] = {place, met_, 0, static_cast<std::uint16_t>(free), static_cast<std::uint16_t>(ways)};
  return 0;
}

// The choices up to this one, with each way of it that is a departure.
void Search::keep_departures(std::uint32_t at, Prefixes& later) noexcept {
  Choice& last = choices_[at];
  if (last.free == last.ways) return;
  if (level_ == bound_) {
    cut_ = true;
    return;
  }
  for (last.taken = last.free; last.taken < last.ways; ++last.taken) later.keep(std::span(choices_).first(at + 1));
}

bool Search::next(Prefixes& later) noexcept {
  for (std::uint32_t at = made_; at-- > fixed_;) {
    Choice& choice = choices_[at];
    if (choice.taken + 1 < choice.free) {
      ++choice.taken;
      again(at + 1);
      return true;
    }
    keep_departures(at, later);
  }
  if (later.empty()) return false;
  fixed_ = made_ = later.take(choices_);
  level_ = departures();
  again(fixed_);
  return true;
}

unsigned Search::departures() const noexcept {
  return static_cast<unsigned>(
      std::count_if(choices_, choices_ + made_, [](const Choice& choice) { return choice.is_departure(); }));
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
  fixed_ = given_;
  return true;
}

}  // namespace loam::simulator
