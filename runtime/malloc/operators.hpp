// operators: the twenty forms of operator new and delete, over the blocks of one allocator.
//   Use              Included once by a file that declares `struct Blocks` in the unnamed namespace before, with
//                    allocate, allocate_aligned, deallocate, deallocate_sized and deallocate_aligned_sized, and with
//                    kName for messages; optional: serve_caller(caller), asked for a block after an allocation has
//                    returned none (entry.hpp). LOAM_MALLOC_ENTRY and LOAM_FREE_ENTRY are attributes of the hot forms.
//   Replaced forms   A program may replace some forms, most often plain new and delete. The standard says which form
//                    calls which: new[] and nothrow new call plain new; sized and array delete call plain delete.
//                    Otherwise a block of the program's own pool would be freed to this allocator. So a form calls the
//                    other one if that one is replaced; if not, it calls the allocator directly.
//   No C++ library   A C program has none. The functions that are needed are weak and may be missing. Then no
//                    new-handler can be set, and no exception can be caught (docs/adr/0012).
#pragma once

#include "runtime/malloc/message.hpp"

#include "runtime/base/format.hpp"
#include "runtime/platform/machine.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <bit>
#include <cstdlib>
#include <new>

namespace std {
LOAM_MAY_BE_MISSING new_handler get_new_handler() noexcept;
[[gnu::noreturn]] LOAM_MAY_BE_MISSING void __throw_bad_alloc();
}  // namespace std

// The forms that other forms call, under names that a program cannot replace.
#define LOAM_OWN(symbol) gnu::alias(symbol), gnu::visibility("hidden")
#define LOAM_OWN_NEW(symbol) [[LOAM_OWN(symbol), gnu::malloc, gnu::alloc_size(1)]] void*
#define LOAM_OWN_DELETE(symbol) [[LOAM_OWN(symbol)]] void
extern "C" {
LOAM_OWN_NEW("_Znwm") loam_own_new(std::size_t);
LOAM_OWN_NEW("_Znam") loam_own_new_array(std::size_t);
LOAM_OWN_NEW("_ZnwmSt11align_val_t") loam_own_new_aligned(std::size_t, std::align_val_t);
LOAM_OWN_NEW("_ZnamSt11align_val_t") loam_own_new_array_aligned(std::size_t, std::align_val_t);
LOAM_OWN_DELETE("_ZdlPv") loam_own_delete(void*) noexcept;
LOAM_OWN_DELETE("_ZdaPv") loam_own_delete_array(void*) noexcept;
LOAM_OWN_DELETE("_ZdlPvSt11align_val_t") loam_own_delete_aligned(void*, std::align_val_t) noexcept;
LOAM_OWN_DELETE("_ZdaPvSt11align_val_t") loam_own_delete_array_aligned(void*, std::align_val_t) noexcept;
}
#undef LOAM_OWN
#undef LOAM_OWN_NEW
#undef LOAM_OWN_DELETE

namespace {

using New = void*(std::size_t);
using NewAligned = void*(std::size_t, std::align_val_t);
using Delete = void(void*);
using DeleteAligned = void(void*, std::align_val_t);

// Whether calls of `visible` in this process reach `own`, so the program has not replaced it.
template <class Function, class Own>
bool is_ours(Function* visible, Own* own) noexcept {
  return reinterpret_cast<const void*>(visible) == reinterpret_cast<const void*>(own);
}

bool new_is_ours() noexcept { return is_ours<New>(&::operator new, &loam_own_new); }
bool new_array_is_ours() noexcept { return is_ours<New>(&::operator new[], &loam_own_new_array) && new_is_ours(); }
bool new_aligned_is_ours() noexcept { return is_ours<NewAligned>(&::operator new, &loam_own_new_aligned); }
bool new_array_aligned_is_ours() noexcept {
  return is_ours<NewAligned>(&::operator new[], &loam_own_new_array_aligned) && new_aligned_is_ours();
}
bool delete_is_ours() noexcept { return is_ours<Delete>(&::operator delete, &loam_own_delete); }
bool delete_array_is_ours() noexcept {
  return is_ours<Delete>(&::operator delete[], &loam_own_delete_array) && delete_is_ours();
}
bool delete_aligned_is_ours() noexcept { return is_ours<DeleteAligned>(&::operator delete, &loam_own_delete_aligned); }
bool delete_array_aligned_is_ours() noexcept {
  return is_ours<DeleteAligned>(&::operator delete[], &loam_own_delete_array_aligned) && delete_aligned_is_ours();
}

[[noreturn]] void throw_bad_alloc(std::size_t bytes) {
  if (&std::__throw_bad_alloc != nullptr) std::__throw_bad_alloc();
  char buffer[160];
  loam::malloc::say(STDERR_FILENO,
                    loam::base::format_to(buffer,
                                          "{}: operator new: the system gives no {} bytes, and the process has no C++ "
                                          "library to throw std::bad_alloc\n",
                                          Blocks::kName, bytes));
  std::abort();
}

// caller: LOAM_RETURN in the operator itself
template <class Of = Blocks>  // so that it may have no such function
void* serve_caller(const void* caller) noexcept {
  if constexpr (requires { Of::serve_caller(caller); }) return Of::serve_caller(caller);
  return nullptr;
}
#define LOAM_RETURN __builtin_extract_return_addr(__builtin_return_address(0))

// The loop that the standard asks for, after an allocation has failed: the handler frees something, throws or ends the
// program. allocate() tries once more.
template <class Allocate>
[[gnu::cold, gnu::noinline]] void* after_handler(std::size_t bytes, const void* caller, Allocate allocate) {
  for (;;) {
    if (void* const block = serve_caller(caller)) return block;
    const std::new_handler handler = &std::get_new_handler != nullptr ? std::get_new_handler() : nullptr;
    if (handler == nullptr) throw_bad_alloc(bytes);
    handler();
    if (void* const block = allocate()) return block;
  }
}

// A nothrow form that cannot call the allocator directly: the allocation failed, or the program has replaced plain new.
// It calls the nothrow form of the C++ library, which calls plain new and catches its exceptions; this library has no
// exceptions.   name: of the symbol   returns nullptr if there is no C++ library, and so no new-handler
template <class... Arguments>
[[gnu::cold, gnu::noinline]] void* new_nothrow_slow(const std::nothrow_t& tag, const void* caller, const char* name,
                                                    Arguments... arguments) noexcept {
  if (void* const block = serve_caller(caller)) return block;
  using Form = void*(Arguments..., const std::nothrow_t&);
  auto* const next = reinterpret_cast<Form*>(dlsym(RTLD_NEXT, name));
  return next != nullptr ? next(arguments..., tag) : nullptr;
}

bool is_alignment(std::align_val_t alignment) noexcept {
  return std::has_single_bit(static_cast<std::size_t>(alignment));
}

// nullptr for an invalid alignment: this is undefined behaviour, and the C++ library refuses it, too.
void* allocate_aligned(std::size_t bytes, std::align_val_t alignment) noexcept {
  return is_alignment(alignment) ? Blocks::allocate_aligned(static_cast<std::size_t>(alignment), bytes) : nullptr;
}

}  // namespace

// ---- new ----

[[LOAM_MALLOC_ENTRY]] void* operator new(std::size_t bytes) {
  void* const block = Blocks::allocate(bytes);
  if (block == nullptr) [[unlikely]]
    return after_handler(bytes, LOAM_RETURN, [=] { return Blocks::allocate(bytes); });
  return block;
}

void* operator new[](std::size_t bytes) { return ::operator new(bytes); }

void* operator new(std::size_t bytes, const std::nothrow_t& tag) noexcept {
  void* const block = new_is_ours() ? Blocks::allocate(bytes) : nullptr;
  return block != nullptr ? block : new_nothrow_slow(tag, LOAM_RETURN, "_ZnwmRKSt9nothrow_t", bytes);
}

void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
  void* const block = new_array_is_ours() ? Blocks::allocate(bytes) : nullptr;
  return block != nullptr ? block : new_nothrow_slow(tag, LOAM_RETURN, "_ZnamRKSt9nothrow_t", bytes);
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* const block = allocate_aligned(bytes, alignment);
  if (block != nullptr) [[likely]]
    return block;
  if (!is_alignment(alignment)) throw_bad_alloc(bytes);
  return after_handler(bytes, LOAM_RETURN, [=] { return allocate_aligned(bytes, alignment); });
}

void* operator new[](std::size_t bytes, std::align_val_t alignment) { return ::operator new(bytes, alignment); }

void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
  void* const block = new_aligned_is_ours() ? allocate_aligned(bytes, alignment) : nullptr;
  return block != nullptr ? block
                          : new_nothrow_slow(tag, LOAM_RETURN, "_ZnwmSt11align_val_tRKSt9nothrow_t", bytes, alignment);
}

void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
  void* const block = new_array_aligned_is_ours() ? allocate_aligned(bytes, alignment) : nullptr;
  return block != nullptr ? block
                          : new_nothrow_slow(tag, LOAM_RETURN, "_ZnamSt11align_val_tRKSt9nothrow_t", bytes, alignment);
}

// ---- delete ----

[[LOAM_FREE_ENTRY]] void operator delete(void* block) noexcept { Blocks::deallocate(block); }

void operator delete[](void* block) noexcept { ::operator delete(block); }

void operator delete(void* block, const std::nothrow_t&) noexcept { ::operator delete(block); }

void operator delete[](void* block, const std::nothrow_t&) noexcept { ::operator delete[](block); }

[[LOAM_FREE_ENTRY]] void operator delete(void* block, std::size_t bytes) noexcept {
  if (!delete_is_ours()) [[unlikely]]
    return ::operator delete(block);
  Blocks::deallocate_sized(block, bytes);
}

void operator delete[](void* block, std::size_t bytes) noexcept {
  if (!delete_array_is_ours()) [[unlikely]]
    return ::operator delete[](block);
  Blocks::deallocate_sized(block, bytes);
}

void operator delete(void* block, std::align_val_t) noexcept { Blocks::deallocate(block); }

void operator delete[](void* block, std::align_val_t alignment) noexcept { ::operator delete(block, alignment); }

void operator delete(void* block, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ::operator delete(block, alignment);
}

void operator delete[](void* block, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ::operator delete[](block, alignment);
}

void operator delete(void* block, std::size_t bytes, std::align_val_t alignment) noexcept {
  if (!delete_aligned_is_ours()) [[unlikely]]
    return ::operator delete(block, alignment);
  Blocks::deallocate_aligned_sized(block, static_cast<std::size_t>(alignment), bytes);
}

void operator delete[](void* block, std::size_t bytes, std::align_val_t alignment) noexcept {
  if (!delete_array_aligned_is_ours()) [[unlikely]]
    return ::operator delete[](block, alignment);
  Blocks::deallocate_aligned_sized(block, static_cast<std::size_t>(alignment), bytes);
}
