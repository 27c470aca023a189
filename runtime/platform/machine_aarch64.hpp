// The AArch64 half of machine.hpp that must be inline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace loam::platform {

// isb and not yield, which most cores treat as nothing: isb drains the pipeline, tens of cycles as x86's pause.
inline void pause() noexcept { asm volatile("isb" ::: "memory"); }

// Keeps the compiler, not the processor, from moving memory accesses across.
inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

// Below it nothing of the caller's lies.
inline std::uintptr_t stack_pointer() noexcept {
  std::uintptr_t value;
  asm("mov %0, sp" : "=r"(value));
  return value;
}

// Non-temporal stores of this architecture order nothing that drain_streaming() could use: plain ones do the work.
inline void store_streaming(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  word.store(value, std::memory_order_seq_cst);
}
inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}
inline void drain_streaming() noexcept { compiler_barrier(); }

// A counter of constant rate, for timing a few instructions: read when all before the call is done, and before anything
// behind it begins. The loads and the arithmetic, that is; stores may still be on their way to the cache.
inline std::uint64_t ordered_ticks() noexcept {
  std::uint64_t ticks;
  asm volatile("dsb ld\n\tisb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
  return ticks;
}

// word |= 1 << 63, for a word that only the caller writes, ordered as a release store.
inline void set_top_bit(std::atomic<std::uint64_t>& word) noexcept {
  word.store(word.load(std::memory_order_relaxed) | 1ULL << 63, std::memory_order_release);  // relaxed: own word
}

// Calls a function that must not throw. The code around it keeps its registers, so that a call which is hardly ever
// made costs a fast path no saves but that of x30. loam_call_preserving gets the function in x17. It keeps all other
// general registers and the vector registers 8 to 15. Its address comes from the offset table: the linkage table would
// bind it at the first call, and that changes registers. With the scalable extension the code around the call may use
// parts of the vector registers that only this compiler knows.
#ifdef __ARM_FEATURE_SVE
#define LOAM_SCALABLE_REGISTERS                                                                                       \
  , "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", \
      "p10", "p11", "p12", "p13", "p14", "p15"
#else
#define LOAM_SCALABLE_REGISTERS
#endif
#define LOAM_CALL_PRESERVING                \
  "adrp x16, :got:loam_call_preserving\n\t" \
  "ldr x16, [x16, :got_lo12:loam_call_preserving]\n\tblr x16"
#define LOAM_CHANGED_REGISTERS                                                                                     \
  "x16", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", \
      "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31" LOAM_SCALABLE_REGISTERS
inline void call_preserving(void (*function)()) noexcept {
#ifdef LOAM_INSTRUMENTED
  function();
#else
  register void (*called)() asm("x17") = function;
  asm volatile(LOAM_CALL_PRESERVING : "+r"(called) : : LOAM_CHANGED_REGISTERS);
#endif
}
inline void call_preserving(void (*function)(void*), void* argument) noexcept {
#ifdef LOAM_INSTRUMENTED
  function(argument);
#else
  register void (*called)(void*) asm("x17") = function;
  register void* first asm("x0") = argument;
  asm volatile(LOAM_CALL_PRESERVING : "+r"(called) : "r"(first) : LOAM_CHANGED_REGISTERS);
#endif
}
#undef LOAM_CHANGED_REGISTERS
#undef LOAM_CALL_PRESERVING
#undef LOAM_SCALABLE_REGISTERS

// word.load(seq_cst) != 0: `ldar`, which passes no store-release before it. The compiler moves nothing across.
inline bool is_set(const std::atomic<std::uint32_t>& word) noexcept {
  compiler_barrier();
  return word.load(std::memory_order_seq_cst) != 0;
}

// word.load(relaxed) == expected: a load and a comparison, which compilers find by themselves.
inline bool holds(const std::atomic<std::uint64_t>& word, std::uint64_t expected) noexcept {
  return word.load(std::memory_order_relaxed) == expected;  // relaxed: as in machine_x86_64.hpp, the caller orders it
}

// User addresses have so many bits at most: a kernel with 52 gives the others only to programs that ask for them. Those
// of small machines have 39 or fewer. The last address is below address_end().
inline constexpr unsigned kAddressBits = 48;
std::uintptr_t address_end() noexcept;

// The kernel's pages: the unit in which it backs memory, protects it and takes it back. It is built for 4, 16 or 64 KiB.
inline constexpr std::size_t kPageBytesMax = std::size_t{64} << 10;
std::size_t page_bytes() noexcept;

// Whether taking a right from a page interrupts every core that runs this process (machine.cpp).
inline constexpr bool kLostRightsInterrupt = false;  // tlbi is broadcast

#ifndef LOAM_SIMULATED
// The transactional memory extension is in no processor yet.
inline unsigned transaction_begin() noexcept { return 0; }
inline void transaction_commit() noexcept {}
template <std::uint8_t kCode>
void transaction_abort() noexcept {}
inline bool in_transaction() noexcept { return false; }
#endif

#ifndef LOAM_LIBC_CHECKPOINT
// What a function has to find again when a call of its returns once more. The assembly knows the offsets.
struct Caller {
  std::uint64_t callee_saved[11];   // x19 to x29
  std::uint64_t return_address;     // x30
  std::uint64_t floating_point[8];  // d8 to d15
  std::uint64_t stack_pointer;
  int (*resume)(Caller*, int code);
};
#endif

}  // namespace loam::platform

// Defines the function `entry(Caller*, ...)`: it saves its caller and goes on in the function `target` with the same
// arguments, which returns in its place.
#define LOAM_DEFINE_ENTRY_THAT_SAVES_ITS_CALLER(entry, target)                                                \
  asm(".text\n.p2align 4\n.globl " #entry "\n.type " #entry ", %function\n" #entry                            \
      ":\n"                                                                                                   \
      ".cfi_startproc\n"                                                                                      \
      "hint #34\n"                                                                                            \
      "stp x19, x20, [x0, #0]\nstp x21, x22, [x0, #16]\nstp x23, x24, [x0, #32]\nstp x25, x26, [x0, #48]\n"   \
      "stp x27, x28, [x0, #64]\nstp x29, x30, [x0, #80]\n"                                                    \
      "stp d8, d9, [x0, #96]\nstp d10, d11, [x0, #112]\nstp d12, d13, [x0, #128]\nstp d14, d15, [x0, #144]\n" \
      "mov x9, sp\nstr x9, [x0, #160]\n"                                                                      \
      "b " #target                                                                                            \
      "\n"                                                                                                    \
      ".cfi_endproc\n.size " #entry ", . - " #entry "\n")
