// How long the calling thread has waited for a processor although it was ready to run, as the kernel counts it.
//   The thread itself reads it, because the kernel drops the counter when the thread ends.
#pragma once

#include <cstdint>
#include <optional>

namespace loam::workloads {

// Nanoseconds since the thread began; nothing where the kernel does not count. Allocates nothing; some microseconds.
std::optional<std::uint64_t> this_thread_run_delay_ns() noexcept;

// The same for a thread that asks often: its counter stays open.
//   Cost  one pread and one getrusage, together 0.6 us.
class RunDelay {
 public:
  // What a thread that sleeps and is woken may wait for its processor each time without anybody having taken it: the
  // interrupt of the other processor, and on a virtual machine the hypervisor, until it runs.
  static constexpr std::uint64_t kWakeUpNs = 100'000;

  RunDelay() noexcept;  // of the calling thread
  ~RunDelay();
  RunDelay(const RunDelay&) = delete;
  RunDelay& operator=(const RunDelay&) = delete;

  // Whether this kernel counts.
  bool counts() const noexcept { return file_ >= 0; }
  // What it waited since the last call, without kWakeUpNs for each time it had gone to sleep by itself: a thread that
  // sleeps in its allocator's lock is not disturbed. From the thread that made it only.
  std::uint64_t taken_ns() noexcept;

 private:
  int file_;
  std::uint64_t delay_ns_ = 0, sleeps_ = 0;
};

}  // namespace loam::workloads
