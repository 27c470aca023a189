#include "workloads/harness/event_counts.hpp"

#include "runtime/base/format.hpp"
#include "runtime/platform/machine.hpp"

#include <sys/prctl.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace loam::workloads {
#ifdef LOAM_SIMULATED
namespace {

std::size_t count_of_events() noexcept { return std::min(EventSums::kEventsMax, loam_simulator_counters()); }
std::string_view name_of_event(std::size_t i) noexcept { return loam_simulator_counter_name(i); }

}  // namespace

EventCounters::EventCounters() noexcept = default;
EventCounters::~EventCounters() = default;

void EventCounters::begin() noexcept {
  for (std::size_t i = 0; i < count_of_events(); ++i) begun_[i] = loam_simulator_counter(i);
}

void EventCounters::end() noexcept {
  for (std::size_t i = 0; i < count_of_events(); ++i) counted_[i] = loam_simulator_counter(i) - begun_[i];
}

EventSums EventCounters::read() const noexcept {
  EventSums sums;
  for (std::size_t i = 0; i < count_of_events(); ++i) sums.counts[i] = static_cast<double>(counted_[i]);
  return sums;
}
#else
namespace {

struct Event {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t config = 0;
};

struct Events {
  std::array<Event, EventSums::kEventsMax> all;
  std::size_t count = 0;
};

// Up to `end` of the text, which then begins behind it.
std::string_view taken(std::string_view& text, char end) noexcept {
  const auto length = std::min(text.find(end), text.size());
  const auto part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

template <class Number>
bool parse(std::string_view text, Number& number) noexcept {
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc{} && stopped == end;
}

// What is no event is left out: the lab sets the variable, nobody else needs to.
Events parsed() noexcept {
  Events events;
  const char* const text = std::getenv("LOAM_COUNT_EVENTS");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty() && events.count < events.all.size()) {
    std::string_view one = taken(rest, ',');
    Event event{.name = taken(one, ':')};
    const auto type = taken(one, ':');
    if (!event.name.empty() && parse(type, event.type) && parse(one, event.config)) events.all[events.count++] = event;
  }
  return events;
}

const Events& events() noexcept {
  static const Events kEvents = parsed();
  return kEvents;
}

std::size_t count_of_events() noexcept { return events().count; }
std::string_view name_of_event(std::size_t i) noexcept { return events().all[i].name; }

}  // namespace

EventCounters::EventCounters() noexcept {
  files_.fill(-1);
  for (std::size_t i = 0; i < events().count; ++i)
    files_[i] = platform::open_event_counter(events().all[i].type, events().all[i].config);
}

EventCounters::~EventCounters() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

// One call for all counters that this thread opened.
void EventCounters::begin() noexcept {
  if (events().count != 0) ::prctl(PR_TASK_PERF_EVENTS_ENABLE);
}

void EventCounters::end() noexcept {
  if (events().count != 0) ::prctl(PR_TASK_PERF_EVENTS_DISABLE);
}

EventSums EventCounters::read() const noexcept {
  EventSums sums;
  for (std::size_t i = 0; i < events().count; ++i) {
    struct {
      std::uint64_t value, enabled_ns, running_ns;
    } counted{};
    sums.missing[i] =
        files_[i] < 0 || ::read(files_[i], &counted, sizeof counted) != sizeof counted || counted.running_ns == 0;
    if (sums.missing[i]) continue;
    // As if it had not shared its register with others.
    const double share = static_cast<double>(counted.running_ns) / static_cast<double>(counted.enabled_ns);
    sums.counts[i] = static_cast<double>(counted.value) / share;
    sums.share = std::min(sums.share, share);
  }
  return sums;
}

#endif

EventSums& EventSums::operator+=(const EventSums& more) noexcept {
  for (std::size_t i = 0; i < kEventsMax; ++i) {
    counts[i] += more.counts[i];
    missing[i] = missing[i] || more.missing[i];
  }
  share = std::min(share, more.share);
  return *this;
}

void EventSums::add_to(base::JsonLine& line) const {
  bool any = false;
  for (std::size_t i = 0; i < count_of_events(); ++i) {
    if (missing[i]) continue;
    char name[64];
    line.field(base::format_to(name, "counted_{}", name_of_event(i)), counts[i]);
    any = true;
  }
  if (any) line.field("counted_share", share);
}

}  // namespace loam::workloads
