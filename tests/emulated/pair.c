// pair PAIRS BYTES: so many calls of malloc, each with its free. tests/emulated/pairs.py counts what they execute.
#include <stdlib.h>

static void* volatile hidden;  // no compiler takes the two for nothing

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long pairs = atol(argv[1]);
  const size_t bytes = (size_t)atol(argv[2]);
  for (long i = 0; i < pairs; ++i) {
    hidden = malloc(bytes);
    free(hidden);
  }
  return 0;
}
