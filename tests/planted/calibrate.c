// calibrate: how much a planted library really slows the loop it was made for, measured without the lab.
//   Use    planted-calibrate THREADS SIZE_BYTES MILLISECONDS, once with the library preloaded and once without.
//   Prints pairs of malloc and free per second, all threads together. The same loop as workloads/threadtest.cpp with
//          batch=1 and touch=1: allocate, write one word, free, look at a flag. Nothing is shared with it.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kThreadsMax = 64, kWarmUpMs = 20 };

static atomic_int phase;  // 0 warm-up, 1 timed, 2 over
static size_t size;
static struct {
  _Alignas(128) uint64_t pairs;
  int cpu;
} results[kThreadsMax];

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_ms(long ms) {
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

// relaxed: the flag carries no data; pthread_join orders the counts.
static __attribute__((noinline)) uint64_t pairs_during(int wanted) {
  uint64_t pairs = 0;
  for (; atomic_load_explicit(&phase, memory_order_relaxed) == wanted; ++pairs) {
    void* const block = malloc(size);
    if (__builtin_expect(block == NULL, 0)) abort();
    *(volatile uint64_t*)block = 1;
    free(block);
  }
  return pairs;
}

static void* work(void* argument) {
  const size_t index = (size_t)argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(results[index].cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  pairs_during(0);
  results[index].pairs = pairs_during(1);
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 0;
  const long ms = argc > 3 ? atol(argv[3]) : 0;
  size = argc > 2 ? (size_t)atol(argv[2]) : 0;
  cpu_set_t allowed;
  if (threads < 1 || threads > kThreadsMax || size < sizeof(uint64_t) || ms < 1 ||
      sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    fprintf(stderr, "usage: planted-calibrate THREADS SIZE_BYTES MILLISECONDS\n");
    return 2;
  }
  pthread_t ids[kThreadsMax];
  int cpu = -1;
  for (int i = 0; i < threads; ++i) {
    do cpu = (cpu + 1) % CPU_SETSIZE;
    while (!CPU_ISSET(cpu, &allowed));
    results[i].cpu = cpu;
    if (pthread_create(&ids[i], NULL, work, (void*)(size_t)i) != 0) return 1;
  }
  sleep_ms(kWarmUpMs);
  const double begin = now_s();
  atomic_store(&phase, 1);
  sleep_ms(ms);
  atomic_store(&phase, 2);
  const double end = now_s();
  uint64_t pairs = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    pairs += results[i].pairs;
  }
  printf("%.6e\n", (double)pairs / (end - begin));
  return 0;
}
