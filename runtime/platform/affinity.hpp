// Which processors the process may use, and pinning a thread to one.
#pragma once

#include <cstddef>
#include <span>

namespace loam::platform {

// Writes the numbers of the processors that the calling thread may use, ascending; returns how many. At least one.
std::size_t allowed_cpus(std::span<unsigned> out) noexcept;

// Binds the calling thread to processor `number`. False if the kernel refuses: not allowed, offline, or no such number.
bool pin_this_thread(unsigned number) noexcept;

}  // namespace loam::platform
