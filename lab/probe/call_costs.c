// Calls of malloc and free in bursts, for callgrind to count, of whatever allocator serves this process: call_costs SIZE...
//   A burst allocates so many blocks, then frees them, the oldest first; it is repeated until the allocator's lists have
//   settled. Each dump is named "SIZE;WHAT;BURST;CALLS". remote: another thread frees them. Size 0 are the same loops around a function of one instruction: what they cost themselves.
//   A second thread is there from the beginning, because libraries leave out locks in a process of one thread.
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <valgrind/callgrind.h>

enum { kBurstMax = 2048, kCalls = 2048, kWarmBursts = 12, kRemote = 256, kKept = 16, kBytesMax = 2 << 20 };

typedef void* (*Allocate)(size_t);
typedef void (*Release)(void*);

// Returns whatever is in the register of results: one instruction.
void* only_returns(size_t);
__asm__(".text\n.globl only_returns\n.type only_returns, @function\nonly_returns: ret\n");

static void* blocks[kBurstMax];
static void* volatile kept;

__attribute__((noinline)) static void allocate_all(Allocate allocate, size_t size, int count) {
  for (int i = 0; i < count; ++i) blocks[i] = allocate(size);
}
__attribute__((noinline)) static void release_all(Release release, int count) {
  for (int i = 0; i < count; ++i) release(blocks[i]);
}

static void dump(int size, const char* what, int burst, int calls) {
  char name[64];
  snprintf(name, sizeof name, "%d;%s;%d;%d", size, what, burst, calls);
  CALLGRIND_DUMP_STATS_AT(name);
}

// Bursts of one length, counted in the one half or the other.
static void count_half(Allocate allocate, Release release, size_t size, int as_size, int burst, int frees) {
  const int rounds = burst < kCalls ? kCalls / burst : 1;
  CALLGRIND_ZERO_STATS;
  for (int round = 0; round < rounds; ++round) {
    if (!frees) CALLGRIND_TOGGLE_COLLECT;
    allocate_all(allocate, size, burst);
    CALLGRIND_TOGGLE_COLLECT;
    release_all(release, burst);
    if (frees) CALLGRIND_TOGGLE_COLLECT;
  }
  dump(as_size, frees ? "free" : "malloc", burst, rounds * burst);
}

static void count(Allocate allocate, Release release, size_t size, int as_size) {
  // Some blocks stay, as in most programs: some allocators pay for a page whose last block goes.
  for (int i = 0; i < kKept; ++i) kept = allocate(size);
  for (int burst = 1; burst <= kBurstMax && (burst == 1 || burst * size <= kBytesMax); burst *= 2) {
    for (int round = 0; round < kWarmBursts; ++round) {
      allocate_all(allocate, size, burst);
      release_all(release, burst);
    }
    count_half(allocate, release, size, as_size, burst, 0);
    count_half(allocate, release, size, as_size, burst, 1);
  }
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
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    for (int i = 0; i < kRemote; ++i) other.release(blocks[i]);
    CALLGRIND_TOGGLE_COLLECT;
    if (other.dump_as >= 0) dump(other.dump_as, "remote", kRemote, kRemote);
    sem_post(&other.done);
  }
  return unused;
}

static void count_remote(Allocate allocate, Release release, size_t size, int as_size) {
  for (int round = 0; round <= kWarmBursts; ++round) {
    allocate_all(allocate, size, kRemote);
    other.release = release;
    other.dump_as = round < kWarmBursts ? -1 : as_size;
    sem_post(&other.asked);
    sem_wait(&other.done);
  }
}

int main(int argc, char** argv) {
  // Through variables: the compiler would leave out a block that nobody reads.
  Allocate volatile allocate = malloc;
  Release volatile release = free;
  sem_init(&other.asked, 0, 0);
  sem_init(&other.done, 0, 0);
  if (pthread_create(&other.thread, NULL, release_when_asked, NULL) != 0) return 1;
  const Release returns = (Release)(uintptr_t)only_returns;
  count(only_returns, returns, 0, 0);
  for (int i = 1; i < argc; ++i) count(allocate, release, (size_t)atol(argv[i]), atoi(argv[i]));
  count_remote(only_returns, returns, 0, 0);
  for (int i = 1; i < argc; ++i) count_remote(allocate, release, (size_t)atol(argv[i]), atoi(argv[i]));
  other.release = NULL;
  sem_post(&other.asked);
  return pthread_join(other.thread, NULL);
}
