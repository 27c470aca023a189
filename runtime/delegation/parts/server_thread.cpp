#include "runtime/delegation/parts/server_thread.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/format.hpp"
#include "runtime/base/points.hpp"
#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/waiting.hpp"
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/topology.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/sync/owned_lock.hpp"

#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace loam::delegation {

// All servers of the process, so that the child of a fork can close them: their threads do not exist in the child.
struct ServerThreads {
  static void add(ServerThread& server) {
    const std::scoped_lock guard(lock);
    LOAM_POINT("delegation.servers");
    server.next_ = first;
    first = &server;
  }
  static void remove(ServerThread& server) {
    const std::scoped_lock guard(lock);
    for (ServerThread** place = &first; *place != nullptr; place = &(*place)->next_)
      if (*place == &server) {
        *place = server.next_;
        return;
      }
  }
  // Another thread of the parent may have been changing the list. It is consistent at every moment.
  static void in_child() {
    if (lock.is_orphaned()) lock.unlock();
    for (ServerThread* at = first; at != nullptr; at = at->next_)
      at->condition_.store(ServerThread::kGone, std::memory_order_relaxed);  // relaxed: one thread
  }

  inline static constinit sync::OwnedLock lock;
  inline static constinit ServerThread* first = nullptr;
};

namespace {

// Runs when the program is loaded, not with the first server: a fork during its start would run without the handler.
[[gnu::constructor]] void watch_forks() noexcept {
  LOAM_CHECK(::pthread_atfork(nullptr, nullptr, ServerThreads::in_child) == 0,
             "delegation: no memory for the handler of fork()");
}

void check_cpu(unsigned cpu) {
  if (cpu == kAnyCpu || platform::topology().contains(cpu)) return;
  char text[160];
  throw std::invalid_argument(std::string(base::format_to(
      text, "server_cpu={}: this process may not run on that processor; choose one of its affinity mask", cpu)));
}

}  // namespace

ServerThread::ServerThread(void* scheme, Round round, const Settings& settings)
    : scheme_(scheme),
      round_(round),
      cpu_(settings.server_cpu),
      pauses_(pauses_of(settings.waiting)),
      looks_(settings.waiting.spin_ns == WaitingSettings::kNeverSleep ? ~0u
                                                                      : looks_in(settings.waiting.spin_ns, pauses_)) {
  check_cpu(cpu_);
  ServerThreads::add(*this);
  if (const int failure = ::pthread_create(&thread_, nullptr, thread_main, this)) {
    ServerThreads::remove(*this);
    throw std::system_error(failure, std::generic_category(), "a server's thread cannot be made");
  }
}

void ServerThread::stop() noexcept {
  const bool first = !std::exchange(joined_, true);
  if (first && !is_gone()) {                 // in the child of a fork there is no thread to wait for
    platform::announce_light(stopping_, 1);  // server.A
    attend();
    ::pthread_join(thread_, nullptr);
  }
  // The last: a child that is forked before has to know that the thread is gone. Each time: in such a child the thread that
  // was to do it does not exist.
  ServerThreads::remove(*this);
}

bool ServerThread::attend_slow() noexcept {
  std::uint32_t found = kAsleep;
  // server.C
  if (condition_.compare_exchange_strong(found, kRunning, std::memory_order_acquire)) wake(condition_);
  // A short while: no operation runs in it.
  for (sync::Backoff backoff; found == kClosing; backoff.wait())
    found = condition_.load(std::memory_order_acquire);  // server.C
  return found != kClosed && found != kGone;
}

void ServerThread::sleep() noexcept {
  LOAM_POINT("server: goes to sleep");
  condition_.store(kAsleep, std::memory_order_relaxed);  // relaxed: ordered by server.A
  platform::announce_heavy();                            // server.A
  if (!round_(scheme_, Pass::serve) && stopping_.load(std::memory_order_relaxed) == 0)
    platform::futex_wait(condition_, kAsleep);
  condition_.store(kRunning, std::memory_order_relaxed);  // relaxed: as above; nobody waits for it
}

void ServerThread::close() noexcept {
  condition_.store(kClosing, std::memory_order_relaxed);  // relaxed: ordered by server.A
  platform::announce_heavy();                             // server.A
  LOAM_POINT("server: claims");
  round_(scheme_, Pass::claim);
  condition_.store(kClosed, std::memory_order_release);  // server.C
  round_(scheme_, Pass::finish);
}

void ServerThread::run() noexcept {
  const Executing executing(scheme_);
  // relaxed: carries no data; seen at the latest when there is nothing to do.
  for (std::uint32_t idle = 0; stopping_.load(std::memory_order_relaxed) == 0;) {
    if (round_(scheme_, Pass::serve)) {
      idle = 0;
    } else if (looks_ != ~0u && ++idle > looks_) {
      sleep();
      idle = 0;
    } else {
      for (std::uint32_t i = 0; i < pauses_; ++i) platform::pause();
    }
  }
  close();
}

void* ServerThread::thread_main(void* argument) {
  auto& self = *static_cast<ServerThread*>(argument);
  if (self.cpu_ != kAnyCpu) platform::pin_this_thread(self.cpu_);
  self.run();
  return nullptr;
}

}  // namespace loam::delegation
