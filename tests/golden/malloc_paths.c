// Calls of malloc and free for callgrind to count, of whatever allocator serves this process.
//   Each dump is named "SIZE;WHAT;CALLS". malloc: 1000 blocks, one after the other; free: the same, the oldest first;
//   pair: one block at a time; remote: as free, by another thread than the one that allocated them. Size 0 are the same
//   loops around a function of one instruction: what they cost themselves. Everything has run before, so that no page
//   is new.
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

static void dump(int size, const char* what) {
  char name[64];
  snprintf(name, sizeof name, "%d;%s;%d", size, what, kBlocks);
  CALLGRIND_DUMP_STATS_AT(name);
}

// The other thread, and what it is to do while this one waits. No release: to end.
static struct {
  pthread_t thread;
  sem_t asked, done;
  Release release;
  int dump_as;  // -1: not at all
} other;

static void* release_when_asked(void* unused) {
  while (sem_wait(&other.asked) == 0 && other.release != NULL) {
    // Callgrind counts both threads: the asking one has begun to wait when counting begins.
    if (other.dump_as >= 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CALLGRIND_ZERO_STATS;
    release_all(other.release);
    if (other.dump_as >= 0) dump(other.dump_as, "remote");
    sem_post(&other.done);
  }
  return unused;
}
static void release_there(Release release, int dump_as) {
  other.release = release;
  other.dump_as = dump_as;
  sem_post(&other.asked);
  sem_wait(&other.done);
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

// After all others: blocks that went through another thread come back in another order.
static void count_remote(Allocate allocate, Release release, size_t size, int as_size) {
  CALLGRIND_START_INSTRUMENTATION;
  for (int round = 0; round <= kWarmRounds; ++round) {
    allocate_all(allocate, size);
    release_there(release, round < kWarmRounds ? -1 : as_size);
  }
  CALLGRIND_STOP_INSTRUMENTATION;
}

int main(int argc, char** argv) {
  // Through variables: the compiler would leave out a block that nobody reads.
  Allocate volatile allocate = malloc;
  Release volatile release = free;
  sem_init(&other.asked, 0, 0);
  sem_init(&other.done, 0, 0);
  const Release returns = (Release)(uintptr_t)only_returns;
  count(only_returns, returns, 0, 0);
  for (int i = 1; i < argc; ++i) count(allocate, release, (size_t)atol(argv[i]), atoi(argv[i]));
  // Only now, or its own first instructions would be counted.
  if (pthread_create(&other.thread, NULL, release_when_asked, NULL) != 0) return 1;
  count_remote(only_returns, returns, 0, 0);
  for (int i = 1; i < argc; ++i) count_remote(allocate, release, (size_t)atol(argv[i]), atoi(argv[i]));
  other.release = NULL;
  sem_post(&other.asked);
  return pthread_join(other.thread, NULL);
}
