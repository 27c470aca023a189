/* Five small programs for the comparison of the model with cachegrind: NAME SIZE. Each prints a sum of what it did. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long state = 88172645463325252ul;

static unsigned long draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* A linked list whose nodes lie in random order. */
static unsigned long list(size_t size) {
  struct node {
    struct node* next;
    unsigned long value;
  };
  struct node* nodes = malloc(size * sizeof *nodes);
  size_t* order = malloc(size * sizeof *order);
  for (size_t i = 0; i < size; ++i) order[i] = i;
  for (size_t i = size - 1; i > 0; --i) {
    const size_t j = draw() % (i + 1), old = order[i];
    order[i] = order[j];
    order[j] = old;
  }
  for (size_t i = 0; i < size; ++i) nodes[order[i]] = (struct node){&nodes[order[(i + 1) % size]], i};
  unsigned long sum = 0;
  const struct node* at = nodes;
  for (size_t i = 0; i < 8 * size; ++i, at = at->next) sum += at->value;
  free(order);
  free(nodes);
  return sum;
}

/* Counters at random places of a table. */
static unsigned long table(size_t size) {
  unsigned* counts = calloc(size * 16, sizeof *counts);
  for (size_t i = 0; i < 8 * size; ++i) ++counts[draw() % (size * 16)];
  unsigned long sum = 0;
  for (size_t i = 0; i < size * 16; ++i) sum += counts[i] * i;
  free(counts);
  return sum;
}

/* A product of matrices, column after column. */
static unsigned long matrix(size_t size) {
  size_t side = 1;
  while ((side + 1) * (side + 1) * (side + 1) < 16 * size) ++side;
  unsigned* a = malloc(3 * side * side * sizeof *a);
  unsigned *b = a + side * side, *c = b + side * side;
  for (size_t i = 0; i < 2 * side * side; ++i) a[i] = (unsigned)draw();
  for (size_t i = 0; i < side; ++i)
    for (size_t j = 0; j < side; ++j) {
      unsigned sum = 0;
      for (size_t k = 0; k < side; ++k) sum += a[i * side + k] * b[k * side + j];
      c[i * side + j] = sum;
    }
  const unsigned long last = c[side * side - 1];
  free(a);
  return last;
}

static int by_value(const void* a, const void* b) {
  const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
  return (x > y) - (x < y);
}

/* A sort by the C library. */
static unsigned long sorted(size_t size) {
  unsigned* values = malloc(2 * size * sizeof *values);
  for (size_t i = 0; i < 2 * size; ++i) values[i] = (unsigned)draw();
  qsort(values, 2 * size, sizeof *values, by_value);
  const unsigned long middle = values[size];
  free(values);
  return middle;
}

/* Blocks of many sizes that come and go. */
static unsigned long blocks(size_t size) {
  enum { kSlots = 4096 };
  char** slots = calloc(kSlots, sizeof *slots);
  unsigned long sum = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t slot = draw() % kSlots, bytes = 16 + draw() % 240;
    free(slots[slot]);
    slots[slot] = malloc(bytes);
    memset(slots[slot], (int)i, bytes);
    sum += (unsigned char)slots[slot][bytes / 2];
  }
  for (size_t i = 0; i < kSlots; ++i) free(slots[i]);
  free(slots);
  return sum;
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    unsigned long (*run)(size_t);
  } programs[] = {{"list", list}, {"table", table}, {"matrix", matrix}, {"sorted", sorted}, {"blocks", blocks}};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i)
    if (count == 3 && strcmp(arguments[1], programs[i].name) == 0) {
      printf("%lu\n", programs[i].run(strtoul(arguments[2], NULL, 10)));
      return 0;
    }
  for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i) puts(programs[i].name);
  return count != 1;
}
