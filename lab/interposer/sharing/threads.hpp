// The threads of the process, and those of them that are watched.
//   Of a process with more threads than kMost, or than its limit of open files allows, a few are watched at a time, chosen by
//   chance, and some of them change at each look: the log says how many of how many, so that shares can be scaled.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "events.hpp"
#include "log.hpp"

namespace loam::interposer::sharing {

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed | 1) {}
  std::uint64_t below(std::uint64_t bound) noexcept {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ % bound;
  }

 private:
  std::uint64_t state_;
};

struct Watched {
  int thread = 0;
  Event clock;
  Ring ring;
  Event registers[kDebugRegisters];
  std::size_t usable = kDebugRegisters;  // fewer where the program, or a debugger, has some itself
};

class Threads {
 public:
  static constexpr std::size_t kMost = 32, kTasks = 4096;
  static constexpr std::size_t kFiles = 1 + kDebugRegisters;  // of each watched thread
  static constexpr std::size_t kFilesShare = 4;               // of the limit that are the monitor's at most: a quarter

  std::size_t watched() const noexcept { return count_; }
  std::size_t all() const noexcept { return tasks_; }
  Watched& operator[](std::size_t at) noexcept { return threads_[at]; }

  // Looks for threads that have come and gone.  own: the monitor's, which nobody watches
  void look(int own, std::uint64_t period_ns, Random& random, Log& log) noexcept {
    tasks_ = 0;
    each_task([this, own](int thread) {
      if (thread != own && tasks_ < kTasks) task_[tasks_++] = thread;
    });
    for (std::size_t at = count_; at-- > 0;)
      if (std::find(task_, task_ + tasks_, threads_[at].thread) == task_ + tasks_) remove(at);
    const std::size_t most = most_watched();
    if (tasks_ > most)
      for (std::size_t n = 0; n < kMost / 8 && count_ == most; ++n) remove(random.below(count_));
    // In any order, so that each has the same chance where not all find room.
    for (std::size_t n = 0; n < tasks_ && count_ < most; ++n) {
      std::swap(task_[n], task_[n + random.below(tasks_ - n)]);
      if (!is_watched(task_[n])) add(task_[n], period_ns, log);
    }
  }

  // The last one takes its place.
  void remove(std::size_t at) noexcept {
    Watched& ended = threads_[at];
    for (Event& one : ended.registers) one.close();
    ended.ring.unmap();
    ended.clock.close();
    ended = threads_[--count_];
  }

  // In a forked child, which has none of the threads, and none of their rings.
  void forget() noexcept {
    for (std::size_t at = 0; at < count_; ++at) threads_[at].ring.forget();
    while (count_ != 0) remove(count_ - 1);
  }

  void refused(const char* what, int why, Log& log) noexcept {
    if (++refusals_ <= kRefusalsLogged) log.say("refused %s %d\n", what, why);
  }

 private:
  static constexpr std::size_t kRefusalsLogged = 16;

  static std::size_t most_watched() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
    return std::clamp<std::size_t>(limit.rlim_cur / kFilesShare / kFiles, 2, kMost);
  }

  bool is_watched(int thread) const noexcept {
    return std::any_of(threads_, threads_ + count_, [thread](const Watched& one) { return one.thread == thread; });
  }

  void add(int thread, std::uint64_t period_ns, Log& log) noexcept {
    Watched& added = threads_[count_];
    added = Watched{};
    added.thread = thread;
    log.asking(true);
    const bool opened = open_clock(added.clock, thread, period_ns);
    log.asking(false);
    if (opened && added.ring.map(added.clock)) {
      ++count_;
      log.say("thread %d\n", thread);
      return;
    }
    if (errno != ESRCH) refused(opened ? "ring" : "clock", errno, log);
    added.clock.close();
  }

  // Reads the folder itself: a stream of it would have to be allocated.
  template <typename Visit>
  static void each_task(Visit visit) noexcept {
    struct Entry {
      std::uint64_t inode, next;
      std::uint16_t bytes;
      std::uint8_t type;
      char name[1];
    };
    const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    alignas(Entry) char text[4096];
    for (long n; (n = syscall(SYS_getdents64, folder, text, sizeof text)) > 0;)
      for (long at = 0; at < n;) {
        const auto* entry = reinterpret_cast<const Entry*>(text + at);
        if (const int thread = std::atoi(entry->name); thread > 0) visit(thread);
        at += entry->bytes;
      }
    close(folder);
  }

  Watched threads_[kMost];
  std::size_t count_ = 0, tasks_ = 0, refusals_ = 0;
  int task_[kTasks];
};

}  // namespace loam::interposer::sharing
