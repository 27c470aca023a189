#include "runtime/tm/records/read_bytes.hpp"

#include "runtime/platform/pages.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>

namespace loam::tm::read_bytes {

constinit Groups groups;

namespace {

// What most processors of today have behind one outer cache, as grace.cpp has it. Where it is wrong, that costs time only.
constexpr unsigned kCoresInDie = 8;
constexpr unsigned kDies = 1U << 16;

// As the test hook has set them.
constinit std::atomic<unsigned> groups_max{kGroups}, places_max{kPlaces};
// For threads without a place.
constinit std::atomic<Byte*> zeroes{nullptr};

std::size_t bytes_of_group() noexcept {
  return std::min(shared.map.capacity(), std::uint64_t{1} << stripes::kIndicatorBits) * kPlaces;
}

Byte* map_bytes() noexcept {
  return static_cast<Byte*>(platform::map_lazy_or_die(bytes_of_group(), "tm: read indicators of eight threads",
                                                      {.huge_pages = !shared.map.is_sparse(), .core_dump = false}));
}

Place place_in(Group group, unsigned number, unsigned index) noexcept {
  return {.bytes = group.bytes() + index, .group = number, .index = index};
}

// The slot had a thread before, or its thread is not there in the child of a fork.
Place earlier_place(unsigned slot) noexcept {
  for (unsigned number = 0; number < kGroups && groups.of(number).is_there(); ++number)
    for (unsigned index = 0; index < groups.of(number).places(); ++index)
      if (groups.slots[number][index].load(std::memory_order_relaxed) == slot + 1)
        return place_in(groups.of(number), number, index);
  return {};
}

// A free place of group `number`, which was seen as `group`. returns none where the group has changed since
Place place_of_group(unsigned slot, Group group, unsigned number) noexcept {
  std::uint64_t word = group.word();
  if (!groups.words[number].compare_exchange_strong(word, word + 1, std::memory_order_seq_cst))
    return {};  // read_bytes.A
  groups.slots[number][group.places()].store(static_cast<std::uint16_t>(slot + 1), std::memory_order_relaxed);
  return place_in(group, number, group.places());
}

// The first place of group `number`, which was not there. returns none where it is there now
Place place_of_new_group(unsigned slot, unsigned number, unsigned die) noexcept {
  const Group made(map_bytes(), die);
  std::uint64_t none = 0;
  if (!groups.words[number].compare_exchange_strong(none, made.word(), std::memory_order_seq_cst)) {  // read_bytes.A
    platform::unmap(made.bytes(), bytes_of_group());
    return {};
  }
  groups.slots[number][0].store(static_cast<std::uint16_t>(slot + 1), std::memory_order_relaxed);
  return place_in(made, number, 0);
}

Place no_place(unsigned behind) noexcept {
  std::uint64_t none = 0;
  groups.words[behind].compare_exchange_strong(none, Group::nobodys().word(),
                                               std::memory_order_seq_cst);  // read_bytes.A
  Byte* bytes = zeroes.load(std::memory_order_relaxed);
  if (bytes == nullptr) {
    Byte* const mapped = map_bytes();
    if (zeroes.compare_exchange_strong(bytes, mapped, std::memory_order_relaxed))
      bytes = mapped;
    else
      platform::unmap(mapped, bytes_of_group());
  }
  return {.bytes = bytes};
}

}  // namespace

Place take_place(unsigned slot, unsigned core) noexcept {
  if (const Place earlier = earlier_place(slot); earlier.is_there()) return earlier;
  const unsigned die = core / kCoresInDie % kDies;
  for (const bool any_die : {false, true}) {
    unsigned number = 0;
    while (number < groups_max.load(std::memory_order_relaxed)) {
      const Group group = groups.of(number);
      Place place;
      if (!group.is_there())
        place = place_of_new_group(slot, number, die);
      else if (group.places() < places_max.load(std::memory_order_relaxed) && (any_die || group.die() == die))
        place = place_of_group(slot, group, number);
      else
        ++number;
      if (place.is_there()) return place;
    }
  }
  return no_place(groups_max.load(std::memory_order_relaxed));
}

void limit(unsigned group_count, unsigned places) noexcept {
  groups_max.store(group_count, std::memory_order_relaxed);
  places_max.store(places, std::memory_order_relaxed);
}

}  // namespace loam::tm::read_bytes
