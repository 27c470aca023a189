// machine: the one place for what the compiler's instrumentation cannot see.
//   Register save and restore, hardware transactions, pause, futex, clocks, CPU number, random bytes and the asymmetric
//   barrier live here and nowhere else (tests/lab/test_style.py greps for it): a checker that replaces the thread
//   sanitizer's library, or a simulator, then has one file to replace. The architecture's own half is
//   machine_<architecture>.{hpp,cpp}; a port adds that pair.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

// The thread sanitizer and the simulator must see a jump, so there libc makes it. The address sanitizer need only forget
// the frames that a jump leaves: GCC adds that call before each function that does not return, such as restart().
#if defined(LOAM_INSTRUMENTED) && !defined(LOAM_ASAN)
#define LOAM_LIBC_CHECKPOINT 1
#include <csetjmp>
#include <cstring>
#endif

#if defined(__x86_64__)
#include "runtime/platform/machine_x86_64.hpp"
#elif defined(__aarch64__)
#include "runtime/platform/machine_aarch64.hpp"
#else
#error "Loam: no machine_<architecture>.hpp for this processor; machine_x86_64.hpp shows what one has to define"
#endif

// Before the declaration of a function or variable that the process may lack: its address is null then.
#define LOAM_MAY_BE_MISSING [[gnu::weak, gnu::visibility("default")]]

namespace loam::platform {

// ---- time ----------------------------------------------------------------------------------------------------------

std::uint64_t monotonic_ns() noexcept;   // CLOCK_MONOTONIC
std::uint64_t thread_cpu_ns() noexcept;  // CPU time of the calling thread
void sleep_ns(std::uint64_t duration_ns) noexcept;

// ---- scheduling ----------------------------------------------------------------------------------------------------

void yield() noexcept;
unsigned cpu_number() noexcept;  // where the caller ran a moment ago
unsigned thread_id() noexcept;   // the kernel's
unsigned process_id() noexcept;  // changes in the child of a fork
// Whether this process has a thread with this number. For a moment after a thread was joined the answer may still be
// yes. Where the kernel does not say, yes.
bool thread_exists(unsigned thread) noexcept;

// Sleeps while word == expected, at most timeout_ns (~0: for ever). Returns for any reason, so the caller loops.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::uint64_t timeout_ns = ~0ULL) noexcept;
void futex_wake(const std::atomic<std::uint32_t>& word, unsigned waiters) noexcept;

// ---- counters of the processor
// ---------------------------------------------------------------------------------------

// A counter of the calling thread and those that it makes from now on, in user mode, stopped: prctl's
// PR_TASK_PERF_EVENTS_ENABLE starts it. type, config: as struct perf_event_attr has them. Reading it gives its value
// and two times in ns: how long it was to count, and how long it did. Negative where the kernel refuses.
int open_event_counter(std::uint32_t type, std::uint64_t config) noexcept;

// ---- randomness ----------------------------------------------------------------------------------------------------

void random_bytes(std::span<std::byte> out) noexcept;  // from the kernel; for seeds only

// ---- asymmetric store-load barrier ---------------------------------------------------------------------------------
// A frequent side announces itself and then reads shared data; a rare side changes shared data and then looks for
// announcements. Each must see the other (Dekker). The frequent side pays a plain store, the rare one a membarrier:
//   announce_light(slot, v); ...loads...      pairs with      ...stores...; announce_heavy(); slot.load()
// Without the pair both sides could miss each other, and a block could be freed under a reader. In builds with the
// thread sanitizer, which cannot see membarrier, both are seq_cst exchanges. The simulator charges membarrier's time and
// needs no order: one of its cores runs at a time.

void announce_heavy() noexcept;

template <class Word>
inline void announce_light(std::atomic<Word>& slot, std::type_identity_t<Word> value) noexcept {
#ifdef LOAM_TSAN
  slot.exchange(value, std::memory_order_seq_cst);
#else
  // release: earlier reads happen before the announcement. The store-load order that the reader needs as well comes
  // from announce_heavy(), which interrupts every core that runs this process.
  slot.store(value, std::memory_order_release);
  compiler_barrier();
#endif
}

// ---- attempts: run a body, perhaps come back early ------------------------------------------------------------------
// run_attempt() calls body(checkpoint, argument) and returns 0 when it returns. restart(checkpoint, code), called from
// inside the body at any depth, makes run_attempt() return `code` (not 0) instead: callee-saved registers and the stack
// pointer are restored, no destructor runs. To the compiler run_attempt() is an ordinary call, so the caller keeps its
// optimisations and its locals are well defined; a setjmp in the caller would give neither. An exception may pass
// through.

struct Checkpoint {
#ifdef LOAM_LIBC_CHECKPOINT
  std::jmp_buf buffer;
#endif
  void* stack_pointer;
};

using AttemptBody = void (*)(Checkpoint& checkpoint, void* argument);

#ifdef LOAM_LIBC_CHECKPOINT
int run_attempt(Checkpoint& checkpoint, AttemptBody body, void* argument);
[[noreturn]] void restart(Checkpoint& checkpoint, int code) noexcept;
#else
// In the order in which the body expects them: nothing is moved between registers on the way.
extern "C" int loam_run_attempt(Checkpoint& checkpoint, void* argument, AttemptBody body);
extern "C" [[noreturn]] void loam_restart(Checkpoint* checkpoint, int code) noexcept;

inline int run_attempt(Checkpoint& checkpoint, AttemptBody body, void* argument) {
  return loam_run_attempt(checkpoint, argument, body);
}
[[noreturn]] inline void restart(Checkpoint& checkpoint, int code) noexcept { loam_restart(&checkpoint, code); }

// The architecture's half of encloses(): whether the body's return address is still where the call put it.
bool return_address_is_there(const Checkpoint& checkpoint) noexcept;
#endif

// Whether `frame` (of the caller, __builtin_frame_address(0)) lies within the body that run_attempt() called with this
// checkpoint. False if the body was left by a jump and what called it has returned, or the stack is another one. A
// frame below where the body was counts as within it as long as nothing has been written over run_attempt()'s own
// return address (where libc makes the jumps: always).
bool encloses(const Checkpoint& checkpoint, const void* frame) noexcept;

// Whether a signal handler runs between the caller and run_attempt(). Unwinds the stack: microseconds.
// Neither says anything of a checkpoint that makes its caller return again: that one has no body.
bool in_signal_handler(const Checkpoint& checkpoint) noexcept;

// ---- attempts whose body is the code behind a call ------------------------------------------------------------------
// For languages that cannot hand over a body: a function saves its caller, returns, and returns again after restart(),
// as setjmp() does. LOAM_DEFINE_ENTRY_THAT_SAVES_ITS_CALLER(entry, target) defines that function; return_again() makes
// its Caller the place that `checkpoint` stands for. On restart() the saved registers come back and resume(caller,
// code) runs in the place of the function, on the stack of its caller; what it returns, the function returns once more.
// The caller must not have returned meanwhile. With libc's checkpoints the caller's own _setjmp() is what returns
// again.

#ifdef LOAM_LIBC_CHECKPOINT
struct Caller {
  std::jmp_buf buffer;
  std::uintptr_t stack_pointer;  // behind the call; who calls _setjmp() fills it in
};
#endif
inline void return_again(Checkpoint& checkpoint, Caller& caller,
                         [[maybe_unused]] int (*resume)(Caller*, int)) noexcept {
#ifdef LOAM_LIBC_CHECKPOINT
  std::memcpy(&checkpoint.buffer, &caller.buffer, sizeof checkpoint.buffer);
#else
  caller.resume = resume;
#endif
  checkpoint.stack_pointer = reinterpret_cast<std::byte*>(&caller) + 1;  // a stack pointer is even
}
inline bool returns_again(const Checkpoint& checkpoint) noexcept {
  return reinterpret_cast<std::uintptr_t>(checkpoint.stack_pointer) % 2 != 0;
}

// Where the frames end that are there after restart(checkpoint): what lies below it on that stack is gone then.
std::uintptr_t kept_stack(const Checkpoint& checkpoint) noexcept;

// Where the stack of the calling function's caller ended at the call: the same for all calls that one function makes.
#define LOAM_STACK_OF_CALLER() reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa())

// ---- hardware transactions -----------------------------------------------------------------------------------------

#ifdef LOAM_SIMULATED
[[gnu::always_inline]] inline unsigned transaction_begin() noexcept { return loam_simulator_transaction_begin(); }
inline void transaction_commit() noexcept { loam_simulator_transaction_commit(); }
template <std::uint8_t kCode>
void transaction_abort() noexcept {
  loam_simulator_transaction_abort(kCode);
}
inline bool in_transaction() noexcept { return loam_simulator_in_transaction() != 0; }
#endif

enum class RtmStatus { absent, listed_but_aborts, works };

// A transaction of the processor (x86's RTM), or of the simulated one. transaction_begin() returns kTransactionStarted;
// where the transaction aborts, memory and registers are as they were, and it returns why instead. They nest, and the
// outermost commit counts. Only where rtm_status() says that they work; elsewhere begin returns 0, an abort that no retry
// helps.
inline constexpr unsigned kTransactionStarted = ~0U;
inline constexpr unsigned kAbortExplicit = 1, kAbortRetry = 2, kAbortConflict = 4, kAbortCapacity = 8;
constexpr unsigned explicit_code(unsigned status) noexcept { return status >> 24; }

// Tries real transactions where the processor lists them: firmware and hypervisors leave the flag and disable the rest.
RtmStatus rtm_status() noexcept;

// Whether the functions above may be called at all: a processor without transactions ends a program that asks it. A
// simulated machine answers for itself, whenever it is asked. In builds with the thread sanitizer, which cannot see what a
// transaction orders, there are none.
inline bool has_transactions() noexcept {
#ifdef LOAM_SIMULATED
  return true;
#elif defined(LOAM_TSAN)
  return false;
#else
  return rtm_status() == RtmStatus::works;
#endif
}

}  // namespace loam::platform
