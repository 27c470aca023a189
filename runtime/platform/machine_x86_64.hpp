// The x86-64 half of machine.hpp that must be inline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef LOAM_SIMULATED
#include "runtime/platform/machine_simulated.hpp"
#endif

namespace loam::platform {

#ifdef LOAM_SIMULATED
inline void pause() noexcept { loam_simulator_pause(); }
#else
inline void pause() noexcept { __builtin_ia32_pause(); }
#endif

// Keeps the compiler, not the processor, from moving memory accesses across.
inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

// Below it nothing of the caller's lies, but for the 128 bytes that a function that calls nothing may use.
inline std::uintptr_t stack_pointer() noexcept {
  std::uintptr_t value;
  asm("mov %%rsp, %0" : "=r"(value));
  return value;
}

// Stores that do not bring the line into the cache. They are ordered only by drain_streaming(): before it they may lie
// in a buffer, in any order. Under the thread sanitizer they are stores that it sees. On a simulated machine they wait in
// the core's store buffer as others do, and the core goes on; that the line leaves the caches is not modelled.
inline void store_streaming(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
#if defined(LOAM_SIMULATED)
  word.store(value, std::memory_order_release);
#elif defined(LOAM_INSTRUMENTED)
  word.store(value, std::memory_order_seq_cst);
#else
  asm volatile("movnti %1, %0" : "=m"(word) : "r"(value));
#endif
}

// bytes: rounded up to words of 8; both sides have room for them.
inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#ifdef LOAM_INSTRUMENTED
  std::memcpy(to, from, bytes);
#else
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, from + at, sizeof word);
    asm volatile("movnti %1, %0" : "=m"(*reinterpret_cast<std::uint64_t*>(to + at)) : "r"(word));
  }
#endif
}

inline void drain_streaming() noexcept {
#ifndef LOAM_INSTRUMENTED
  asm volatile("sfence" ::: "memory");
#endif
}

// A counter of constant rate, for timing a few instructions: read when all before the call is done, and before anything
// behind it begins. The loads and the arithmetic, that is; stores may still be on their way to the cache.
inline std::uint64_t ordered_ticks() noexcept {
#ifdef LOAM_SIMULATED
  if (loam_simulator_active()) return loam_simulator_ticks();
#endif
  __builtin_ia32_lfence();
  const std::uint64_t ticks = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return ticks;
}

// word |= 1 << 63, for a word that only the caller writes: a plain read-modify-write in one instruction, ordered as a
// release store (x86 keeps stores in order).
inline void set_top_bit(std::atomic<std::uint64_t>& word) noexcept {
#ifdef LOAM_INSTRUMENTED
  word.store(word.load(std::memory_order_relaxed) | 1ULL << 63, std::memory_order_release);
#else
  auto& top_byte = reinterpret_cast<unsigned char*>(&word)[7];
  asm volatile("orb $0x80, %0" : "+m"(top_byte) : : "memory");
#endif
}

#ifndef LOAM_SIMULATED
[[gnu::always_inline]] inline unsigned transaction_begin() noexcept {
  unsigned status = ~0U;
  asm volatile("xbegin 1f\n1:" : "+a"(status) : : "memory");
  return status;
}
inline void transaction_commit() noexcept { asm volatile("xend" : : : "memory"); }
template <std::uint8_t kCode>
void transaction_abort() noexcept {
  // Wider than the operand: a byte of 128 or more may be printed as a negative number, which Debian 13's assembler refuses.
  asm volatile("xabort %0" : : "i"(unsigned{kCode}) : "memory");
}
inline bool in_transaction() noexcept {
  bool in;
  asm volatile("xtest" : "=@ccnz"(in));
  return in;
}
#endif

// Calls a function that must not throw. The code around it keeps its registers, so that a call which is hardly ever
// made costs a fast path no saves. (The stack pointer moves past the red zone, which GCC takes for unused; and the call
// goes around the linkage table, whose lazy binding would change registers.)
#define LOAM_VECTOR_REGISTERS                                                                                         \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"
inline void call_preserving(void (*function)()) noexcept {
#ifdef LOAM_INSTRUMENTED
  function();
#else
  asm volatile("leaq -128(%%rsp), %%rsp\n\tcall *loam_call_preserving@GOTPCREL(%%rip)\n\tleaq 128(%%rsp), %%rsp"
               : "+a"(function)
               :
               : "memory", "cc", LOAM_VECTOR_REGISTERS);
#endif
}
inline void call_preserving(void (*function)(void*), void* argument) noexcept {
#ifdef LOAM_INSTRUMENTED
  function(argument);
#else
  asm volatile("leaq -128(%%rsp), %%rsp\n\tcall *loam_call_preserving@GOTPCREL(%%rip)\n\tleaq 128(%%rsp), %%rsp"
               : "+a"(function)
               : "D"(argument)
               : "memory", "cc", LOAM_VECTOR_REGISTERS);
#endif
}
#undef LOAM_VECTOR_REGISTERS

// word.load(seq_cst) != 0, as one comparison with memory.
inline bool is_set(const std::atomic<std::uint32_t>& word) noexcept {
#ifdef LOAM_INSTRUMENTED
  return word.load(std::memory_order_seq_cst) != 0;
#else
  bool set;
  asm volatile("cmpl $0, %1" : "=@ccne"(set) : "m"(word) : "memory");
  return set;
#endif
}

// word.load(relaxed) == expected, as one comparison with memory: GCC loads an atomic into a register first, which is an
// instruction more for every transactional read.
inline bool holds(const std::atomic<std::uint64_t>& word, std::uint64_t expected) noexcept {
#ifdef LOAM_INSTRUMENTED
  return word.load(std::memory_order_relaxed) == expected;
#else
  bool equal;
  asm volatile("cmpq %2, %1" : "=@cce"(equal) : "m"(word), "r"(expected));
  return equal;
#endif
}

// User addresses have so many bits at most; the last one is below address_end().
inline constexpr unsigned kAddressBits = 47;
constexpr std::uintptr_t address_end() noexcept { return std::uintptr_t{1} << kAddressBits; }

// The kernel's pages: the unit in which it backs memory, protects it and takes it back.
inline constexpr std::size_t kPageBytesMax = 4096;
constexpr std::size_t page_bytes() noexcept { return kPageBytesMax; }

// Whether taking a right from a page interrupts every core that runs this process (machine.cpp).
inline constexpr bool kLostRightsInterrupt = true;

#ifndef LOAM_LIBC_CHECKPOINT
// What a function has to find again when a call of its returns once more. The assembly knows the offsets.
struct Caller {
  std::uint64_t callee_saved[6];  // rbx, rbp, r12 to r15
  std::uint64_t stack_pointer;    // behind the call
  std::uint64_t return_address;
  int (*resume)(Caller*, int code);
};
#endif

}  // namespace loam::platform

// Defines the function `entry(word)`: it calls target(word, Caller*), with its caller saved on the stack, and returns
// what that returns. What is to last longer than the call has to be copied. Behind its return address lies the frame of
// its caller, which is why it saves no more.
#define LOAM_DEFINE_ENTRY_THAT_PASSES_ITS_CALLER(entry, target)                              \
  asm(".text\n.p2align 4\n.globl " #entry "\n.type " #entry ", @function\n" #entry           \
      ":\n"                                                                                  \
      ".cfi_startproc\nendbr64\n"                                                            \
      "subq $72, %rsp\n.cfi_adjust_cfa_offset 72\n"                                          \
      "movq %rbx, 0(%rsp)\nmovq %rbp, 8(%rsp)\nmovq %r12, 16(%rsp)\nmovq %r13, 24(%rsp)\n"   \
      "movq %r14, 32(%rsp)\nmovq %r15, 40(%rsp)\n"                                           \
      "leaq 80(%rsp), %rax\nmovq %rax, 48(%rsp)\nmovq 72(%rsp), %rax\nmovq %rax, 56(%rsp)\n" \
      "movq %rsp, %rsi\ncall " #target                                                       \
      "\naddq $72, %rsp\n.cfi_adjust_cfa_offset -72\nret\n"                                  \
      ".cfi_endproc\n.size " #entry ", . - " #entry "\n")

// Defines the function `entry(Caller*, ...)`: it saves its caller and goes on in the function `target` with the same
// arguments, which returns in its place.
#define LOAM_DEFINE_ENTRY_THAT_SAVES_ITS_CALLER(entry, target)                             \
  asm(".text\n.p2align 4\n.globl " #entry "\n.type " #entry ", @function\n" #entry         \
      ":\n"                                                                                \
      ".cfi_startproc\n"                                                                   \
      "movq %rbx, 0(%rdi)\nmovq %rbp, 8(%rdi)\nmovq %r12, 16(%rdi)\nmovq %r13, 24(%rdi)\n" \
      "movq %r14, 32(%rdi)\nmovq %r15, 40(%rdi)\n"                                         \
      "leaq 8(%rsp), %rax\nmovq %rax, 48(%rdi)\nmovq (%rsp), %rax\nmovq %rax, 56(%rdi)\n"  \
      "jmp " #target                                                                       \
      "\n"                                                                                 \
      ".cfi_endproc\n.size " #entry ", . - " #entry "\n")
