// What workers leave behind, in pages of the operating system: no block of the allocator under study is moved by it.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/pages.hpp"
#include "workloads/harness/log_histogram.hpp"
#include "workloads/harness/tm_counters.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace loam::workloads::objects {

// Kinds of operation that a workload has at most.
inline constexpr std::size_t kKindsMax = 3;

// What one worker has seen; workloads derive their own. All zero bytes are a valid one.
struct alignas(platform::kApartBytes) Work {
  std::uint64_t operations;  // in the timed phase
  TmCounters counters;       // in the timed phase
  LogHistogram ticks[kKindsMax];
};

template <class Worker>
class Workers {
 public:
  explicit Workers(unsigned threads)
      : threads_(threads),
        workers_(
            static_cast<Worker*>(platform::map_lazy_or_die(threads * sizeof(Worker), "what the workers have seen"))) {}
  ~Workers() { platform::unmap(workers_, threads_ * sizeof(Worker)); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Worker& operator[](unsigned index) const noexcept { return workers_[index]; }
  std::span<Worker> all() const noexcept { return {workers_, threads_}; }

 private:
  const unsigned threads_;
  Worker* const workers_;
};

}  // namespace loam::workloads::objects
