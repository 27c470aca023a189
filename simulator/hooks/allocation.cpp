// malloc, operator new and the like, when instrumented code calls them (the linker's --wrap).
//   A native allocator, without instrumentation, only decides where blocks lie. Each call costs a fixed number of
//   cycles, its locks never contend, and its own memory is not in the caches.
//   An instrumented allocator is simulated like the program, so nothing is charged here.
#include "simulator/engine/access.hpp"
#include "simulator/engine/allocator.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/settings.hpp"
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
  now.core->clock += settings.free_cycles;
  return true;
}

class Call {
 public:
  explicit Call(std::uint64_t cycles) : native_(allocator_is_native() && simulated()), cycles_(cycles) {
    if (!native_) return;
    spend(0);  // the others' turn first, if it is due
    ++now.thread->native;
  }
  ~Call() {
    if (!native_) return;
    --now.thread->native;
    now.core->clock += cycles_;
  }
  // A block that the call gave out; a transaction that aborts gives it back.
  void* taken(void* block) const {
    if (checker != nullptr && native_ && block != nullptr) checker->memory().forget(as_number(block), bytes_of(block));
    if (native_ && block != nullptr && in_transaction()) now.thread->transaction->taken.push_back({give_back, block});
    return block;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const bool native_;
  const std::uint64_t cycles_;
};

}  // namespace
}  // namespace loam::simulator

using loam::simulator::allocator_is_native;
using loam::simulator::Call;
using loam::simulator::given_later;
using loam::simulator::leave_transaction;
using loam::simulator::of_process;
using loam::simulator::settings;

#define LOAM_ALLOCATION(name, parameters, arguments, cycles) \
  LOAM_EXPORTED void* __wrap_##name parameters {             \
    static void*(*found)parameters = nullptr;                \
    const Call call(cycles);                                 \
    return call.taken(of_process(#name, found) arguments);   \
  }
#define LOAM_TAKES(name, parameters, arguments) LOAM_ALLOCATION(name, parameters, arguments, settings.malloc_cycles)
#define LOAM_GIVES(name, parameters, arguments) \
  LOAM_EXPORTED void __wrap_##name parameters { \
    static void(*found) parameters = nullptr;   \
    if (given_later(p)) return;                 \
    const Call call(settings.free_cycles);      \
    of_process(#name, found) arguments;         \
  }

LOAM_TAKES(malloc, (std::size_t n), (n))
// A zeroed block is written, 16 bytes a cycle.
LOAM_ALLOCATION(calloc, (std::size_t n, std::size_t m), (n, m), settings.malloc_cycles + n * m / 16)
LOAM_TAKES(aligned_alloc, (std::size_t a, std::size_t n), (a, n))
LOAM_TAKES(memalign, (std::size_t a, std::size_t n), (a, n))
LOAM_EXPORTED int __wrap_posix_memalign(void** p, std::size_t a, std::size_t n) {
  static int (*found)(void**, std::size_t, std::size_t) = nullptr;
  const Call call(settings.malloc_cycles);
  const int failure = of_process("posix_memalign", found)(p, a, n);
  if (failure == 0) call.taken(*p);
  return failure;
}
// What it moves a rollback could not move back: a transaction aborts first.
LOAM_EXPORTED void* __wrap_realloc(void* p, std::size_t n) {
  static void* (*found)(void*, std::size_t) = nullptr;
  if (allocator_is_native()) leave_transaction();
  const Call call(settings.malloc_cycles);
  return of_process("realloc", found)(p, n);
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
