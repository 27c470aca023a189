#include "simulator/engine/fiber.hpp"

#include "simulator/engine/arena.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/kernel.hpp"
#include "simulator/engine/random.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/settings.hpp"

#include <asm/prctl.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/auxv.h>

// rdi = where the stack pointer goes, rsi = the one to go on with. The frame: callee-saved registers and the two
// control words of the floating-point units, which belong to the callee as well; most often they are the same.
asm(R"(
    .text
    .p2align 4
    .local loam_simulator_switch_stack
    .type loam_simulator_switch_stack, @function
loam_simulator_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movl (%rsp), %eax
    movzwl 4(%rsp), %ecx
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    cmpl %eax, (%rsp)
    jne 1f
    cmpw %cx, 4(%rsp)
    je 2f
1:  ldmxcsr (%rsp)
    fldcw 4(%rsp)
2:  addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size loam_simulator_switch_stack, . - loam_simulator_switch_stack
)");

extern "C" void loam_simulator_switch_stack(void** from, void* to);

namespace loam::simulator {
namespace {

// Of a donor's stack: the donor's own frames are above, the fiber begins below.
constexpr std::uintptr_t kDonorBytes = 16384;

const bool kHasFsgsbase = (getauxval(AT_HWCAP2) & 2) != 0;  // HWCAP2_FSGSBASE

[[gnu::target("fsgsbase")]] void set_fs(std::uintptr_t base) noexcept {
  if (kHasFsgsbase)
    _writefsbase_u64(base);
  else
    kernel(SYS_arch_prctl, ARCH_SET_FS, static_cast<long>(base));
}

std::uintptr_t fs() noexcept {
  std::uintptr_t base = 0;
  kernel(SYS_arch_prctl, ARCH_GET_FS, word_of(&base));
  return base;
}

void futex_wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  // The order of both sides' data: what is written before set_and_wake() is seen behind this.
  while (word.load(std::memory_order_acquire) == value)
    kernel(SYS_futex, word_of(&word), FUTEX_WAIT_PRIVATE, static_cast<long>(value));
}

void set_and_wake(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  word.store(value, std::memory_order_release);  // pairs with futex_wait_while()
  kernel(SYS_futex, word_of(&word), FUTEX_WAKE_PRIVATE, 1);
}

// A frame as loam_simulator_switch_stack leaves it, that returns into `first`.
void* first_frame(std::uintptr_t top, void (*first)()) noexcept {
  auto* at = reinterpret_cast<std::uintptr_t*>(top & ~std::uintptr_t{63});
  *--at = 0;  // where `first` would return to
  *--at = reinterpret_cast<std::uintptr_t>(first);
  for (int i = 0; i < 6; ++i) *--at = 0;
  --at;
  auto* const control = reinterpret_cast<std::uint32_t*>(at);
  control[0] = _mm_getcsr();
  std::uint16_t x87 = 0;
  asm volatile("fnstcw %0" : "=m"(x87));
  control[1] = x87;
  return at;
}

void (*first_of_all)() = nullptr;

// What a donor does. Only system calls: libc's functions would come back into the simulator, as another thread.
void* donor(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  std::uint64_t all = ~std::uint64_t{0};
  kernel(SYS_rt_sigprocmask, SIG_SETMASK, word_of(&all), 0, sizeof all);  // signals go to the carrier
  thread.fs_base = fs();
  thread.stack_high = here - kDonorBytes - seeded_offset("stack", thread.number);
  thread.stack_low = here - (std::uintptr_t{8} << 20) + 2 * kDonorBytes;
  thread.stack_pointer = first_frame(thread.stack_high, first_of_all);
  set_and_wake(thread.ready, 1);
  if (settings.threads) {
    futex_wait_while(thread.turn, 0);
    thread.turn.store(0, std::memory_order_relaxed);  // relaxed: only its own thread waits for it
    loam_simulator_switch_stack(&thread.donor_stack, thread.stack_pointer);
  }
  futex_wait_while(thread.finish, 0);
  return nullptr;
}

}  // namespace

void run_main_on_own_stack(Thread& main, void (*entry)()) {
  map_at(kStackStart, kStackBytes);
  main.stack_low = kStackStart;
  main.stack_high = kStackStart + kStackBytes - 4096 - seeded_offset("stack");
  main.fs_base = fs();
  void* unused = nullptr;
  loam_simulator_switch_stack(&unused, first_frame(main.stack_high, entry));
  fail("the first stack was entered again");
}

int make_fiber(Thread& thread, const pthread_attr_t* attributes, void (*first)()) {
  first_of_all = first;
  const int failure = LOAM_REAL(pthread_create)(&thread.handle, attributes, donor, &thread);
  if (failure == 0) futex_wait_while(thread.ready, 0);
  return failure;
}

void switch_fiber(Thread& from, Thread& to) {
  if (settings.threads) {
    set_and_wake(to.turn, 1);
    if (from.state == ThreadState::ended) loam_simulator_switch_stack(&from.stack_pointer, from.donor_stack);
    futex_wait_while(from.turn, 0);
    from.turn.store(0, std::memory_order_relaxed);  // relaxed: only its own thread waits for it
    return;
  }
  set_fs(to.fs_base);
  loam_simulator_switch_stack(&from.stack_pointer, to.stack_pointer);
}

void end_fiber(Thread& thread) {
  set_and_wake(thread.finish, 1);
  LOAM_REAL(pthread_join)(thread.handle, nullptr);
}

}  // namespace loam::simulator
