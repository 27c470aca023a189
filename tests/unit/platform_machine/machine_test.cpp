#include "runtime/platform/machine.hpp"

#include "tests/harness/child.hpp"
#include "tests/harness/interpose.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace loam::platform {
namespace {

// ---- run_attempt and restart

struct Attempt {
  Checkpoint checkpoint{};
  int entered = 0;
  int restarts = 0;  // wanted
  int depth = 0;     // frames between the attempt and restart()
};

// Not a tail call: each level really has a frame.
[[gnu::noinline]] int restart_at(Attempt& attempt, int depth) {
  if (depth == 0) {
    if (attempt.depth < 0) return 0;
    restart(attempt.checkpoint, 100 + attempt.entered);
  }
  return restart_at(attempt, depth - 1) + depth;
}

void attempt_body(Checkpoint&, void* argument) {
  auto& attempt = *static_cast<Attempt*>(argument);
  if (attempt.entered++ < attempt.restarts) restart_at(attempt, attempt.depth);
}

TEST(RunAttempt, ReturnsZeroWhenTheBodyReturns) {
  Attempt attempt;
  EXPECT_EQ(run_attempt(attempt.checkpoint, attempt_body, &attempt), 0);
  EXPECT_EQ(attempt.entered, 1);
}

TEST(RunAttempt, RestartReturnsItsCodeFromAnyDepth) {
  for (int depth : {0, 1, 10, 1000, 20000}) {
    Attempt attempt{.restarts = 3, .depth = depth};
    for (int round = 0; round < 3; ++round)
      EXPECT_EQ(run_attempt(attempt.checkpoint, attempt_body, &attempt), 101 + round) << "depth " << depth;
    EXPECT_EQ(run_attempt(attempt.checkpoint, attempt_body, &attempt), 0);
  }
}

// Fills every callee-saved register with something else, then restarts.
void clobber_and_restart(Checkpoint& checkpoint, void*) {
#if defined(__x86_64__)
  asm volatile(
      "xorl %%ebx, %%ebx\n\txorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d\n\txorl %%r14d, %%r14d\n\txorl %%r15d, %%r15d" ::
          : "rbx", "r12", "r13", "r14", "r15", "memory");
#elif defined(__aarch64__)
  asm volatile(
      "mov x19, #0\n\tmov x20, #0\n\tmov x21, #0\n\tmov x22, #0\n\tmov x23, #0\n\tmov x24, #0\n\tmov x25, #0\n\t"
      "mov x26, #0\n\tmov x27, #0\n\tmov x28, #0\n\tfmov d8, xzr\n\tfmov d9, xzr\n\tfmov d10, xzr\n\tfmov d11, xzr\n\t"
      "fmov d12, xzr\n\tfmov d13, xzr\n\tfmov d14, xzr\n\tfmov d15, xzr" ::
          : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v8", "v9", "v10", "v11", "v12",
            "v13", "v14", "v15", "memory");
#endif
  restart(checkpoint, 1);
}

TEST(RunAttempt, CallersRegistersAreRestored) {
  Checkpoint checkpoint;
  // More live values across the call than there are callee-saved registers: all of these are in use.
  volatile std::uint64_t seed = 17;
  std::uint64_t a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 19, g = seed * 23;
  double h = static_cast<double>(seed);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(run_attempt(checkpoint, clobber_and_restart, &checkpoint), 1);
    h += 0.5;
    a += 1, b += 2, c += 3, d += 4, e += 5, f += 6, g += 7;
  }
  EXPECT_EQ(a, 17u * 3 + 100);
  EXPECT_EQ(b, 17u * 5 + 200);
  EXPECT_EQ(c, 17u * 7 + 300);
  EXPECT_EQ(d, 17u * 11 + 400);
  EXPECT_EQ(e, 17u * 13 + 500);
  EXPECT_EQ(f, 17u * 19 + 600);
  EXPECT_EQ(g, 17u * 23 + 700);
  EXPECT_EQ(h, 17.0 + 50);
}

#if defined(__aarch64__) && !defined(LOAM_INSTRUMENTED)
// Everything that a function may change, it changes.
void change_registers() {
  asm volatile(
      "mov x0, #0\n\tmov x1, #0\n\tmov x2, #0\n\tmov x3, #0\n\tmov x4, #0\n\tmov x5, #0\n\tmov x6, #0\n\tmov x7, #0\n\t"
      "mov x8, #0\n\tmov x9, #0\n\tmov x10, #0\n\tmov x11, #0\n\tmov x12, #0\n\tmov x13, #0\n\tmov x14, #0\n\t"
      "mov x15, #0\n\tmov x16, #0\n\tmov x17, #0\n\tmovi v8.2d, #0\n\tmovi v15.2d, #0" ::
          : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
            "x17", "v8", "v15");
}

// What call_preserving() relies on: the caller of the assembly finds its registers as they were.
TEST(CallPreserving, TheCodeAroundKeepsItsRegisters) {
  std::array<std::uint64_t, 18> found{};
  std::uint64_t* const to = found.data();
  register void (*function)() asm("x17") = change_registers;
  register std::uint64_t* place asm("x19") = to;
  asm volatile(
      "mov x1, #102\n\tmov x2, #103\n\tmov x3, #104\n\tmov x4, #105\n\tmov x5, #106\n\tmov x6, #107\n\tmov x7, #108\n\t"
      "mov x8, #109\n\tmov x9, #110\n\tmov x10, #111\n\tmov x11, #112\n\tmov x12, #113\n\tmov x13, #114\n\t"
      "mov x14, #115\n\tmov x15, #116\n\tmov x0, #117\n\tdup v8.2d, x0\n\tmov x0, #118\n\tdup v15.2d, x0\n\t"
      "mov x0, #101\n\tadrp x16, :got:loam_call_preserving\n\tldr x16, [x16, :got_lo12:loam_call_preserving]\n\t"
      "blr x16\n\t"
      "stp x0, x1, [x19, #0]\n\tstp x2, x3, [x19, #16]\n\tstp x4, x5, [x19, #32]\n\tstp x6, x7, [x19, #48]\n\t"
      "stp x8, x9, [x19, #64]\n\tstp x10, x11, [x19, #80]\n\tstp x12, x13, [x19, #96]\n\tstp x14, x15, [x19, #112]\n\t"
      "mov x0, v8.d[1]\n\tmov x1, v15.d[1]\n\tstp x0, x1, [x19, #128]"
      : "+r"(function)
      : "r"(place)
      : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v15", "v16", "v17", "v18", "v19",
        "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], 101 + i) << i;
}
#endif

struct Nested {
  Checkpoint outer, inner;
  bool to_outer = false;
  int after_inner = -1;
};

TEST(RunAttempt, NestedAttemptsRestartTheOneThatIsNamed) {
  const AttemptBody inner = [](Checkpoint&, void* argument) {
    auto& nested = *static_cast<Nested*>(argument);
    restart(nested.to_outer ? nested.outer : nested.inner, 7);
  };
  static AttemptBody inner_body;
  inner_body = inner;
  const AttemptBody outer = [](Checkpoint&, void* argument) {
    auto& nested = *static_cast<Nested*>(argument);
    nested.after_inner = run_attempt(nested.inner, inner_body, argument);
  };
  Nested nested;
  EXPECT_EQ(run_attempt(nested.outer, outer, &nested), 0);
  EXPECT_EQ(nested.after_inner, 7);
  nested = {};
  nested.to_outer = true;
  EXPECT_EQ(run_attempt(nested.outer, outer, &nested), 7);
  EXPECT_EQ(nested.after_inner, -1);
}

TEST(RunAttempt, AnExceptionPassesThrough) {
  struct Payload {
    Checkpoint checkpoint;
    bool destroyed = false;
  } payload;
  const AttemptBody thrower = [](Checkpoint&, void* argument) {
    struct Guard {
      bool& flag;
      ~Guard() { flag = true; }
    } guard{static_cast<Payload*>(argument)->destroyed};
    throw std::runtime_error("through");
  };
  for (int round = 0; round < 10; ++round) {
    payload.destroyed = false;
    EXPECT_THROW(run_attempt(payload.checkpoint, thrower, &payload), std::runtime_error);
    EXPECT_TRUE(payload.destroyed);
  }
}

TEST(RunAttempt, TheStackIsAlignedInsideTheBody) {
  Checkpoint checkpoint;
  std::uintptr_t remainder = 99;
  const AttemptBody body = [](Checkpoint&, void* argument) {
    alignas(64) volatile char aligned[64];
    *static_cast<std::uintptr_t*>(argument) = reinterpret_cast<std::uintptr_t>(&aligned) % 64;
    // An SSE store to a misaligned frame would fault here.
    std::array<double, 8> values{};
    asm volatile("" : : "r"(&values) : "memory");
  };
  EXPECT_EQ(run_attempt(checkpoint, body, &remainder), 0);
  EXPECT_EQ(remainder, 0u);
}

// ---- asymmetric barrier

// Dekker's pattern, many times: the frequent side announces, then loads; the rare side stores, then loads. returns how
// often neither side saw the other's store
int misses_in(int rounds) {
  std::atomic<std::uint64_t> slot{0};
  std::atomic<int> changed{0}, round_light{0}, round_heavy{0};
  std::atomic<bool> light_saw{false};
  int missed = 0;
  std::thread light([&] {
    for (int round = 1; round <= rounds; ++round) {
      for (int spins = 0; round_heavy.load(std::memory_order_acquire) != round; ++spins)
        spins < 500 ? pause() : yield();
      announce_light(slot, 1);
      light_saw.store(changed.load(std::memory_order_relaxed) == 1, std::memory_order_relaxed);
      round_light.store(round, std::memory_order_release);
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    slot.store(0, std::memory_order_relaxed);
    changed.store(0, std::memory_order_relaxed);
    round_heavy.store(round, std::memory_order_release);
    for (int i = 0; i < round % 64; ++i) pause();
    changed.store(1, std::memory_order_relaxed);
    announce_heavy();
    const bool heavy_saw = slot.load(std::memory_order_relaxed) == 1;
    for (int spins = 0; round_light.load(std::memory_order_acquire) != round; ++spins) spins < 500 ? pause() : yield();
    missed += !heavy_saw && !light_saw.load(std::memory_order_relaxed);
  }
  light.join();
  return missed;
}

// In a process with threads the kernel needs milliseconds for it. The first test of this file that uses the barrier.
TEST(Announce, IsRegisteredWhenTheProgramIsLoaded) {
#ifdef LOAM_TSAN
  GTEST_SKIP() << "its barrier does not use the kernel";
#endif
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) < MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    GTEST_SKIP() << "this kernel has no membarrier";
  EXPECT_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
}

TEST(Announce, NeverDoBothSidesMissEachOther) { EXPECT_EQ(misses_in(3000), 0); }

// Makes the kernel refuse membarrier to this process, as a container may do. returns whether it does
bool refuse_membarrier() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) == -1;
}

TEST(Announce, HoldsWhereMembarrierIsRefusedAndForThreadsInTheMiddleOfEachOther) {
  if (!kLostRightsInterrupt) GTEST_SKIP() << "this processor needs membarrier";
  tests::in_child([] {
    if (!refuse_membarrier()) GTEST_SKIP() << "this system takes no filter of system calls";
    EXPECT_EQ(misses_in(200), 0);
    LOAM_NEEDS_POINTS();
    tests::Interpose another("platform.barrier_page", 0, announce_heavy);
    announce_heavy();
#ifndef LOAM_TSAN  // with it the barrier does not use the kernel
    EXPECT_TRUE(another.reached());
#endif
  });
}

// ---- futex, time, the rest

TEST(Futex, WakesAWaiterAndReturnsAtOnceOnAnotherValue) {
  std::atomic<std::uint32_t> word{0};
  futex_wait(word, 1);  // the value differs
  std::thread waiter([&] {
    while (word.load(std::memory_order_acquire) == 0) futex_wait(word, 0);
  });
  sleep_ns(1'000'000);
  word.store(1, std::memory_order_release);
  futex_wake(word, 1);
  waiter.join();
}

TEST(Futex, TimesOut) {
  std::atomic<std::uint32_t> word{0};
  const auto start = monotonic_ns();
  futex_wait(word, 0, 2'000'000);
  EXPECT_GE(monotonic_ns() - start, 1'900'000u);
}

TEST(Clocks, AdvanceAndSleepLastsAtLeastAsLongAsAsked) {
  const auto start = monotonic_ns();
  sleep_ns(2'000'000);
  EXPECT_GE(monotonic_ns() - start, 2'000'000u);
  const auto cpu = thread_cpu_ns();
  while (thread_cpu_ns() == cpu) pause();
  EXPECT_GT(thread_cpu_ns(), cpu);
}

TEST(Machine, IdentitiesAndRandomness) {
  EXPECT_LT(cpu_number(), 4096u);
  unsigned other = 0;
  std::thread([&] { other = thread_id(); }).join();
  EXPECT_NE(other, thread_id());
  std::array<std::byte, 64> first{}, second{};
  random_bytes(first);
  random_bytes(second);
  EXPECT_NE(first, second);
  random_bytes({});
}

TEST(Machine, RtmStatusIsOneOfThreeAndDoesNotCrash) {
  const RtmStatus status = rtm_status();
  EXPECT_TRUE(status == RtmStatus::absent || status == RtmStatus::listed_but_aborts || status == RtmStatus::works);
}

}  // namespace
}  // namespace loam::platform
