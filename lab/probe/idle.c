// What a process keeps of the memory that it freed while it rests, with whatever allocator serves it.
//   idle BYTES MIB SECOND...   allocates so many MiB in blocks of one size, writes each of them, frees all, and from then on
//                              only sleeps; prints the resident KiB so many seconds after the last free, less those
//                              before the first block
// Between the last free and the last look it calls no function that allocates: many an allocator gives memory back in a call.
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
  // Not from the allocator: a table of pointers would be a long block beside the short ones.
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

  long found[kMomentsMax];
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 3; i < argc; ++i) {
    const struct timespec moment = {begin.tv_sec + atol(argv[i]), begin.tv_nsec};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) != 0) {
    }
    found[i - 3] = resident_kib() - before;
  }
  for (int i = 3; i < argc; ++i) printf("%ld\n", found[i - 3]);
  return 0;
}
