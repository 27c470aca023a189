// The AArch64 half of machine.hpp: checkpoint and restart. The architecture's transactions (TME) are in no machine that
// could be tested, so there are none here.
#if defined(__aarch64__)

#include "runtime/platform/machine.hpp"

#include <bit>

#include <sys/auxv.h>
#include <unistd.h>

#ifndef LOAM_LIBC_CHECKPOINT
// AAPCS64: x19-x29, sp and the low halves of v8-v15 belong to the caller, x30 is the way back. They are stored in a
// frame, the stack pointer is the checkpoint, and both ways out load them. The call-frame directives let an exception,
// a debugger and a profiler pass. hint #34 is `bti c`: a place that an indirect call may reach.
//   x0 = Checkpoint*, x1 = argument, x2 = body: the body expects the first two where they are.
// Behind the registers the frame has a word with its own address: return_address_is_there() looks for it.
// A checkpoint with its lowest bit set is the address of a Caller (machine_aarch64.hpp), plus 1: its registers come
// back, and its function `resume` runs as if the code behind loam_tx_begin() had called it: x0 = Caller*, w1 = code.
asm(R"(
    .text
    .p2align 4
    .globl loam_run_attempt
    .type loam_run_attempt, %function
loam_run_attempt:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-176]!
    .cfi_adjust_cfa_offset 176
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x19, x20, [sp, #16]
    .cfi_rel_offset x19, 16
    .cfi_rel_offset x20, 24
    stp x21, x22, [sp, #32]
    .cfi_rel_offset x21, 32
    .cfi_rel_offset x22, 40
    stp x23, x24, [sp, #48]
    .cfi_rel_offset x23, 48
    .cfi_rel_offset x24, 56
    stp x25, x26, [sp, #64]
    .cfi_rel_offset x25, 64
    .cfi_rel_offset x26, 72
    stp x27, x28, [sp, #80]
    .cfi_rel_offset x27, 80
    .cfi_rel_offset x28, 88
    stp d8, d9, [sp, #96]
    .cfi_rel_offset d8, 96
    .cfi_rel_offset d9, 104
    stp d10, d11, [sp, #112]
    .cfi_rel_offset d10, 112
    .cfi_rel_offset d11, 120
    stp d12, d13, [sp, #128]
    .cfi_rel_offset d12, 128
    .cfi_rel_offset d13, 136
    stp d14, d15, [sp, #144]
    .cfi_rel_offset d14, 144
    .cfi_rel_offset d15, 152
    mov x9, sp
    str x9, [x0]
    str x9, [sp, #160]
    blr x2
    mov w0, #0
.Lloam_attempt_return:
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #176
    .cfi_adjust_cfa_offset -176
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size loam_run_attempt, . - loam_run_attempt

    .p2align 4
    .globl loam_restart
    .type loam_restart, %function
loam_restart:
    hint #34
    ldr x9, [x0]
    tbnz x9, #0, .Lloam_return_again
    mov sp, x9
    mov w0, w1
    b .Lloam_attempt_return
.Lloam_return_again:
    sub x0, x9, #1
    ldp x19, x20, [x0, #0]
    ldp x21, x22, [x0, #16]
    ldp x23, x24, [x0, #32]
    ldp x25, x26, [x0, #48]
    ldp x27, x28, [x0, #64]
    ldp x29, x30, [x0, #80]
    ldp d8, d9, [x0, #96]
    ldp d10, d11, [x0, #112]
    ldp d12, d13, [x0, #128]
    ldp d14, d15, [x0, #144]
    ldp x9, x16, [x0, #160]
    mov sp, x9
    br x16
    .size loam_restart, . - loam_restart

// x0 = argument, x17 = function. Every general register but x16, x17 and x30 comes back as it was, and of the vector
// registers 8 to 15.
    .p2align 4
    .globl loam_call_preserving
    .type loam_call_preserving, %function
loam_call_preserving:
    .cfi_startproc
    hint #34
    stp x29, x30, [sp, #-288]!
    .cfi_adjust_cfa_offset 288
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp x8, x9, [sp, #80]
    stp x10, x11, [sp, #96]
    stp x12, x13, [sp, #112]
    stp x14, x15, [sp, #128]
    str x18, [sp, #144]
    stp q8, q9, [sp, #160]
    stp q10, q11, [sp, #192]
    stp q12, q13, [sp, #224]
    stp q14, q15, [sp, #256]
    blr x17
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x8, x9, [sp, #80]
    ldp x10, x11, [sp, #96]
    ldp x12, x13, [sp, #112]
    ldp x14, x15, [sp, #128]
    ldr x18, [sp, #144]
    ldp q8, q9, [sp, #160]
    ldp q10, q11, [sp, #192]
    ldp q12, q13, [sp, #224]
    ldp q14, q15, [sp, #256]
    ldp x29, x30, [sp], #288
    .cfi_adjust_cfa_offset -288
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size loam_call_preserving, . - loam_call_preserving
)");
#endif

namespace loam::platform {

#ifndef LOAM_LIBC_CHECKPOINT
// A call of this architecture puts its return address nowhere. What loam_run_attempt() has put into its frame is the
// frame's own address, which a frame that was made there later has hardly at this place.
bool return_address_is_there(const Checkpoint& checkpoint) noexcept {
  return static_cast<void* const*>(checkpoint.stack_pointer)[20] == checkpoint.stack_pointer;
}
#endif

// The kernel puts the first stack at the end of the addresses, and the bytes that AT_RANDOM names onto it.
std::uintptr_t address_end() noexcept {
  const std::uintptr_t on_stack = getauxval(AT_RANDOM);
  return on_stack == 0 ? std::uintptr_t{1} << kAddressBits : std::bit_ceil(on_stack);
}

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(getpagesize()); }

RtmStatus rtm_status() noexcept { return RtmStatus::absent; }

}  // namespace loam::platform

#endif
