#include "workloads/applications/shared/intrusion.hpp"

#include "workloads/applications/shared/mersenne_twister.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace loam::workloads::applications::intrusion {
namespace {

// The commonest English words of three letters and more.
constexpr const char* kDictionary[] = {
    "about", "after", "all",   "also",   "and",  "any",   "back", "because", "but",   "can",  "come", "could",
    "day",   "even",  "first", "for",    "from", "get",   "give", "good",    "have",  "him",  "how",  "into",
    "its",   "just",  "know",  "like",   "look", "make",  "most", "new",     "not",   "now",  "one",  "only",
    "other", "out",   "over",  "people", "say",  "see",   "she",  "some",    "take",  "than", "that", "their",
    "them",  "then",  "there", "these",  "they", "think", "this", "time",    "two",   "use",  "want", "way",
    "well",  "what",  "when",  "which",  "who",  "will",  "with", "work",    "would", "year", "your"};

constexpr std::uint64_t kPercent = 100, kPrintable = 95;

}  // namespace

bool is_attack(char* text) noexcept {
  for (char* at = text; *at != '\0'; ++at)
    if (*at >= 'A' && *at <= 'Z') *at = static_cast<char>(*at - 'A' + 'a');
  return std::ranges::any_of(kDictionary, [text](const char* word) { return std::strstr(text, word) != nullptr; });
}

Traffic make_traffic(const TrafficShape& shape, void* (*allocate)(void* context, std::size_t bytes), void* context) {
  MersenneTwister random(shape.seed);
  Traffic traffic;
  traffic.is_attack.assign(shape.flows + 1, false);
  std::vector<char> payload, lowered;
  for (std::uint64_t flow = 1; flow <= shape.flows; ++flow) {
    bool attacks = random.below(kPercent) < shape.attack_percent;
    if (attacks) {
      const char* const word = kDictionary[random.below(std::size(kDictionary))];
      payload.assign(word, word + std::strlen(word) + 1);
    } else {
      payload.resize(random.below(shape.length_max) + 2);
      for (char& character : std::span(payload).first(payload.size() - 1))
        character = static_cast<char>(' ' + static_cast<char>(random.below(kPrintable)));
      payload.back() = '\0';
      lowered = payload;
      attacks = is_attack(lowered.data());
    }
    traffic.is_attack[flow] = attacks;
    traffic.attacks += attacks ? 1 : 0;

    const std::uint64_t bytes = payload.size() - 1, count = random.below(bytes) + 1, each = bytes / count;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t length = i + 1 == count ? bytes - i * each : each;
      void* const block = allocate(context, sizeof(Packet) + length);
      auto* const packet = ::new (block) Packet{static_cast<std::int64_t>(flow), static_cast<std::int64_t>(i),
                                                static_cast<std::int64_t>(count), static_cast<std::int64_t>(length)};
      std::memcpy(packet + 1, &payload[i * each], length);
      traffic.packets.push_back(packet);
    }
  }
  for (std::size_t i = 0; i < traffic.packets.size(); ++i) {
    const std::uint64_t a = random.below(traffic.packets.size()), b = random.below(traffic.packets.size());
    std::swap(traffic.packets[a], traffic.packets[b]);
  }
  return traffic;
}

}  // namespace loam::workloads::applications::intrusion
