// Ends the process after a misuse of the heap: writes one message on standard error, then calls abort(). Allocates
// nothing and takes no lock.
#pragma once

#include "runtime/heap/fault.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::malloc {

enum class Fault : std::uint8_t {
  double_free,
  invalid_free,         // the address is none of the heap's
  interior_pointer,     // inside a block, not its start
  stack_pointer,        // on the stack of the thread that frees it
  size_mismatch,        // sized delete, free_sized: the size is not the one that was asked for
  write_past_end,       // the bytes behind a block have changed
  write_before_start,   // the bytes in front of it
  use_after_free,       // a free block has changed
  corrupted_free_list,  // a link leads out of its slab
  // An access that a guard page stopped:
  access_past_end,
  access_in_front,
  access_after_free,
};

// The kind of a fault that a heap reports.
constexpr Fault kind_of(heap::Fault found) noexcept {
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
    case heap::Fault::write_before_start:
      return Fault::write_before_start;
    case heap::Fault::use_after_free:
      return Fault::use_after_free;
  }
  return Fault::invalid_free;
}

// Ends the process.
//   block            the address that was passed
//   class_bytes      size of the block's class, 0 where it has none
//   owner_thread     the kernel's number of the thread whose heap has the block, 0 where nobody's
//   advice           what to do, instead of what the kind of fault stands for; a sentence
// An invalid_free of an address on the caller's stack is reported as stack_pointer.
[[noreturn, gnu::cold, gnu::noinline]] void report_fault(Fault kind, const void* block, std::size_t class_bytes = 0,
                                                         unsigned owner_thread = 0,
                                                         const char* advice = nullptr) noexcept;

// Whether the address lies on the stack of the calling thread, between the caller's frame and the stack's start.
bool is_on_own_stack(const void* address) noexcept;

// The message of report_fault(), in the caller's buffer.
std::string_view describe_fault(std::span<char> buffer, Fault kind, const void* block, std::size_t class_bytes,
                                unsigned owner_thread, const char* advice) noexcept;

}  // namespace loam::malloc
