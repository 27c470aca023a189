#include "simulator/engine/transactions.hpp"

#include "runtime/platform/simulator_calls.hpp"
#include "simulator/engine/access.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/hooks/exported.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

// begin stores what its caller needs to go on and asks the engine; resume makes begin return once more.
asm(R"(
    .text
    .p2align 4
    .globl loam_simulator_transaction_begin
    .type loam_simulator_transaction_begin, @function
loam_simulator_transaction_begin:
    leaq 8(%rsp), %rax
    movq (%rsp), %rdx
    subq $72, %rsp
    movq %rbx, 0(%rsp)
    movq %rbp, 8(%rsp)
    movq %r12, 16(%rsp)
    movq %r13, 24(%rsp)
    movq %r14, 32(%rsp)
    movq %r15, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %rdx, 56(%rsp)
    movq %rsp, %rdi
    call loam_simulator_begin_with
    addq $72, %rsp
    ret
    .size loam_simulator_transaction_begin, . - loam_simulator_transaction_begin

    .p2align 4
    .local loam_simulator_return_again
    .type loam_simulator_return_again, @function
loam_simulator_return_again:
    movq 0(%rdi), %rbx
    movq 8(%rdi), %rbp
    movq 16(%rdi), %r12
    movq 24(%rdi), %r13
    movq 32(%rdi), %r14
    movq 40(%rdi), %r15
    movq 56(%rdi), %rdx
    movq 48(%rdi), %rsp
    movl %esi, %eax
    jmp *%rdx
    .size loam_simulator_return_again, . - loam_simulator_return_again
)");

extern "C" [[noreturn]] void loam_simulator_return_again(const loam::simulator::Registers* registers, unsigned status);

namespace loam::simulator {
namespace {

// The status of an abort, as x86's RTM has it: bits for why, and the program's own code above.
constexpr unsigned kStarted = ~0U, kExplicit = 1, kRetry = 2, kConflict = 4, kCapacity = 8, kCodeShift = 24;

Thread* owners[kCoresMax];  // of each core's transaction

unsigned status_of(AbortCause cause) noexcept {
  switch (cause) {
    case AbortCause::conflict:
      return kConflict | kRetry;
    case AbortCause::read_capacity:
    case AbortCause::write_capacity:
      return kCapacity;
    case AbortCause::interrupt:
      return kRetry;
    default:
      return 0;
  }
}

// Memory as it was at the begin. The model has forgotten the transaction already.
void roll_back(Thread& thread, unsigned status) {
  Transaction& transaction = *thread.transaction;
  for (auto old = transaction.undo.rbegin(); old != transaction.undo.rend(); ++old)
    std::memcpy(old->at, old->bytes_before, old->bytes);
  transaction.undo.clear();
  transaction.depth = 0;
  transaction.status = status;
  transaction.given.clear();
  owners[thread.core] = nullptr;
}

[[noreturn]] void go_back(Thread& thread) {
  Transaction& transaction = *thread.transaction;
  const unsigned status = std::exchange(transaction.status, 0);
  now.core->clock += the_machine().abort_cycles;
  thread.native = 0;
  for (const auto& block : transaction.taken) {
    const Native native;
    block.free(block.start);
  }
  transaction.taken.clear();
  std::memcpy(reinterpret_cast<void*>(transaction.registers.stack_pointer), transaction.stack, transaction.stack_bytes);
  loam_simulator_return_again(&transaction.registers, status);
}

[[noreturn]] void abort_own(AbortCause cause, unsigned status) {
  Thread& thread = *now.thread;
  // abort_cycles are charged on the way back, for all aborts alike.
  model->abort_transaction(now.core->number, now.core->clock, cause);
  roll_back(thread, status);
  go_back(thread);
}

void keep_old(Transaction& transaction, std::uintptr_t address, unsigned bytes) {
  const Thread& thread = *now.thread;
  if (address < transaction.registers.stack_pointer && address >= thread.stack_low) return;  // T1
  while (bytes != 0) {
    const unsigned part = std::min(bytes, 16U);
    Transaction::Old old{reinterpret_cast<void*>(address), {}, part};
    std::memcpy(old.bytes_before, old.at, part);
    transaction.undo.push_back(old);
    address += part;
    bytes -= part;
  }
}

void abort_victims(const CoreSet& victims) {
  victims.for_each([](unsigned core) { roll_back(*owners[core], status_of(model->last_abort(core).cause)); });
}

}  // namespace

void settle_access(const Outcome& outcome, std::uintptr_t address, unsigned bytes, bool writes) {
  if (!outcome.victims.empty()) abort_victims(outcome.victims);
  if (outcome.self_abort) {
    roll_back(*now.thread, status_of(model->last_abort(now.core->number).cause));
    go_back(*now.thread);
  }
  if (writes && in_transaction()) keep_old(*now.thread->transaction, address, bytes);
}

void leave_transaction() {
  if (now.thread != nullptr && now.thread->native == 0 && in_transaction()) abort_own(AbortCause::other, 0);
}

void interrupt_transaction(Thread& thread) {
  if (thread.transaction == nullptr || thread.transaction->depth == 0) return;
  model->abort_transaction(thread.core, scheduler.core(thread.core).clock, AbortCause::interrupt);
  roll_back(thread, kRetry);
}

void resume_aborted() {
  Thread& thread = *now.thread;
  if (thread.transaction != nullptr && thread.transaction->status != 0) go_back(thread);
}

}  // namespace loam::simulator

using namespace loam::simulator;

extern "C" [[gnu::used]] unsigned loam_simulator_begin_with(const Registers* registers) {
  if (!simulated() || the_machine().transactions == Transactions::none) return 0;
  Thread& thread = *now.thread;
  if (thread.transaction == nullptr) thread.transaction = new Transaction;
  Transaction& transaction = *thread.transaction;
  if (transaction.depth++ != 0) return kStarted;
  transaction.depth = 0;  // the others' turn, outside of it
  spend(0);
  transaction.depth = 1;
  transaction.registers = *registers;
  transaction.stack_bytes =
      std::min<std::size_t>(Transaction::kStackBytes, thread.stack_high - registers->stack_pointer);
  std::memcpy(transaction.stack, reinterpret_cast<void*>(registers->stack_pointer), transaction.stack_bytes);
  owners[now.core->number] = &thread;
  now.core->clock += model->begin_transaction(now.core->number, now.core->clock);
  return kStarted;
}

LOAM_EXPORTED void loam_simulator_transaction_commit() {
  if (!simulated() || !in_transaction()) return;
  Transaction& transaction = *now.thread->transaction;
  if (transaction.depth > 1) {
    --transaction.depth;
    return;
  }
  spend(0);
  const Outcome outcome = model->commit_transaction(now.core->number, now.core->clock);
  settle_access(outcome, 0, 0, false);
  now.core->clock += outcome.cycles;
  transaction.depth = 0;
  transaction.undo.clear();
  transaction.taken.clear();
  owners[now.core->number] = nullptr;
  const auto given = std::exchange(transaction.given, {});
  for (const auto& block : given) {
    const Native native;
    block.free(block.start);
  }
}

LOAM_EXPORTED void loam_simulator_transaction_abort(unsigned code) {
  if (simulated() && in_transaction()) abort_own(AbortCause::explicit_abort, kExplicit | (code & 255) << kCodeShift);
}

LOAM_EXPORTED int loam_simulator_in_transaction() { return simulated() && in_transaction(); }

LOAM_EXPORTED int loam_simulator_has_transactions() {
  return now.thread != nullptr && the_machine().transactions != Transactions::none;
}
