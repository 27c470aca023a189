// Hardware transactions: applies the model's decisions to the program's memory and registers.
//   The model decides when a transaction aborts. The thread of that transaction is stopped inside a hook, so the core
//   that aborts it restores its memory at once. When the thread runs again, it is at the begin of the transaction, with
//   the registers and the nearest stack of that moment. No thread continues with values of an aborted transaction.
//   T1 undo holds the old bytes of every write since the begin, the oldest first. Writes below the begin's stack
//      pointer need no entry, because those frames are gone after the abort.
//   T2 a thread in a transaction runs or is parked in a hook: whatever gives up its core, or enters the kernel, aborts first.
//   Blocks that a native allocator gave out are freed on abort, and frees wait for the commit.
#pragma once

#include "simulator/engine/scheduler.hpp"
#include "simulator/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loam::simulator {

// As the assembly of begin stores them: rbx, rbp, r12 to r15, the stack pointer behind the call, where the call returns.
struct Registers {
  std::uint64_t callee_saved[6];
  std::uintptr_t stack_pointer;
  std::uintptr_t return_address;
};

struct Transaction {
  struct Old {
    void* at;
    std::uint64_t bytes_before[2];
    unsigned bytes;
  };
  struct Block {
    void (*free)(void*);
    void* start;
  };
  static constexpr std::size_t kStackBytes = 4096;

  unsigned depth = 0;
  unsigned status = 0;  // not 0: it has aborted, and begin returns this when the thread runs again
  Registers registers{};
  std::vector<Old> undo;
  std::vector<Block> taken, given;
  std::size_t stack_bytes = 0;
  char stack[kStackBytes];
};

inline bool in_transaction() noexcept {
  return now.thread->transaction != nullptr && now.thread->transaction->depth != 0;
}

// After the model's answer, before the program's own access.
void settle_access(const Outcome& outcome, std::uintptr_t address, unsigned bytes, bool writes);
// Before anything that a transaction cannot do: it aborts, and this does not return. Nothing without one.
void leave_transaction();
// The thread loses its core: its transaction is over.
void interrupt_transaction(Thread& thread);
// The thread runs again, and its transaction may have been aborted meanwhile.
void resume_aborted();

}  // namespace loam::simulator
