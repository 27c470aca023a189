// Hardware counters of the timed part: each worker opens its own.
//   LOAM_COUNT_EVENTS in the environment says what to count: NAME:TYPE:CONFIG, comma separated, as struct
//   perf_event_attr has them (lab/loam_lab/campaign/counters/events.py). Each worker opens its counters before the team starts,
//   and they run from begin() to end(): so waiting at the start, filling and verification are not counted. Threads that
//   a worker creates are counted with it. Without the variable no counter is opened.
//   On a simulated machine the counters are those of the model, for the core on which the worker is placed; they are
//   always on and exact.
#pragma once

#include "runtime/base/json_lines.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace loam::workloads {

// Of the threads of a team, together.
struct EventSums {
  static constexpr std::size_t kEventsMax = 32;

  EventSums& operator+=(const EventSums& more) noexcept;
  // Adds counted_NAME for what every thread counted, and counted_share, the least part of the time in which one did.
  void add_to(base::JsonLine& line) const;

  std::array<double, kEventsMax> counts{};
  std::array<bool, kEventsMax> missing{};
  double share = 1;
};

// The counters of the calling thread.
class EventCounters {
 public:
  EventCounters() noexcept;
  ~EventCounters();
  EventCounters(const EventCounters&) = delete;
  EventCounters& operator=(const EventCounters&) = delete;

  void begin() noexcept;
  void end() noexcept;
  EventSums read() const noexcept;

 private:
#ifdef LOAM_SIMULATED
  std::array<std::uint64_t, EventSums::kEventsMax> begun_{}, counted_{};
#else
  std::array<int, EventSums::kEventsMax> files_;
#endif
};

}  // namespace loam::workloads
