// A history: what the attempts of a small transactional run did, as their users saw it. Recorded outside of
// transactional control, so that aborted attempts are kept too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loam::tests {

enum class EventKind : std::uint8_t { read, write };

struct Event {
  EventKind kind;
  unsigned variable;
  std::uint64_t value;  // H1 every value is written at most once; 0 is the initial value of each variable
};

struct AttemptRecord {
  unsigned thread = 0;
  std::uint64_t begin = 0,
                end = 0;  // H2 stamps of one counter: an attempt that ended before another began has end < begin
  bool committed = false;
  bool cancelled = false;  // by its user
  std::vector<Event> events;

  bool writes(unsigned variable) const {
    for (const Event& event : events)
      if (event.kind == EventKind::write && event.variable == variable) return true;
    return false;
  }
  bool touches(unsigned variable) const {
    for (const Event& event : events)
      if (event.variable == variable) return true;
    return false;
  }
  bool writes_any() const {
    for (const Event& event : events)
      if (event.kind == EventKind::write) return true;
    return false;
  }
};

using History = std::vector<AttemptRecord>;

// One line per attempt, in the order of their begins.
inline std::string to_string(const History& history) {
  std::string text;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const AttemptRecord& attempt = history[i];
    text += "  #" + std::to_string(i) + " thread " + std::to_string(attempt.thread) + " [" +
            std::to_string(attempt.begin) + ", " + std::to_string(attempt.end) + "]" +
            (attempt.committed   ? " committed"
             : attempt.cancelled ? " cancelled"
                                 : " aborted") +
            ":";
    for (const Event& event : attempt.events)
      text += (event.kind == EventKind::read ? " r" : " w") + std::to_string(event.variable) + "=" +
              std::to_string(event.value);
    text += "\n";
  }
  return text;
}

// Whether two attempts of different threads overlap in time and touch a variable that one of them writes.
inline bool has_overlapping_conflict(const History& history, unsigned variables) {
  for (const AttemptRecord& a : history)
    for (const AttemptRecord& b : history) {
      if (a.thread >= b.thread || a.end < b.begin || b.end < a.begin) continue;
      for (unsigned v = 0; v < variables; ++v)
        if ((a.writes(v) && b.touches(v)) || (b.writes(v) && a.touches(v))) return true;
    }
  return false;
}

inline bool has_abort(const History& history) {
  for (const AttemptRecord& attempt : history)
    if (!attempt.committed && !attempt.cancelled) return true;
  return false;
}

}  // namespace loam::tests
