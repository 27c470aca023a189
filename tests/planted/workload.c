// planted-workload: a workload executable whose slow-down is known exactly. Speaks --describe and the record schema.
//   Work    One unit allocates a block, writes it, multiplies for a while, and frees it. A batch of 100 units counts as
//           100 operations; under a library with `loam_planted_percent` = x it does 100 + x units and still counts 100.
//           All of the work is x % more, whatever a unit takes, so that no calibration is needed.
//   Not     a test of interposition: the library asks for the slow-down, and forwards malloc to glibc unchanged.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatch = 100, kChain = 100, kBytes = 64 };

static const char* const kDescription =
    "{\"schema\":2,\"sync\":{\"name\":\"planted\",\"summary\":\"work with a known "
    "slow-down\",\"kind\":\"none\",\"threads_max\":1,\"paper\":\"\","
    "\"blame\":false,\"parameters\":[]},\"build\":{\"compiler\":\"cc\",\"preset\":\"release\",\"flags\":\"\","
    "\"revision\":\"\"},"
    "\"workloads\":[{\"name\":\"units\",\"summary\":\"allocate, multiply, free\",\"kinds\":[\"none\"],\"parameters\":["
    "{\"name\":\"duration_ms\",\"type\":\"integer\",\"min\":1,\"max\":60000,\"default\":30,\"unit\":\"ms\",\"help\":"
    "\"timed part\"}],"
    "\"metrics\":[{\"name\":\"units_per_s\",\"unit\":\"1/"
    "s\",\"better\":\"higher\",\"kind\":\"ratio\",\"of\":[\"units\",\"elapsed_s\"]},"
    "{\"name\":\"units\",\"unit\":\"1\",\"better\":\"higher\",\"kind\":\"count\"},"
    "{\"name\":\"elapsed_s\",\"unit\":\"s\",\"better\":\"neither\",\"kind\":\"time\"}]}]}\n";

static double now_s(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static uint64_t unit(uint64_t x) {
  uint64_t* block = malloc(kBytes);
  if (block == NULL) exit(4);
  *(volatile uint64_t*)block = x;
  for (int i = 0; i != kChain; ++i) {
    x *= 0x9E3779B97F4A7C15u;
    __asm__("" : "+r"(x));  // keeps the compiler from folding the chain
  }
  free(block);
  return x;
}

// Whole batches until `seconds` are over; returns how many, and leaves the time in *elapsed_s.
static uint64_t batches(double seconds, int units, double* elapsed_s) {
  const double begin = now_s(CLOCK_MONOTONIC);
  uint64_t done = 0, x = 1;
  do {
    for (int i = 0; i != units; ++i) x = unit(x);
    ++done;
    *elapsed_s = now_s(CLOCK_MONOTONIC) - begin;
  } while (*elapsed_s < seconds);
  __asm__ volatile("" ::"r"(x));
  return done;
}

int main(int count, char** arguments) {
  if (count > 1 && strcmp(arguments[1], "--describe") == 0) return fputs(kDescription, stdout) < 0;
  int out = 1, warmup_ms = 0, duration_ms = 30;
  const char* seed = "1";
  for (int i = 2; i + 1 < count; ++i) {
    const char *name = arguments[i], *value = arguments[i + 1];
    if (strcmp(name, "--records") == 0) out = atoi(value);
    if (strcmp(name, "--warmup-ms") == 0) warmup_ms = atoi(value);
    if (strcmp(name, "--seed") == 0) seed = value;
    if (strcmp(name, "-p") == 0 && strncmp(value, "duration_ms=", 12) == 0) duration_ms = atoi(value + 12);
  }
  const int* planted = dlsym(RTLD_DEFAULT, "loam_planted_percent");
  const int units = kBatch + (planted != NULL ? *planted : 0);
  double elapsed_s = 0;
  if (warmup_ms > 0) batches(warmup_ms / 1e3, units, &elapsed_s);
  const double cpu_s = now_s(CLOCK_THREAD_CPUTIME_ID);
  const uint64_t done = batches(duration_ms / 1e3, units, &elapsed_s);
  dprintf(out,
          "{\"kind\":\"begin\",\"schema\":2,\"workload\":\"units\",\"sync\":\"planted\",\"threads\":1,\"seed\":%s,"
          "\"blame\":false,"
          "\"parameters\":{},\"preset\":\"release\",\"compiler\":\"cc\",\"build_id\":\"\",\"cpus\":[0]}\n"
          "{\"kind\":\"iteration\",\"index\":0,\"elapsed_s\":%.9f,\"units\":%llu,\"thread_cpu_s\":%.9f}\n"
          "{\"kind\":\"end\",\"verified\":true,\"message\":\"\",\"live_blocks_delta\":0}\n",
          seed, elapsed_s, (unsigned long long)(done * kBatch), now_s(CLOCK_THREAD_CPUTIME_ID) - cpu_s);
  return 0;
}
