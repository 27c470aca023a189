// c_interface: malloc and its family, as C17, C23, POSIX and glibc 2.36 say. docs/internals/malloc.md has the rules.
#include "runtime/malloc/entry.hpp"
#include "runtime/malloc/report.hpp"
#include "runtime/platform/compiler.hpp"

#include <malloc.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <climits>
#include <cstdio>
#include <cstdlib>

namespace {

using loam::malloc::block_for;
using loam::malloc::Heap;
using loam::malloc::out_of_memory;

constexpr std::size_t kBytesMax = PTRDIFF_MAX;

#ifdef __aarch64__
// What malloc does where no list has a block. Apart from it: a caller's address that lives through a call would cost every
// malloc the saving of three registers, also one that a list serves. On x86-64 it costs nothing.
[[gnu::noinline]] void* unlisted_block(std::size_t bytes, const void* caller) noexcept {
  void* const block = Heap::allocate_unlisted(bytes);
  return block != nullptr ? block : block_for(caller);
}
#endif

// Inlined, as reallocate() is: the caller is the entry point's.
[[gnu::always_inline]] inline void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  void* const block = Heap::allocate_aligned(alignment, bytes);
  return block != nullptr ? block : block_for(LOAM_CALLER);
}

void* invalid_argument() noexcept {
  errno = EINVAL;
  return nullptr;
}

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(getpagesize()); }

[[gnu::always_inline]] inline void* reallocate(void* block, std::size_t bytes) noexcept {
  void* moved;
  if (block == nullptr) {
    moved = Heap::allocate(bytes);
  } else if (bytes == 0) {  // as glibc; C23 leaves it open
    Heap::deallocate(block);
    return nullptr;
  } else {
    moved = Heap::reallocate(block, bytes);
  }
  if (moved == nullptr) [[unlikely]]
    return block_for(LOAM_CALLER);
  return moved;
}

// In bytes: arena = uordblks + fordblks. Large blocks are counted separately, in hblks and hblkhd. A whole slab counts
// as in use, because its free blocks cannot serve other classes.
struct mallinfo2 information() noexcept {
  const auto now = Heap::statistics();
  struct mallinfo2 info{};
  info.hblks = now.large_blocks;
  info.hblkhd = now.large_bytes;
  info.uordblks = now.slab_bytes;
  info.fordblks = now.dirty_bytes;
  info.arena = info.uordblks + info.fordblks;
  info.keepcost = now.dirty_bytes;  // what malloc_trim() can give back
  return info;
}

int to_int(std::size_t value) noexcept { return static_cast<int>(std::min<std::size_t>(value, INT_MAX)); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// ---- blocks ----

[[LOAM_MALLOC_ENTRY]] void* malloc(std::size_t bytes) noexcept {
#ifdef __aarch64__
  void* const block = Heap::allocate_listed(bytes);
  if (block == nullptr) [[unlikely]]
    return unlisted_block(bytes, LOAM_CALLER);
#else
  void* const block = Heap::allocate(bytes);
  if (block == nullptr) [[unlikely]]
    return block_for(LOAM_CALLER);
#endif
  return block;
}

[[LOAM_FREE_ENTRY]] void free(void* block) noexcept { Heap::deallocate(block); }

void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) [[unlikely]]
    return out_of_memory();
  void* const block = Heap::allocate_zeroed(bytes);
  if (block == nullptr) [[unlikely]]
    return loam::malloc::zeroed_block_for(LOAM_CALLER);
  return block;
}

void* realloc(void* block, std::size_t bytes) noexcept { return reallocate(block, bytes); }

void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) [[unlikely]]
    return out_of_memory();
  return reallocate(block, bytes);
}

void cfree(void* block) noexcept { Heap::deallocate(block); }  // for binaries from before glibc 2.26

// C23: the size (and alignment) with which the block was requested.
// A block that was reallocated in place may be of a longer class than its size asks for.
void free_sized(void* block, std::size_t bytes) noexcept { loam::malloc::deallocate_aligned_sized(block, 1, bytes); }

void free_aligned_sized(void* block, std::size_t alignment, std::size_t bytes) noexcept {
  loam::malloc::deallocate_aligned_sized(block, alignment, bytes);
}

// ---- aligned blocks ----

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (!std::has_single_bit(alignment)) [[unlikely]]
    return invalid_argument();
  return allocate_aligned(alignment, bytes);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  if (!std::has_single_bit(alignment) || alignment < sizeof(void*)) [[unlikely]]
    return EINVAL;
  void* block = Heap::allocate_aligned(alignment, bytes);
  if (block == nullptr) [[unlikely]]
    block = loam::malloc::serve_caller(LOAM_CALLER);
  if (block == nullptr) [[unlikely]]
    return ENOMEM;
  *out = block;
  return 0;
}

// An alignment that is no power of two is rounded up to one, as in glibc.
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment > std::size_t{1} << (sizeof alignment * CHAR_BIT - 1)) [[unlikely]]
    return invalid_argument();
  return allocate_aligned(std::bit_ceil(alignment), bytes);
}

void* valloc(std::size_t bytes) noexcept { return allocate_aligned(page_bytes(), bytes); }

// Whole pages, at least one.
void* pvalloc(std::size_t bytes) noexcept {
  const std::size_t page = page_bytes();
  if (bytes > kBytesMax - page) [[unlikely]]
    return out_of_memory();
  return allocate_aligned(page, loam::base::round_up(std::max<std::size_t>(bytes, 1), page));
}

// ---- about the heap ----

std::size_t malloc_usable_size(void* block) noexcept { return block != nullptr ? Heap::usable_bytes(block) : 0; }

int malloc_trim(std::size_t) noexcept { return Heap::trim() ? 1 : 0; }  // nothing is kept on top: no pad

struct mallinfo2 mallinfo2() noexcept { return information(); }

// As mallinfo2(); what an int does not hold is INT_MAX.
struct mallinfo mallinfo() noexcept {
  const struct mallinfo2 wide = information();
  struct mallinfo info{};
  info.arena = to_int(wide.arena);
  info.hblks = to_int(wide.hblks);
  info.hblkhd = to_int(wide.hblkhd);
  info.uordblks = to_int(wide.uordblks);
  info.fordblks = to_int(wide.fordblks);
  info.keepcost = to_int(wide.keepcost);
  return info;
}

// glibc's parameters have no meaning for this heap: they are accepted within the limits of mallopt(3), and change
// nothing.
// returns 1; 0 for a parameter or value that does not exist
int mallopt(int parameter, int value) noexcept {
  constexpr int kFastMax = 80 * sizeof(std::size_t) / 4;
  switch (parameter) {
    case M_MXFAST:
      return value >= 0 && value <= kFastMax ? 1 : 0;
    case M_NLBLKS:
    case M_GRAIN:
    case M_KEEP:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
      return 1;
    default:
      return 0;
  }
}

void malloc_stats() noexcept { loam::malloc::write_summary(STDERR_FILENO); }

// returns 0; EINVAL for options other than 0; -1 if the stream does not take it
int malloc_info(int options, std::FILE* stream) noexcept {
  if (options != 0) return EINVAL;
  char buffer[loam::malloc::kReportBytes];
  const auto text = loam::malloc::xml(buffer);
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() ? 0 : -1;
}

// ---- glibc's names for the same ----
// Libraries that wrap malloc call these. Without them, our free() would get blocks from glibc's heap.

#define LOAM_ALSO_NAMED(name, function) decltype(function) name __attribute__((LOAM_ALIAS_OF(#function, function)))
LOAM_ALSO_NAMED(__libc_malloc, malloc);
LOAM_ALSO_NAMED(__libc_free, free);
LOAM_ALSO_NAMED(__libc_calloc, calloc);
LOAM_ALSO_NAMED(__libc_realloc, realloc);
LOAM_ALSO_NAMED(__libc_memalign, memalign);
LOAM_ALSO_NAMED(__libc_valloc, valloc);
LOAM_ALSO_NAMED(__libc_pvalloc, pvalloc);
#undef LOAM_ALSO_NAMED

// Under names that no library in front of this one can take.
#define LOAM_OWN(name, function) \
  decltype(function) name __attribute__((LOAM_ALIAS_OF(#function, function), visibility("hidden")))
LOAM_OWN(loam_own_malloc, malloc);
LOAM_OWN(loam_own_free, free);
#undef LOAM_OWN

}  // extern "C"
#pragma GCC visibility pop

namespace loam::malloc {

bool serves_process() noexcept {
  // As the process resolves them.
  return reinterpret_cast<const void*>(&::malloc) == reinterpret_cast<const void*>(&loam_own_malloc) &&
         reinterpret_cast<const void*>(&::free) == reinterpret_cast<const void*>(&loam_own_free);
}

}  // namespace loam::malloc
