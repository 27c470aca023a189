// What the entry points of C and C++ share.
//   E1 no function of the heap touches errno, on any path: malloc keeps it where it succeeds, free always. Only the
//      entry points set it.
//   E2 nothing here calls an exported function of this library: a program may have put its own in its place.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/compositions/loam.hpp"
#include "runtime/malloc/fault.hpp"
#include "runtime/malloc/process.hpp"
#include "runtime/malloc/settings.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>

// Where hot entry points begin within a line of 64 bytes, the same in every build: left alone it changes with any
// function before them, and how fast small blocks are by a tenth with it (ADR 0018).
#if defined(__x86_64__)
#define LOAM_MALLOC_ENTRY gnu::aligned(64), gnu::patchable_function_entry(16, 16)  // 16 bytes behind its begin
#else
#define LOAM_MALLOC_ENTRY gnu::aligned(64)
#endif
#define LOAM_FREE_ENTRY gnu::aligned(64)

namespace loam::malloc {

struct Threads {
  static void attached() noexcept { note_thread(); }
};

struct Faults {
  [[noreturn]] static void report(heap::Fault found, const void* block, std::size_t class_bytes,
                                  unsigned thread) noexcept {
    report_fault(kind_of(found), block, class_bytes, thread);
  }

 private:
  static constexpr Fault kind_of(heap::Fault found) noexcept {
    switch (found) {
      case heap::Fault::foreign:
        return Fault::invalid_free;
      case heap::Fault::interior:
        return Fault::interior_pointer;
      case heap::Fault::double_free:
        return Fault::double_free;
      case heap::Fault::wrong_size:
        return Fault::size_mismatch;
      case heap::Fault::write_past_end:
        return Fault::write_past_end;
      case heap::Fault::use_after_free:
        return Fault::use_after_free;
    }
    return Fault::invalid_free;
  }
};

struct Hardened {
  static bool on() noexcept { return hardened(); }
};

using Heap = heap::Heap<heap::LoamOrGuardedComposition<Threads, Faults, Hardened>>;

[[gnu::cold, gnu::noinline]] inline void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

// A block that was asked for with an alignment, freed with size and alignment. Its size class follows from both, so the
// heap cannot compare the size alone; what can be said of any block is checked here.
inline void deallocate_aligned_sized(void* block, std::size_t alignment, std::size_t bytes) noexcept {
  if (hardened() && block != nullptr) [[unlikely]] {
    const std::size_t usable = Heap::usable_bytes(block);
    if (bytes > usable || !base::is_multiple_of(reinterpret_cast<std::uintptr_t>(block), std::uintptr_t{alignment}))
      report_fault(Fault::size_mismatch, block, usable);
  }
  Heap::deallocate(block);
}

}  // namespace loam::malloc
