// pair PAIRS BYTES: so many calls of malloc, each with its free. tests/emulated/pairs.py counts what they execute.
// Prints where the library lies that serves malloc, in hexadecimal.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* volatile hidden;  // no compiler takes the two for nothing

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long pairs = atol(argv[1]);
  const size_t bytes = (size_t)atol(argv[2]);
  Dl_info library;
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &library) == 0) return 3;
  printf("%lx\n", (unsigned long)library.dli_fbase);
  for (long i = 0; i < pairs; ++i) {
    hidden = malloc(bytes);
    free(hidden);
  }
  return 0;
}
