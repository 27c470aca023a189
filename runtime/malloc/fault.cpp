#include "runtime/malloc/fault.hpp"

#include "runtime/base/format.hpp"
#include "runtime/malloc/message.hpp"
#include "runtime/malloc/settings.hpp"

#include <pthread.h>
#include <unistd.h>
#include <cstdlib>
#include <iterator>

namespace loam::malloc {
namespace {

struct Words {
  std::string_view name, advice;
};

// By Fault.
constexpr Words kWords[] = {
    {"double free", "It was freed before. Build with -fsanitize=address to see both places."},
    {"invalid free", "No allocation returned this address. Find who passes it: a debugger's backtrace shows the call."},
    {"free of an address inside a block", "Pass what the allocation returned, not a pointer moved from it."},
    {"free of an address on the stack", "A local variable ends with its function; it is not freed."},
    {"free with a wrong size", "Use delete on the type that was made (or give its base a virtual destructor)."},
    {"write past the end of a block", "Build with -fsanitize=address to see who writes."},
    {"write before the start of a block", "Build with -fsanitize=address to see who writes."},
    {"write to a freed block", "Build with -fsanitize=address to see who writes after the free."},
    {"corrupted free list", "Something wrote to a freed block of this slab, or past the end of one before it."},
    {"access past the end of a block", "The call stacks show who allocated the block and who ran past it."},
    {"access in front of a block", "The call stacks show who allocated the block and who went below it."},
    {"access to a freed block", "The call stacks show who freed the block and who went on using it."},
};
static_assert(std::size(kWords) == static_cast<std::size_t>(Fault::access_after_free) + 1);

}  // namespace

bool is_on_own_stack(const void* address) noexcept {
  // The thread's descriptor lies above its stack; the first thread's lies elsewhere, and its stack is the process's.
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  auto start = static_cast<std::uintptr_t>(pthread_self());
  if (gettid() == getpid()) {
    if (&__libc_stack_end == nullptr) return false;
    start = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
  }
  const auto word = reinterpret_cast<std::uintptr_t>(address);
  return here <= word && word < start;
}

std::string_view describe_fault(std::span<char> buffer, Fault kind, const void* block, std::size_t class_bytes,
                                unsigned owner_thread, const char* advice) noexcept {
  const Words& words = kWords[static_cast<std::size_t>(kind)];
  base::TextWriter out(buffer);
  out.put("loam malloc: ");
  out.put(words.name);
  out.put(": ");
  out.value(block);
  if (class_bytes != 0) {
    out.put(", a block of ");
    out.value(class_bytes);
    out.put(" bytes");
  }
  if (owner_thread != 0) {
    out.put(", heap of thread ");
    out.value(owner_thread);
  }
  out.put("\n  ");
  out.put(advice != nullptr ? std::string_view(advice) : words.advice);
  out.put('\n');
  return out.text();
}

void report_fault(Fault kind, const void* block, std::size_t class_bytes, unsigned owner_thread,
                  const char* advice) noexcept {
  if (kind == Fault::invalid_free && is_on_own_stack(block)) kind = Fault::stack_pointer;
  char buffer[512];
  say(STDERR_FILENO, describe_fault(buffer, kind, block, class_bytes, owner_thread, advice));
  std::abort();
}

}  // namespace loam::malloc
