/* What a program's heap holds, before and after: an ordinary program, linked with loam::malloc. */
#include <loam/malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind "key": in the heap's own account. */
static long long holding(const char* key) {
  char text[4096], quoted[64];
  loam_malloc_json(text, sizeof text);
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char* found = strstr(text, quoted);
  return found != NULL ? atoll(found + strlen(quoted)) : -1;
}

int main(void) {
  enum { COUNT = 10000, BYTES = 1000 };
  static char* blocks[COUNT];

  const long long before = holding("committed_bytes");
  for (int i = 0; i < COUNT; ++i) {
    blocks[i] = malloc(BYTES);
    if (blocks[i] == NULL) return EXIT_FAILURE;
    memset(blocks[i], i, BYTES);
  }
  const long long during = holding("committed_bytes");
  for (int i = 0; i < COUNT; ++i) free(blocks[i]);

  printf("%d blocks of %d bytes took %lld KiB\n", COUNT, BYTES, (during - before) / 1024);
  fflush(stdout);
  loam_malloc_summary(1);
  return during - before >= (long long)COUNT * BYTES && loam_malloc_verify() == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
