// The x86-64 half of machine.hpp that must be inline.
#pragma once

#include <atomic>
#include <cstdint>

namespace loam::platform {

inline void pause() noexcept { __builtin_ia32_pause(); }

// Keeps the compiler, not the processor, from moving memory accesses across.
inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

// A counter of constant rate, for timing a few instructions: read when all before the call is done, and before anything
// behind it begins. The loads and the arithmetic, that is; stores may still be on their way to the cache.
inline std::uint64_t ordered_ticks() noexcept {
  __builtin_ia32_lfence();
  const std::uint64_t ticks = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return ticks;
}

// word |= 1 << 63, for a word that only the caller writes: a plain read-modify-write in one instruction, ordered as a
// release store (x86 keeps stores in order).
inline void set_top_bit(std::atomic<std::uint64_t>& word) noexcept {
#if defined(LOAM_TSAN) || defined(LOAM_ASAN)
  word.store(word.load(std::memory_order_relaxed) | 1ULL << 63, std::memory_order_release);
#else
  auto& top_byte = reinterpret_cast<unsigned char*>(&word)[7];
  asm volatile("orb $0x80, %0" : "+m"(top_byte) : : "memory");
#endif
}

// Calls a function that must not throw. The code around it keeps its registers, so that a call which is hardly ever
// made costs a fast path no saves. (The stack pointer moves past the red zone, which GCC takes for unused; and the call
// goes around the linkage table, whose lazy binding would change registers.)
#define LOAM_VECTOR_REGISTERS                                                                                         \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"
inline void call_preserving(void (*function)()) noexcept {
#if defined(LOAM_TSAN) || defined(LOAM_ASAN)
  function();
#else
  asm volatile("leaq -128(%%rsp), %%rsp\n\tcall *loam_call_preserving@GOTPCREL(%%rip)\n\tleaq 128(%%rsp), %%rsp"
               : "+a"(function)
               :
               : "memory", "cc", LOAM_VECTOR_REGISTERS);
#endif
}
inline void call_preserving(void (*function)(void*), void* argument) noexcept {
#if defined(LOAM_TSAN) || defined(LOAM_ASAN)
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
#if defined(LOAM_TSAN) || defined(LOAM_ASAN)
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
#if defined(LOAM_TSAN) || defined(LOAM_ASAN)
  return word.load(std::memory_order_relaxed) == expected;
#else
  bool equal;
  asm volatile("cmpq %2, %1" : "=@cce"(equal) : "m"(word), "r"(expected));
  return equal;
#endif
}

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
