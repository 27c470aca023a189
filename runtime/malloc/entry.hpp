// Code that the entry points of C and C++ share.
//   E1 no function of the heap changes errno, on any path. So malloc keeps it if it succeeds, and free always keeps it.
//      Only the entry points set it.
//   E2 no code here calls an exported function of this library, because a program may have replaced it.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/heap/lending.hpp"
#include "runtime/malloc/fault.hpp"
#include "runtime/malloc/guard_pages.hpp"
#include "runtime/malloc/process.hpp"
#include "runtime/malloc/settings.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>

// The offset of hot entry points within a cache line of 64 bytes, the same in every build. Otherwise any function
// before them would change the offset, and with it the speed of small blocks by a tenth (ADR 0018).
#if defined(__x86_64__)
#define LOAM_MALLOC_ENTRY gnu::aligned(64), gnu::patchable_function_entry(16, 16)  // 16 bytes behind its begin
#else
#define LOAM_MALLOC_ENTRY gnu::aligned(64)
#endif
#define LOAM_FREE_ENTRY gnu::aligned(64)

namespace loam::malloc {

struct Threads {
  static void attached() noexcept { note_thread(); }
  static void takes_long_block() noexcept { keep_helper(); }
};

struct Faults {
  [[noreturn]] static void report(heap::Fault found, const void* block, std::size_t class_bytes,
                                  unsigned thread) noexcept {
    report_fault(kind_of(found), block, class_bytes, thread);
  }
};

struct Modes {
  static bool on() noexcept { return hardened_or_apart(); }
  static bool second() noexcept { return apart(); }
  static std::uint64_t sample_gap_ns() noexcept { return malloc::sample_gap_ns(); }
  static heap::CallStack stack() noexcept { return call_stack(); }
  [[noreturn]] static void report(heap::Fault found, const void* address, const heap::SampledBlock& block) noexcept {
    report_sample(kind_of(found), address, block);
  }
};

using Composition = heap::LoamOrApartComposition<Threads, Faults, Modes>;
using Heap = heap::Heap<Composition>;
using Lending = heap::Lending<Composition>;

// Whether calls of malloc and free in this process reach this library, so no other library is in front of it.
bool serves_process() noexcept;

[[gnu::cold, gnu::noinline]] inline void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

// For an entry point that got no block from the heap: the block of its caller where sites are apart, else nullptr. caller:
// LOAM_CALLER, in the entry point itself
[[gnu::cold, gnu::noinline]] void* serve_caller(const void* caller) noexcept;
#define LOAM_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

// The same, and errno where there is no memory.
[[gnu::cold, gnu::noinline]] inline void* block_for(const void* caller) noexcept {
  void* const block = serve_caller(caller);
  return block != nullptr ? block : out_of_memory();
}
[[gnu::cold, gnu::noinline]] void* zeroed_block_for(const void* caller) noexcept;

// A block that may have been asked for with an alignment or reallocated, freed with its size, and its alignment or 1. Its
// size class follows from more than the size, so the heap does not look at it by itself. Where hardened the block knows
// what was asked for last, to the byte.
inline void deallocate_aligned_sized(void* block, std::size_t alignment, std::size_t bytes) noexcept {
  if (hardened() && block != nullptr) [[unlikely]] {
    const std::size_t had = Heap::usable_bytes(block);
    if (bytes != had || !base::is_multiple_of(reinterpret_cast<std::uintptr_t>(block), std::uintptr_t{alignment}))
      report_fault(Fault::size_mismatch, block, had);
  }
  Heap::deallocate(block);
}

}  // namespace loam::malloc
