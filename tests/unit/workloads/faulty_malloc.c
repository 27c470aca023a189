// A malloc to preload that has a fault in every 100th call. LOAM_FAULT says which:
//   twice       the block that was handed out last is handed out again
//   misaligned  the block begins 8 bytes behind an aligned place
//   null        there is no block
//   slow        the call sleeps for a millisecond
//   (none)      no fault: memory is never used again
// Blocks follow one another in one mapping and free() does nothing, so that a fault damages blocks and nothing else.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { kUnit = 16, kEvery = 100 };
static const size_t kArenaBytes = (size_t)1 << 34;

static enum { kNone, kTwice, kMisaligned, kNull, kSlow } fault = kNone;
static _Atomic(char*) arena;
static atomic_size_t used, calls;
static _Atomic(char*) last;

__attribute__((constructor)) static void choose(void) {
  const char* const name = getenv("LOAM_FAULT");
  if (name == NULL) return;
  fault = strcmp(name, "twice") == 0        ? kTwice
          : strcmp(name, "misaligned") == 0 ? kMisaligned
          : strcmp(name, "null") == 0       ? kNull
          : strcmp(name, "slow") == 0       ? kSlow
                                            : kNone;
}

// The first call comes long before there are threads. One unit before each block holds its size, one is behind it.
static char* take(size_t bytes) {
  if (arena == NULL) {
    void* const start =
        mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) abort();
    arena = start;
  }
  const size_t room = (bytes + 3 * kUnit - 1) / kUnit * kUnit;
  const size_t at = atomic_fetch_add(&used, room);
  if (at + room > kArenaBytes) abort();
  char* const block = arena + at + kUnit;
  memcpy(block - kUnit, &bytes, sizeof bytes);
  return block;
}

void* malloc(size_t bytes) {
  if (fault != kNone && (atomic_fetch_add(&calls, 1) + 1) % kEvery == 0) {
    if (fault == kTwice) return last;
    if (fault == kMisaligned) return take(bytes) + sizeof(void*);
    if (fault == kNull) return NULL;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return last = take(bytes);
}

void free(void* block) { (void)block; }

void* calloc(size_t count, size_t bytes) { return take(count * bytes); }

void* realloc(void* block, size_t bytes) {
  char* const moved = take(bytes);
  if (block != NULL) {
    size_t before;
    memcpy(&before, (char*)block - kUnit, sizeof before);
    memcpy(moved, block, before < bytes ? before : bytes);
  }
  return moved;
}
