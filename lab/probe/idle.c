// How much memory an idle process keeps after it freed everything, under the allocator that serves it.
//   idle BYTES MIB SECOND...   allocates MIB in blocks of BYTES, writes each block, frees all, and then only sleeps.
//                              Prints the resident KiB at each SECOND after the last free, less those before the first
//                              block.
// After the last free it calls no function that allocates, because many allocators return memory in a later call.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kMomentsMax = 16 };

static long resident_kib(void) {
  char text[128];
  const int file = open("/proc/self/statm", O_RDONLY);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (length <= 0) exit(3);
  close(file);
  text[length] = 0;
  return strtol(strchr(text, ' '), NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char** argv) {
  if (argc < 4 || argc - 3 > kMomentsMax || atol(argv[1]) <= 0 || atol(argv[2]) <= 0) {
    fputs("idle BYTES MIB SECOND...\n", stderr);
    return 2;
  }
  const size_t bytes = (size_t)atol(argv[1]), count = ((size_t)atol(argv[2]) << 20) / bytes;
  // The table of pointers does not come from the allocator: it would be a long block beside the short ones.
  const size_t table_bytes = count * sizeof(char*);
  char** const blocks = mmap(NULL, table_bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (blocks == MAP_FAILED) return 3;
  const long before = resident_kib();
  for (size_t i = 0; i < count; ++i) {
    if ((blocks[i] = malloc(bytes)) == NULL) return 3;
    memset(blocks[i], 1, bytes);
  }
  for (size_t i = 0; i < count; ++i) free(blocks[i]);
  munmap(blocks, table_bytes + 1);

  long held_kib[kMomentsMax];
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 3; i < argc; ++i) {
    const struct timespec moment = {begin.tv_sec + atol(argv[i]), begin.tv_nsec};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) != 0) {
    }
    held_kib[i - 3] = resident_kib() - before;
  }
  for (int i = 3; i < argc; ++i) printf("%ld\n", held_kib[i - 3]);
  return 0;
}
