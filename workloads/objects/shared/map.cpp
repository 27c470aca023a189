#include "workloads/objects/shared/map.hpp"

#include "workloads/harness/joined.hpp"

#include <bit>

namespace loam::workloads::objects {
namespace {

constexpr std::int64_t kRangeMax = 1 << 26;

constexpr ParameterSpec kOwn[] = {
    kAllocParameter,
    ParameterSpec::integer("range", 4096, 2, kRangeMax, "1", "keys are drawn from [0, range)"),
    ParameterSpec::integer("elements", 1024, 0, kRangeMax / 2, "1",
                           "in it at the start, at most half of the range: the even keys from 0 on")
        .called("{} elements"),
    ParameterSpec::integer("buckets", 4096, 1, kRangeMax, "1", "chains of the map: a power of two"),
    ParameterSpec::integer("update_percent", 20, 0, 100, "%",
                           "operations that insert a key, or remove the one that the thread inserted last")
        .called("{}\u00a0% updates"),
};
constexpr auto kAll = joined(kOwn, kObjectParameters);

}  // namespace

constinit const std::span<const ParameterSpec> kMapParameters{kAll};

MapSettings::MapSettings(const Options& options)
    : Settings(options),
      allocates(allocates_of(options)),
      buckets(static_cast<std::size_t>(options.parameters.integer("buckets"))),
      range(static_cast<std::uint32_t>(options.parameters.integer("range"))),
      update_percent(static_cast<std::uint32_t>(options.parameters.integer("update_percent"))),
      elements(static_cast<std::uint64_t>(options.parameters.integer("elements"))) {}

void check_map(const ParameterValues& values, bool transactional) {
  check_alloc(values, transactional);
  char text[32];
  const auto elements = values.integer("elements"), buckets = values.integer("buckets");
  if (2 * elements > values.integer("range"))
    reject("-p elements", base::format_to(text, "{}", elements), "the even keys of the range are fewer",
           "give at most half of range");
  if (!std::has_single_bit(static_cast<std::uint64_t>(buckets)))
    reject("-p buckets", base::format_to(text, "{}", buckets), "no power of two", "for example 4096");
}

std::string_view mistake_of(std::span<const MapWork> workers, const MapSettings& settings, const MapRest& rest) {
  std::uint64_t elements = settings.elements, sum = 0;
  for (std::uint64_t i = 0; i < settings.elements; ++i)
    sum += base::mix(static_cast<std::uint64_t>(value_of(initial_key(i), kThreadsMax)));
  for (const MapWork& worker : workers) {
    if (worker.lost != 0) return "a thread did not find the key that it had inserted";
    if (worker.foreign != 0) return "a value was found that is another key's";
    if (worker.outstanding == 0) continue;
    ++elements;
    sum += base::mix(static_cast<std::uint64_t>(worker.outstanding));
  }
  if (!rest.verdict.holds()) return rest.verdict.broken;
  if (elements != rest.verdict.elements) return "pairs were lost or came twice: their number is wrong";
  if (sum != rest.sum) return "pairs were lost or came twice: their sum is wrong";
  return "";
}

}  // namespace loam::workloads::objects
