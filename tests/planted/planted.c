// planted: an allocator with a known fault. Forwards to glibc and adds work, so that the lab's verdict on it can be
// checked against an independent calibration (tests/lab/measure/test_planted.py).
//   Work    A chain of multiplications that starts from a block's address and ends in it: nothing that uses the block
//           can begin earlier. Work beside the address would vanish in the out-of-order core.
//   Where   In malloc, on the address it returns. The 10 % library has it in free, on the address that the thread cache
//           hands out next: its malloc can then be a single jump, and a call in its place alone costs more than 10 %.
//   Amount  A number of multiplications chosen at compile time: a count read at run time would add a load and a branch.
//   Not     a model of any real allocator.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#if !defined(LOAM_PLANTED_MALLOC_STEPS) || !defined(LOAM_PLANTED_FREE_STEPS)
#error "define LOAM_PLANTED_MALLOC_STEPS and LOAM_PLANTED_FREE_STEPS: multiplications per call"
#endif

// glibc's own entry points under the names that no preloaded library takes from it.
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

// One step; the empty assembly keeps the compiler from folding the chain.
static inline __attribute__((always_inline)) uintptr_t step(uintptr_t x) {
  x *= 0x9E3779B97F4A7C15u;
  __asm__("" : "+r"(x));
  return x;
}

// Returns the address unchanged, `steps` dependent multiplications later: the processor does not know that the product
// and a mask of 0 make 0 before the product is there, and the compiler does not know the mask.
static inline __attribute__((always_inline)) void* delayed(void* block, int steps) {
  if (steps == 0) return block;
  uintptr_t x = (uintptr_t)block, mask = 0;
#pragma GCC unroll 64
  for (int done = 0; done != steps; ++done) x = step(x);
  __asm__("" : "+r"(mask));
  return (void*)((uintptr_t)block ^ (x & mask));
}

#ifdef LOAM_PLANTED_PERCENT
// Asks tests/planted/workload.c for a slow-down of exactly so much; this library itself adds none.
const int loam_planted_percent = LOAM_PLANTED_PERCENT;
#endif

static inline void* returned(void* block) { return delayed(block, LOAM_PLANTED_MALLOC_STEPS); }

void* malloc(size_t bytes) { return returned(__libc_malloc(bytes)); }
void free(void* block) { __libc_free(delayed(block, LOAM_PLANTED_FREE_STEPS)); }
void* calloc(size_t count, size_t bytes) { return returned(__libc_calloc(count, bytes)); }
void* realloc(void* block, size_t bytes) { return returned(__libc_realloc(block, bytes)); }
void* memalign(size_t alignment, size_t bytes) { return returned(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void* valloc(size_t bytes) { return memalign((size_t)sysconf(_SC_PAGESIZE), bytes); }

int posix_memalign(void** into, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  const int saved = errno;
  void* block = memalign(alignment, bytes);
  errno = saved;
  if (block == NULL) return ENOMEM;
  *into = block;
  return 0;
}

// glibc has no second name for this one. The look-up succeeds, so it allocates nothing.
size_t malloc_usable_size(void* block) {
  static size_t (*next)(void*);
  size_t (*function)(void*) = __atomic_load_n(&next, __ATOMIC_RELAXED);  // relaxed: every thread finds the same value
  if (function == NULL) {
    function = (size_t (*)(void*))dlsym(RTLD_NEXT, "malloc_usable_size");
    __atomic_store_n(&next, function, __ATOMIC_RELAXED);
  }
  return function(block);
}
