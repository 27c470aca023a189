// ServerThread: the thread of a server. It starts and pins the thread, lets it sleep when idle, and stops it.
//   The scheme provides the body of the loop; this class decides when the thread sleeps.
//   Life    running <-> asleep -> closing -> closed. The server alone goes to sleep and closes; a client may set it
//           running. In the child of a fork: gone.
//   Stop    While it is closing, the server claims what is posted, and executes nothing. Once it is closed, it executes
//           what it has claimed, and clients take the rest back. So after one refusal (Stopped) every call is refused.
//   Fork    the child has no server: calls are refused, and so are answers to what was posted before.
// Orders
//   server.A  a client posts, then looks at the condition; the server changes the condition, then looks for requests.
//             Each must see the other (StoreLoad): announce_light() and announce_heavy(), paid by a thread that sleeps
//             or stops.
//   server.C  closed: release by the server, acquire by a client that may take its request back.  Without it the client
//             could miss that the request was claimed, or answered just before, and call it refused.
#pragma once

#include "runtime/delegation/types.hpp"
#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"

#include <pthread.h>
#include <atomic>
#include <cstdint>

namespace loam::delegation {

class ServerThread {
 public:
  enum Condition : std::uint32_t { kRunning, kAsleep, kClosing, kClosed, kGone };
  // What a round does with the requests: execute those that are posted; claim them; execute those that are claimed.
  enum class Pass { serve, claim, finish };
  // Over all requests. returns whether it found any
  using Round = bool (*)(void* scheme, Pass pass) noexcept;

  // Throws std::invalid_argument if `cpu` is not one of this process's, std::system_error if no thread can be made.
  ServerThread(void* scheme, Round round, const Settings& settings);
  // Stops it, if nobody has.
  ~ServerThread() { stop(); }
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  // Returns when the thread has ended. By one thread.
  void stop() noexcept;

  // Whether this is the child of a fork: what is not answered will never be.
  bool is_gone() const noexcept {
    return condition_.load(std::memory_order_relaxed) == kGone;  // relaxed: of one thread
  }

  // After a request was posted by announce_light(): sees to it that the server looks at it.
  // returns false if it has closed: what it has not claimed is to be taken back
  bool attend() noexcept {
    // relaxed: ordered by server.A
    if (condition_.load(std::memory_order_relaxed) != kRunning) [[unlikely]]
      return attend_slow();
    return true;
  }

 private:
  friend struct ServerThreads;

  bool attend_slow() noexcept;
  void run() noexcept;
  void sleep() noexcept;
  void close() noexcept;
  static void* thread_main(void* argument);

  void* const scheme_;
  const Round round_;
  const unsigned cpu_;
  const std::uint32_t pauses_, looks_;
  ServerThread* next_ = nullptr;  // of all that run
  pthread_t thread_{};
  bool joined_ = false;
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> condition_{kRunning};
  alignas(platform::kApartBytes) std::atomic<std::uint32_t> stopping_{0};
};

}  // namespace loam::delegation
