// What the workload `map` is made of, whatever the map: settings, values, what is left at the end.
#pragma once

#include "structures/verdict.hpp"
#include "workloads/objects/shared/object.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads::objects {

struct MapSettings : Settings {
  explicit MapSettings(const Options& options);

  Allocates allocates;
  std::size_t buckets;
  std::uint32_t range, update_percent;
  std::uint64_t elements;
};

// The value of a key says which thread inserted it. The main thread, which fills the map, comes after the workers.
inline constexpr unsigned kOwnerBits = 16;
static_assert(kThreadsMax + 1 < 1U << kOwnerBits);
constexpr std::int64_t value_of(std::int64_t key, unsigned thread) noexcept {
  return key << kOwnerBits | (thread + 1);  // never 0
}
constexpr std::int64_t key_of(std::int64_t value) noexcept { return value >> kOwnerBits; }
// The keys that the map holds at the start.
constexpr std::int64_t initial_key(std::uint64_t i) noexcept { return static_cast<std::int64_t>(2 * i); }

// What one worker has done, over all phases. It removes the key that it has inserted last before it inserts another one.
struct MapWork : Work {
  std::int64_t outstanding;  // the value that it inserted and has not removed; 0: none
  std::uint64_t hits;        // look-ups that found; kept so that no compiler may drop one
  std::uint64_t foreign;     // values that are another key's: always a mistake
  std::uint64_t lost;        // removals that did not find what this thread had inserted: always a mistake
};

// What is left in the map at the end. sum: of mixed values, so that one that is lost and one that is foreign do not make up
// for each other
struct MapRest {
  structures::Verdict verdict;
  std::uint64_t sum = 0;
};

template <class Map>
MapRest rest_of_map(const Map& map) {
  MapRest rest{map.verify()};
  if (rest.verdict.holds())
    map.for_each(
        [&rest](std::int64_t, std::int64_t value) { rest.sum += base::mix(static_cast<std::uint64_t>(value)); });
  return rest;
}

std::string_view mistake_of(std::span<const MapWork> workers, const MapSettings& settings, const MapRest& rest);

extern const std::span<const ParameterSpec> kMapParameters;
void check_map(const ParameterValues& values, bool transactional);

}  // namespace loam::workloads::objects
