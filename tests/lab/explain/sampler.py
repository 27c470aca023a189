"""The sampler of cache lines, for tests that run it."""

from __future__ import annotations

import sampled

from loam_lab.setup import build


def built(*programs: str) -> dict[str, str]:
    """Build the sampler and programs of the tests; their libraries by name. Skips where the kernel gives no events."""
    sampled.skip_without_events()
    libraries: dict[str, str] = build.ensure_built([*programs, "sharing", "probe"])["libraries"]
    return libraries


# Two threads count in two blocks of one cache line until the sampler has caught some, in 30 s at most.  Then the program
# ends as its argument says; "alone": at once, before there is a second thread; "fork": a child of it does all that.
NEIGHBOURS = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define CATCHES 4
static unsigned long (*count)(char);
static void* work(void* block) {
  volatile long* own = block;
  const time_t end = time(0) + 30;
  while (time(0) < end && count('c') < CATCHES)
    for (int n = 0; n < 100000; ++n) *own = *own + 1;
  return 0;
}
__attribute__((noinline)) static void* make_one(void) { return malloc(8); }
int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "alone") == 0) return 0;
  if (strcmp(how, "fork") == 0 && make_one() != 0 && fork() != 0) return wait(0) < 0;
  count = (unsigned long (*)(char))dlsym(RTLD_DEFAULT, "loam_sharing_count");
  if (count == 0) return 3;
  void *one = make_one(), *other = make_one();
  while ((uintptr_t)one / 64 != (uintptr_t)other / 64) one = other, other = make_one();
  pthread_t thread;
  pthread_create(&thread, 0, work, other);
  work(one);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "fault") == 0) *(volatile int*)16 = 1;
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "_exit") == 0) _exit(0);
  return pthread_join(thread, 0);
}
"""
