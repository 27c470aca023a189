// malloc, operator new and the like, when instrumented code calls them (the linker's --wrap).
//   A native allocator, without instrumentation, only decides where blocks lie. What a call costs comes from a table
//   (engine/call_costs.hpp), its locks never contend, and its own memory is not in the caches.
//   An instrumented allocator is simulated like the program, so nothing is charged here.
#include "simulator/engine/access.hpp"
#include "simulator/engine/allocator.hpp"
#include "simulator/engine/call_costs.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/hooks/exported.hpp"

#include <dlfcn.h>

#include <cstddef>

namespace loam::simulator {
namespace {

// The process's own function: found in the order of the loaded objects, so that a preloaded allocator's comes first.
template <class Function>
Function* of_process(const char* name, Function*& found) {
  if (found == nullptr) found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return found;
}

std::size_t bytes_of(void* block) {
  static std::size_t (*found)(void*) = nullptr;
  return of_process("malloc_usable_size", found)(block);
}

std::uintptr_t as_number(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }

void give_back(void* block) {
  static void (*found)(void*) = nullptr;
  of_process("free", found)(block);
}

// In a transaction a native allocator's block is given back when it commits. returns whether that will be
bool given_later(void* block) {
  if (!allocator_is_native() || !simulated() || !in_transaction()) return false;
  now.thread->transaction->given.push_back({give_back, block});
  now.core->clock += call_costs.give(now.thread->number, block);
  return true;
}

class Call {
 public:
  Call() : native_(allocator_is_native() && simulated()) {
    if (!native_) return;
    spend(0);  // the others' turn first, if it is due
    ++now.thread->native;
  }
  ~Call() {
    if (!native_) return;
    --now.thread->native;
    now.core->clock += cycles_;
  }
  // What a block that the call gave out costs. more: cycles beside those of the allocator
  void* charged(void* block, std::size_t bytes, std::uint64_t more = 0) {
    if (!native_) return block;
    cycles_ += call_costs.take(now.thread->number, bytes) + more;
    if (block != nullptr) call_costs.taken(now.thread->number, block, bytes);
    return block;
  }
  // The same; a transaction that aborts gives the block back.
  void* taken(void* block, std::size_t bytes, std::uint64_t more = 0) {
    if (!native_ || block == nullptr) return charged(block, bytes, more);
    if (checker != nullptr) checker->memory().forget(as_number(block), bytes_of(block));
    if (in_transaction()) now.thread->transaction->taken.push_back({give_back, block});
    return charged(block, bytes, more);
  }
  void given(const void* block) {
    if (native_) cycles_ += call_costs.give(now.thread->number, block);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const bool native_;
  std::uint64_t cycles_ = 0;
};

}  // namespace
}  // namespace loam::simulator

using loam::simulator::allocator_is_native;
using loam::simulator::Call;
using loam::simulator::given_later;
using loam::simulator::leave_transaction;
using loam::simulator::of_process;

#define LOAM_TAKES_MORE(name, parameters, arguments, bytes, more)       \
  LOAM_EXPORTED void* __wrap_##name parameters {                        \
    static void*(*found)parameters = nullptr;                           \
    Call call;                                                          \
    return call.taken(of_process(#name, found) arguments, bytes, more); \
  }
#define LOAM_TAKES(name, parameters, arguments) LOAM_TAKES_MORE(name, parameters, arguments, n, 0)
#define LOAM_GIVES(name, parameters, arguments) \
  LOAM_EXPORTED void __wrap_##name parameters { \
    static void(*found) parameters = nullptr;   \
    if (given_later(p)) return;                 \
    Call call;                                  \
    call.given(p);                              \
    of_process(#name, found) arguments;         \
  }

LOAM_TAKES(malloc, (std::size_t n), (n))
// A zeroed block is written, 16 bytes a cycle.
LOAM_TAKES_MORE(calloc, (std::size_t n, std::size_t m), (n, m), n* m, n* m / 16)
LOAM_TAKES(aligned_alloc, (std::size_t a, std::size_t n), (a, n))
LOAM_TAKES(memalign, (std::size_t a, std::size_t n), (a, n))
LOAM_EXPORTED int __wrap_posix_memalign(void** p, std::size_t a, std::size_t n) {
  static int (*found)(void**, std::size_t, std::size_t) = nullptr;
  Call call;
  const int failure = of_process("posix_memalign", found)(p, a, n);
  call.taken(failure == 0 ? *p : nullptr, n);
  return failure;
}
// What it moves a rollback could not move back: a transaction aborts first. It is charged as a malloc.
LOAM_EXPORTED void* __wrap_realloc(void* p, std::size_t n) {
  static void* (*found)(void*, std::size_t) = nullptr;
  if (allocator_is_native()) leave_transaction();
  Call call;
  return call.charged(of_process("realloc", found)(p, n), n);
}
LOAM_GIVES(free, (void* p), (p))

// operator new, new[]: plain, nothrow, aligned, aligned nothrow
LOAM_TAKES(_Znwm, (std::size_t n), (n))
LOAM_TAKES(_Znam, (std::size_t n), (n))
LOAM_TAKES(_ZnwmRKSt9nothrow_t, (std::size_t n, const void* t), (n, t))
LOAM_TAKES(_ZnamRKSt9nothrow_t, (std::size_t n, const void* t), (n, t))
LOAM_TAKES(_ZnwmSt11align_val_t, (std::size_t n, std::size_t a), (n, a))
LOAM_TAKES(_ZnamSt11align_val_t, (std::size_t n, std::size_t a), (n, a))
LOAM_TAKES(_ZnwmSt11align_val_tRKSt9nothrow_t, (std::size_t n, std::size_t a, const void* t), (n, a, t))
LOAM_TAKES(_ZnamSt11align_val_tRKSt9nothrow_t, (std::size_t n, std::size_t a, const void* t), (n, a, t))
// operator delete, delete[]: plain, sized, aligned, sized aligned
LOAM_GIVES(_ZdlPv, (void* p), (p))
LOAM_GIVES(_ZdaPv, (void* p), (p))
LOAM_GIVES(_ZdlPvm, (void* p, std::size_t n), (p, n))
LOAM_GIVES(_ZdaPvm, (void* p, std::size_t n), (p, n))
LOAM_GIVES(_ZdlPvSt11align_val_t, (void* p, std::size_t a), (p, a))
LOAM_GIVES(_ZdaPvSt11align_val_t, (void* p, std::size_t a), (p, a))
LOAM_GIVES(_ZdlPvmSt11align_val_t, (void* p, std::size_t n, std::size_t a), (p, n, a))
LOAM_GIVES(_ZdaPvmSt11align_val_t, (void* p, std::size_t n, std::size_t a), (p, n, a))
