// C++'s operators, handed on like the functions of forward.hpp.
//   Where the allocator has none of its own, the C++ library's come next, and those ask malloc and free: then the plain ones
//   go straight to these.  An allocator's own ones do not call malloc, and are handed on.
//   Looked up at the first call: a program in C has none.  What throws is asked only once its form that does not has
//   failed, outside of what is unseen, so that an exception leaves nothing behind.
#pragma once

#include <cstddef>
#include <new>

#include "forward.hpp"

namespace loam::interposer {

template <typename Function>
Function* behind(Function*& known, const char* name) noexcept {
  if (known == nullptr) {
    first::started();
    const Inside unseen;
    look_up(known, name);
  }
  return known;
}

enum class Operators : unsigned char { unknown, asking_malloc, own };
inline Operators operators;

// Whose they are: the allocator's, if they lie in the file that its malloc lies in.
[[gnu::noinline]] inline bool find_whose() noexcept {
  static void* (*plain_new)(std::size_t);
  void* const function = reinterpret_cast<void*>(behind(plain_new, "_Znwm"));
  const Inside unseen;
  const char *const of_new = file_of(function), *const of_malloc = file_of(reinterpret_cast<void*>(next.malloc));
  const bool known = of_new != nullptr && of_malloc != nullptr;
  operators = known && of_new != of_malloc ? Operators::asking_malloc : Operators::own;
  return operators == Operators::asking_malloc;
}

inline bool asking_malloc() noexcept {
  if (operators == Operators::asking_malloc) [[likely]]
    return true;
  return operators == Operators::unknown && find_whose();
}

// A block for the plain operators; nullptr where these are the allocator's own, or there is no memory.
[[gnu::always_inline]] inline void* straight(std::size_t bytes) noexcept {
  if (!asking_malloc()) return nullptr;
  const std::size_t least = bytes == 0 ? 1 : bytes;
  if (passes(bytes)) return next.malloc(least);
  return looked_at(next.malloc(least), bytes);
}

// libstdc++'s own std::nothrow is not linked.
inline constexpr std::nothrow_t kNoThrow{};

}  // namespace loam::interposer

#define LOAM_NEW(symbol, parameters, arguments)    \
  LOAM_EXPORT void* symbol parameters {            \
    static void*(*known)parameters;                \
    void* block;                                   \
    {                                              \
      auto* function = li::behind(known, #symbol); \
      const li::Inside unseen;                     \
      block = function arguments;                  \
    }                                              \
    return li::seen(block, bytes);                 \
  }
// libstdc++'s form that does not throw calls the one that does: that call goes straight on.
#define LOAM_THROWING(declared, symbol, nothrow, parameters, arguments, tagged) \
  declared parameters {                                                         \
    static void*(*known)parameters;                                             \
    li::entered(__builtin_return_address(0));                                   \
    auto* function = li::behind(known, #symbol);                                \
    if (li::here.depth > 0) return function arguments;                          \
    void* block = nothrow tagged;                                               \
    return block != nullptr ? block : function arguments;                       \
  }
#define LOAM_DELETE(declared, symbol, parameters, arguments) \
  declared parameters {                                      \
    static void(*known) parameters;                          \
    if (li::is_early(block)) return;                         \
    auto* function = li::behind(known, #symbol);             \
    li::freeing(block);                                      \
    const li::Inside unseen;                                 \
    function arguments;                                      \
  }
#define LOAM_PLAIN_NEW(symbol, nothrow)                                                                           \
  LOAM_THROWING([[gnu::noinline]] static void* symbol##_handed_on, symbol, nothrow, (std::size_t bytes), (bytes), \
                (bytes, li::kNoThrow))                                                                            \
  LOAM_EXPORT void* symbol(std::size_t bytes) {                                                                   \
    void* block = li::straight(bytes);                                                                            \
    if (block != nullptr) return block;                                                                           \
    li::entered(__builtin_return_address(0));                                                                     \
    return symbol##_handed_on(bytes);                                                                             \
  }
#define LOAM_PLAIN_DELETE(symbol, parameters, arguments)                                       \
  LOAM_DELETE([[gnu::noinline]] static void symbol##_handed_on, symbol, parameters, arguments) \
  LOAM_EXPORT void symbol parameters {                                                         \
    if (!li::asking_malloc()) return symbol##_handed_on arguments;                             \
    li::release(block);                                                                        \
  }

LOAM_NEW(_ZnwmRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t& tag), (bytes, tag))
LOAM_NEW(_ZnamRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t& tag), (bytes, tag))
LOAM_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag),
         (bytes, alignment, tag))
LOAM_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag),
         (bytes, alignment, tag))
LOAM_PLAIN_NEW(_Znwm, _ZnwmRKSt9nothrow_t)
LOAM_PLAIN_NEW(_Znam, _ZnamRKSt9nothrow_t)
LOAM_THROWING(LOAM_EXPORT void* _ZnwmSt11align_val_t, _ZnwmSt11align_val_t, _ZnwmSt11align_val_tRKSt9nothrow_t,
              (std::size_t bytes, std::align_val_t alignment), (bytes, alignment), (bytes, alignment, li::kNoThrow))
LOAM_THROWING(LOAM_EXPORT void* _ZnamSt11align_val_t, _ZnamSt11align_val_t, _ZnamSt11align_val_tRKSt9nothrow_t,
              (std::size_t bytes, std::align_val_t alignment), (bytes, alignment), (bytes, alignment, li::kNoThrow))
LOAM_PLAIN_DELETE(_ZdlPv, (void* block), (block))
LOAM_PLAIN_DELETE(_ZdaPv, (void* block), (block))
LOAM_PLAIN_DELETE(_ZdlPvm, (void* block, std::size_t bytes), (block, bytes))
LOAM_PLAIN_DELETE(_ZdaPvm, (void* block, std::size_t bytes), (block, bytes))
#define LOAM_EXPORTED_DELETE(symbol, parameters, arguments) \
  LOAM_DELETE(LOAM_EXPORT void symbol, symbol, parameters, arguments)
LOAM_EXPORTED_DELETE(_ZdlPvRKSt9nothrow_t, (void* block, const std::nothrow_t& tag), (block, tag))
LOAM_EXPORTED_DELETE(_ZdaPvRKSt9nothrow_t, (void* block, const std::nothrow_t& tag), (block, tag))
LOAM_EXPORTED_DELETE(_ZdlPvSt11align_val_t, (void* block, std::align_val_t alignment), (block, alignment))
LOAM_EXPORTED_DELETE(_ZdaPvSt11align_val_t, (void* block, std::align_val_t alignment), (block, alignment))
LOAM_EXPORTED_DELETE(_ZdlPvmSt11align_val_t, (void* block, std::size_t bytes, std::align_val_t alignment),
                     (block, bytes, alignment))
LOAM_EXPORTED_DELETE(_ZdaPvmSt11align_val_t, (void* block, std::size_t bytes, std::align_val_t alignment),
                     (block, bytes, alignment))

#undef LOAM_NEW
#undef LOAM_THROWING
#undef LOAM_DELETE
#undef LOAM_PLAIN_NEW
#undef LOAM_PLAIN_DELETE
#undef LOAM_EXPORTED_DELETE
