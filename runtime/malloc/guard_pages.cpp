#include "runtime/malloc/guard_pages.hpp"

#include "runtime/base/format.hpp"
#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/message.hpp"
#include "runtime/platform/machine.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace loam::malloc {
namespace {

using heap::CallStack;
using heap::SampledBlock;

constexpr const char* kAdvice = "See the call stacks; addr2line -Cfe FILE +OFFSET names functions and lines.";

constinit bool watching = false;
constinit thread_local bool walking = false;
constinit struct sigaction before{};

// The first call of glibc's backtrace() loads libgcc_s.so.1, which allocates; later calls do not allocate.
void walk(CallStack& stack) noexcept {
  walking = true;
  stack.count = static_cast<unsigned>(backtrace(stack.frames, CallStack::kMax));
  walking = false;
}

// "    #3 0x55d0c0a81234 parse+0x14 (/usr/bin/program+0x1234)"
void say_frame(unsigned number, void* address, const Dl_info& place) noexcept {
  char buffer[512];
  base::TextWriter out(buffer);
  out.put("    #");
  out.value(number);
  out.put(' ');
  out.value(address);
  const auto offset_from = [&out, address](const void* start) {
    out.put("+0x");
    char digits[20];
    const auto offset = heap::address_of(address) - heap::address_of(start);
    const auto end = std::to_chars(digits, digits + sizeof digits, offset, 16);
    out.put(std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
  };
  if (place.dli_sname != nullptr) {
    out.put(' ');
    out.put(std::string_view(place.dli_sname));
    offset_from(place.dli_saddr);
  }
  if (place.dli_fname != nullptr) {
    out.put(" (");
    out.put(std::string_view(place.dli_fname));
    offset_from(place.dli_fbase);
    out.put(')');
  }
  out.put('\n');
  say(STDERR_FILENO, out.text());
}

Dl_info place_of(void* address) noexcept {
  Dl_info place{};
  if (dladdr(address, &place) == 0) place = {};
  return place;
}

// what: "allocated", ...; from this library's own frames on, which come first and are left out. skip: of the frames
// behind them, those that the kernel made for a signal
void say_stack(std::string_view what, const CallStack& stack, unsigned skip = 0) noexcept {
  char buffer[80];
  say(STDERR_FILENO, base::format_to(buffer, "  {} by thread {}:\n", what, stack.thread));
  const void* const own = place_of(reinterpret_cast<void*>(&say_stack)).dli_fbase;
  unsigned first = 0;
  while (first < stack.count && place_of(stack.frames[first]).dli_fbase == own) ++first;
  first += skip;
  for (unsigned i = first; i < stack.count; ++i) say_frame(i - first, stack.frames[i], place_of(stack.frames[i]));
  if (first >= stack.count) say(STDERR_FILENO, "    (no call stack)\n");
}

[[noreturn]] void say_and_abort(Fault kind, const void* address, const SampledBlock& block,
                                unsigned frames_of_a_signal) noexcept {
  char buffer[512];
  say(STDERR_FILENO, describe_fault(buffer, kind, block.start, block.bytes, 0, kAdvice));
  const auto distance = static_cast<std::ptrdiff_t>(heap::address_of(address) - heap::address_of(block.start));
  say(STDERR_FILENO, base::format_to(buffer, "  the address is {}, byte {} of the block\n", address, distance));
  CallStack here{};
  here.thread = platform::thread_id();
  walk(here);
  say_stack("found", here, frames_of_a_signal);
  if (block.freed.thread != 0) say_stack("freed", block.freed);
  say_stack("allocated", block.allocated);
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

void pass_on(int number, siginfo_t* information, void* context) noexcept {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, information, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  // The access is made again, and ends the process as it would have without us.
  signal(SIGSEGV, SIG_DFL);
}

void at_fault(int number, siginfo_t* information, void* context) noexcept {
  const void* const address = information->si_addr;
  const SampledBlock* const block =
      information->si_code == SEGV_ACCERR ? Composition::Samples::meant_by(address) : nullptr;
  if (block == nullptr || block->state.load(std::memory_order_relaxed) == SampledBlock::State::unused)
    return pass_on(number, information, context);
  const bool freed = block->state.load(std::memory_order_relaxed) == SampledBlock::State::freed;
  say_and_abort(freed                    ? Fault::access_after_free
                : address < block->start ? Fault::access_in_front
                                         : Fault::access_past_end,
                address, *block, 1);
}

}  // namespace

void load_call_stacks() noexcept {
  CallStack first{};
  walk(first);
  watching = true;
}

void watch_guard_pages() noexcept {
  load_call_stacks();
  struct sigaction ours{};
  ours.sa_sigaction = at_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &ours, &before);
}

CallStack call_stack() noexcept {
  const platform::KeepErrno keep;
  CallStack stack{};
  stack.thread = platform::thread_id();
  if (watching && !walking) walk(stack);
  return stack;
}

void report_sample(Fault kind, const void* address, const SampledBlock& block) noexcept {
  say_and_abort(kind, address, block, 0);
}

}  // namespace loam::malloc
