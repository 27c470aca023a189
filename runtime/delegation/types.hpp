// Words of delegation.
//   A client hands an operation over; an executor carries it out, one at a time per domain. The executor is a combiner,
//   a client that serves others beside itself, or a server, a thread that does nothing else. A turn is what one thread
//   executes without another one executing in between; its length says how long the data stay in one cache.
// Invariants of every scheme
//   D1 operations of one domain are carried out one after the other, each exactly once.   D2 what an operation reads
//   was written by those before it (the executor changes by a release and an acquire).   D3 apply() returns after its
//   operation, and what that did is visible to the client.
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

  std::uint32_t pauses = kCalibrated;  // of the processor between two looks
  std::uint32_t first_delay_ns = 0;    // before the first look: keeps the line with whoever will write it
  std::uint32_t spin_ns = 20'000;      // then it sleeps in the kernel; kNeverSleep: it never does
};

struct Settings {
  WaitingSettings waiting = {};
  unsigned turn_max = 64;         // operations for others that a combiner carries out in one go
  unsigned passes = 3;            // flat combining: over the records, as long as each finds work
  unsigned clusters = 0;          // H-Synch: lists; 0: one for each package
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

// An operation calls apply() of the object that it is being carried out on: it would wait for itself.
struct Nested : std::logic_error {
  Nested()
      : std::logic_error(
            "apply: this object is executing an operation of this thread already; nested calls may "
            "go to other objects only") {}
};

// More requests are under way in one domain than it has places for: nothing was posted.
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
