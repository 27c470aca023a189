// The x86-64 half of machine.hpp: checkpoint and restart, and the test for working hardware transactions.
#if defined(__x86_64__)

#include "runtime/platform/machine.hpp"

#include <cpuid.h>

#ifndef LOAM_LIBC_CHECKPOINT
// System V ABI: rbx, rbp, r12-r15 and rsp belong to the caller. They are pushed, the stack pointer is the checkpoint,
// and both ways out pop them. The call-frame directives let an exception, a debugger and a profiler pass.
//   rdi = Checkpoint*, rsi = argument, rdx = body; six pushes and the return address leave rsp 8 off a multiple of 16.
// A checkpoint with its lowest bit set is the address of a Caller (machine_x86_64.hpp), plus 1: its registers come
// back, and its function `resume` runs as if the code behind loam_tx_begin() had called it: rdi = Caller*, esi = code.
asm(R"(
    .text
    .p2align 4
    .globl loam_run_attempt
    .type loam_run_attempt, @function
loam_run_attempt:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rsp, (%rdi)
    call *%rdx
    .globl loam_body_returned
    .hidden loam_body_returned
loam_body_returned:
    xorl %eax, %eax
.Lloam_attempt_return:
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    popq %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    popq %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    popq %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    popq %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    popq %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size loam_run_attempt, . - loam_run_attempt

    .p2align 4
    .globl loam_restart
    .type loam_restart, @function
loam_restart:
    movq (%rdi), %rax
    testb $1, %al
    jne .Lloam_return_again
    movq %rax, %rsp
    movl %esi, %eax
    jmp .Lloam_attempt_return
.Lloam_return_again:
    leaq -1(%rax), %rdi
    movq 0(%rdi), %rbx
    movq 8(%rdi), %rbp
    movq 16(%rdi), %r12
    movq 24(%rdi), %r13
    movq 32(%rdi), %r14
    movq 40(%rdi), %r15
    movq 48(%rdi), %rsp
    pushq 56(%rdi)
    jmp *64(%rdi)
    .size loam_restart, . - loam_restart

# rdi = argument, rax = function. Every register but the vector ones comes back as it was.
    .p2align 4
    .globl loam_call_preserving
    .type loam_call_preserving, @function
loam_call_preserving:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    andq $-16, %rsp
    call *%rax
    leaq -64(%rbp), %rsp
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size loam_call_preserving, . - loam_call_preserving
)");
#endif

namespace loam::platform {
namespace {

#ifndef LOAM_LIBC_CHECKPOINT
extern "C" const char loam_body_returned[];
#endif

#ifdef LOAM_SIMULATED
bool rtm_listed() noexcept { return loam_simulator_has_transactions() != 0; }
#else
bool rtm_listed() noexcept {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 11));
}
#endif

bool empty_transaction_commits() noexcept {
  if (transaction_begin() != kTransactionStarted) return false;
  transaction_commit();
  return true;
}

}  // namespace

#ifndef LOAM_LIBC_CHECKPOINT
// The word below the checkpoint, pushed by the call of the body.
bool return_address_is_there(const Checkpoint& checkpoint) noexcept {
  return static_cast<const void* const*>(checkpoint.stack_pointer)[-1] == loam_body_returned;
}
#endif

RtmStatus rtm_status() noexcept {
  if (!rtm_listed()) return RtmStatus::absent;
  // A single abort may be an interrupt; a hundred in a row is a machine that never commits.
  for (int tries = 0; tries < 100; ++tries)
    if (empty_transaction_commits()) return RtmStatus::works;
  return RtmStatus::listed_but_aborts;
}

}  // namespace loam::platform

#endif
