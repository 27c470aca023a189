// How long the calling thread has waited for a processor although it was ready to run, as the kernel counts it.
//   Why here: the kernel forgets a thread's counter when the thread ends, so that nobody outside can ask for it later.
#pragma once

#include <cstdint>
#include <optional>

namespace loam::workloads {

// Nanoseconds since the thread began; nothing where the kernel does not count. Allocates nothing; some microseconds.
std::optional<std::uint64_t> this_thread_run_delay_ns() noexcept;

}  // namespace loam::workloads
