// full_fence: the symmetric store-load barrier, if both sides are frequent. machine.hpp has the asymmetric one.
//   Each of two threads stores something, and then loads what the other one stores. If both have this fence between
//   store and load, at least one of them sees the other's store: all that a thread stored or saw before its fence is
//   visible after every later fence. A seq_cst read-modify-write instead of the fence does the same on x86, but not in
//   C++20, which orders it only with seq_cst accesses of the same words.
#pragma once

#include <atomic>

namespace loam::platform {

inline void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace loam::platform
