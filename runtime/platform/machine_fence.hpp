// full_fence: the symmetric store-load barrier, where both sides are frequent. machine.hpp has the asymmetric one.
//   Two sides each change something and then look for the other's change. With this between the two in both, at least
//   one of them sees the other's: what a side had changed, or seen, before its fence is seen behind every later fence. A
//   read-modify-write with seq_cst in its place does the same on x86, but not by C++20, which orders it with seq_cst
//   accesses of the same words alone.
#pragma once

#include <atomic>

namespace loam::platform {

inline void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace loam::platform
