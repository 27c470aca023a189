// The words of delegation.
//   client     the thread that asks for an operation          executor  the thread that executes it
//   combiner   a client that executes operations of others, too         server    a thread that only executes
//   operations domain     the objects whose operations are executed one at a time: one object, or all objects of a
//   server turn       operations that one thread executes before another thread executes one; the longer a turn, the
//              longer the data stays in one cache
// Invariants of every scheme
//   D1 operations of one domain are executed one after the other, each exactly once.
//   D2 an operation sees the writes of all operations before it (a change of the executor is a release and an acquire).
//   D3 apply() returns after its operation, whose writes are visible to the client.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace loam::delegation {

inline constexpr unsigned kAnyCpu = ~0u;

// How a thread waits for another one (waiting.hpp).
struct WaitingSettings {
  static constexpr std::uint32_t kNeverSleep = ~0u;
  static constexpr std::uint32_t kCalibrated = ~0u;  // as many as suit this processor

  std::uint32_t pauses = kCalibrated;  // pause instructions between two checks
  std::uint32_t first_delay_ns = 0;    // before the first check: leaves the line with the thread that will write it
  std::uint32_t spin_ns = 20'000;      // after this time the thread sleeps in the kernel; kNeverSleep: it never sleeps
};

struct Settings {
  WaitingSettings waiting = {};
  unsigned turn_max = 64;         // operations for others that a combiner executes before it hands over
  unsigned passes = 3;            // flat combining: passes over the records; it ends when one finds no work
  unsigned clusters = 0;          // H-Synch: number of lists; 0: one for each package
  unsigned server_cpu = kAnyCpu;  // where a server's thread is placed
};

// A scheme that is chosen by its name.
struct Named {
  std::string_view name;
  Settings settings = {};
};

// How mutual exclusion comes about.
enum class Means { lock, combining, server };

struct Description {
  std::string_view name, summary, paper, guarantees;
  Means means;
  bool has_passes = false, has_clusters = false;  // of Settings
};

// An operation asks its own object, or one that waits for it: it would wait for itself.
struct Nested : std::logic_error {
  Nested()
      : std::logic_error(
            "apply: this object, or its server, is executing an operation that waits for the caller: the call "
            "would wait for itself; nested calls may go to other objects only") {}
};

// A domain has as many requests under way as it has places: the new one was not posted.
struct Full : std::runtime_error {
  using runtime_error::runtime_error;
};

// The server has been stopped, or belongs to the parent of a fork.
struct Stopped : std::runtime_error {
  Stopped()
      : std::runtime_error(
            "apply: the server has been stopped, or its thread is in the parent of a fork; make "
            "a new one") {}
};

}  // namespace loam::delegation
