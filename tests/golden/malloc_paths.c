// Calls of malloc and free for callgrind to count, of whatever allocator serves this process.
//   Each dump is named "SIZE;WHAT;CALLS". malloc: 1000 blocks, one after the other; free: the same, the oldest first;
//   pair: one block at a time. Size 0 are the same loops around a function of one instruction: what they cost
//   themselves. Everything has run before, so that no page is new.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <valgrind/callgrind.h>

enum { kBlocks = 1000, kWarmRounds = 24 };

typedef void* (*Allocate)(size_t);
typedef void (*Release)(void*);

// Returns whatever is in the register of results: one instruction.
void* only_returns(size_t);
__asm__(".text\n.globl only_returns\n.type only_returns, @function\nonly_returns: ret\n");

static void* blocks[kBlocks];

static void allocate_all(Allocate allocate, size_t size) {
  for (int i = 0; i < kBlocks; ++i) blocks[i] = allocate(size);
}
static void release_all(Release release) {
  for (int i = 0; i < kBlocks; ++i) release(blocks[i]);
}
static void pairs(Allocate allocate, Release release, size_t size) {
  for (int i = 0; i < kBlocks; ++i) release(allocate(size));
}

static void dump(size_t size, const char* what) {
  char name[64];
  snprintf(name, sizeof name, "%zu;%s;%d", size, what, kBlocks);
  CALLGRIND_DUMP_STATS_AT(name);
}

static void count(Allocate allocate, Release release, size_t size, int as_size) {
  CALLGRIND_START_INSTRUMENTATION;
  for (int round = 0; round < kWarmRounds; ++round) {
    allocate_all(allocate, size);
    release_all(release);
    pairs(allocate, release, size);
  }
  CALLGRIND_ZERO_STATS;
  allocate_all(allocate, size);
  dump(as_size, "malloc");
  release_all(release);
  dump(as_size, "free");
  pairs(allocate, release, size);
  dump(as_size, "pair");
  CALLGRIND_STOP_INSTRUMENTATION;
}

int main(int argc, char** argv) {
  // Through variables: the compiler would leave out a block that nobody reads.
  Allocate volatile allocate = malloc;
  Release volatile release = free;
  count(only_returns, (Release)(uintptr_t)only_returns, 0, 0);
  for (int i = 1; i < argc; ++i) count(allocate, release, (size_t)atol(argv[i]), atoi(argv[i]));
  return 0;
}
