// Mistakes with memory, one a run, for whatever allocator serves the process to find or to miss.
//   corruption                     prints a line for each mistake: its kind, its name, and the sizes it is made with
//   corruption NAME BYTES OTHERS   makes it with blocks of that size (0: it has none), among so many other blocks of
//                                  sizes that are drawn; ends with 0 if nothing stopped it
// Each mistake is what real programs do; none is shaped for an allocator. Nothing is allocated beside the block for it.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kOthers = 64, kTurns = 20000, kTurnBytes = 200 << 20, kMega = 1 << 20, kCannot = 4, kHarmless = 5 };

static size_t bytes;
static volatile size_t one = 1;  // out of the compiler's sight
static char elsewhere[4096];

// Pointers pass through here, out of the compiler's sight.
static void* volatile hidden;
static char* seen(void* block) {
  hidden = block;
  return hidden;
}

static char* make(void) {
  char* const block = seen(malloc(bytes));
  if (block == NULL) exit(3);
  memset(block, 1, bytes);
  return block;
}

// What a program does between its mistake and its end.
static void go_on(void) {
  void* blocks[kOthers];
  const size_t turns = kTurnBytes / bytes < kTurns ? kTurnBytes / bytes : kTurns;
  for (size_t turn = 0; turn < turns / kOthers; ++turn) {
    for (int i = 0; i < kOthers; ++i) memset(blocks[i] = malloc(bytes), 2, bytes);
    for (int i = 0; i < kOthers; ++i) free(blocks[i]);
  }
}

// Another value than is there, at so many bytes from a block's start.
static void write_at(char* block, ptrdiff_t from, ptrdiff_t count) {
  for (ptrdiff_t i = 0; i < count; ++i) seen(block)[from + i] ^= 0x5a;
}

// ---- second free

static void double_free(void) {
  char* const block = make();
  free(block);
  free(seen(block));
}
static void double_free_after_another(void) {
  char *const block = make(), *const other = make();
  free(block);
  free(other);
  free(seen(block));
}
static void double_free_much_later(void) {
  char* const block = make();
  char* blocks[kOthers];
  for (int i = 0; i < kOthers; ++i) blocks[i] = make();
  free(block);
  for (int i = 0; i < kOthers; ++i) free(blocks[i]);
  free(seen(block));
}
static void free_after_realloc_moved(void) {
  char* const block = make();
  make();  // behind it, so that it cannot grow where it lies
  char* const moved = seen(realloc(block, 8 * bytes));
  free(seen(block));
  if (moved == block) exit(kCannot);
}
static void realloc_of_a_freed_block(void) {
  char* const block = make();
  free(block);
  seen(realloc(seen(block), 4 * bytes));
}

// ---- free of no block

static void free_of_a_stack_address(void) {
  char local[256];
  free(seen(local + 64));
}
static void free_of_a_static_address(void) { free(seen(elsewhere + 1024)); }
static void free_inside_a_block(void) { free(seen(make() + 16)); }
static void free_of_an_odd_address(void) { free(seen(make() + 1)); }
static void free_before_a_block(void) { free(seen(make() - 16)); }
static void free_far_behind_a_block(void) { free(seen(make() + (1 << 30))); }
static void realloc_inside_a_block(void) { seen(realloc(seen(make() + 16), bytes)); }

// Of C++, where the process has it: an allocator that brings none is not asked.
extern void _ZdlPvm(void* block, size_t size) __attribute__((weak));
extern void* _Znwm(size_t size) __attribute__((weak));
static void delete_of_another_type(void) {
  if (_Znwm == NULL || _ZdlPvm == NULL) exit(kCannot);
  _ZdlPvm(seen(_Znwm(bytes)), bytes / 2);
}

// ---- writes past the end, before the start

static void past_the_end(ptrdiff_t from, ptrdiff_t count) {
  char* const block = make();
  write_at(block, (ptrdiff_t)bytes + from, count);
  free(block);
}
static void write_1_past_the_end(void) { past_the_end(0, 1); }
static void write_8_past_the_end(void) { past_the_end(0, 8); }
static void write_32_past_the_end(void) { past_the_end(0, 32); }
static void zero_past_the_end(void) {
  char* const block = make();
  seen(block)[bytes] = 0;
  free(block);
}
static void write_past_the_end_then_realloc(void) {
  char* const block = make();
  write_at(block, (ptrdiff_t)bytes, 1);
  free(seen(realloc(block, 4 * bytes)));
}
static void write_1_past_a_kept_block(void) { write_at(make(), (ptrdiff_t)bytes, 1); }
static void write_8_past_a_kept_block(void) { write_at(make(), (ptrdiff_t)bytes, 8); }
static void write_32_past_a_kept_block(void) { write_at(make(), (ptrdiff_t)bytes, 32); }

static void before_the_start(ptrdiff_t from, ptrdiff_t count) {
  char* const block = make();
  write_at(block, -from, count);
  free(block);
}
static void write_1_before_the_start(void) { before_the_start(1, 1); }
static void write_8_before_the_start(void) { before_the_start(8, 8); }
static void write_32_before_the_start(void) { before_the_start(32, 32); }
static void write_1_at_32_before_the_start(void) { before_the_start(32, 1); }
static void write_1_before_a_kept_block(void) { write_at(make(), -1, 1); }
static void write_32_before_a_kept_block(void) { write_at(make(), -32, 32); }

// ---- far writes

static void write_a_mebibyte_past_the_end(void) { past_the_end(kMega, 1); }
static void write_a_mebibyte_before_the_start(void) { before_the_start(kMega, 1); }
static void write_64_mebibytes_past_the_end(void) { past_the_end(64 * kMega, 1); }
static void copy_of_a_mebibyte_past_the_end(void) {
  char* const block = make();
  for (size_t i = 0; i < bytes + kMega; ++i) seen(block)[i] = 0x5a;
  free(block);
}

// ---- blocks of no bytes

static void write_to_no_bytes(void) { write_at(malloc(0), 0, 1); }
static void write_to_no_bytes_then_free(void) {
  char* const block = malloc(0);
  seen(block)[0] = 0x5a;
  free(block);
}
static void read_of_no_bytes(void) { elsewhere[0] = *(volatile char*)seen(malloc(0)); }
static void write_to_no_zeroed_bytes(void) { seen(calloc(0, 8))[0] = 1; }
static void write_to_no_aligned_bytes(void) { seen(aligned_alloc(64, 0))[0] = 1; }
static void double_free_of_no_bytes(void) {
  char* const block = malloc(0);
  free(block);
  free(seen(block));
}

// ---- writes to freed blocks

static void write_to_a_freed_block(void) {
  char* const block = make();
  free(block);
  memset(seen(block), 0x5a, bytes);
  go_on();
}
static void write_at_the_end_of_a_freed_block(void) {
  char* const block = make();
  free(block);
  write_at(block, (ptrdiff_t)bytes - 1, 1);
  go_on();
}
static void write_before_a_freed_block(void) {
  char* const block = make();
  free(block);
  write_at(block, -1, 1);
  go_on();
}
static void write_to_a_freed_block_before_the_end(void) {
  char* const block = make();
  free(block);
  memset(seen(block), 0x5a, bytes);
}
static void write_in_a_freed_block_of_another_size(void) {
  char *const block = make(), *const longer = malloc(2 * bytes);
  free(block);
  free(longer);
  write_at(longer, 0, 8);
  go_on();
}
static void write_to_a_block_that_realloc_moved(void) {
  char* const block = make();
  make();  // as above
  if (seen(realloc(block, 8 * bytes)) == block) exit(kCannot);
  memset(seen(block), 0x5a, bytes);
  go_on();
}
static void write_after_realloc_before_the_end(void) {
  char* const block = make();
  make();  // as above
  if (seen(realloc(block, 8 * bytes)) == block) exit(kCannot);
  write_at(block, 0, 1);
}

// ---- what is left behind

static void freed_block_serves_at_once(void) {
  char* const block = make();
  free(block);
  if (seen(malloc(bytes)) != hidden || make() != block) exit(kHarmless);
}
static void contents_stay_after_free(void) {
  char* const block = make();
  free(block);
  for (size_t i = 0; i < bytes; ++i)
    if (*(volatile char*)(seen(block) + i) == 1) return;
  exit(kHarmless);
}

// ---- sizes that no machine has

static void malloc_of_half_of_all_addresses(void) {
  if (seen(malloc((size_t)PTRDIFF_MAX + one)) == NULL) exit(kHarmless);
}
static void calloc_of_a_product_that_overflows(void) {
  if (seen(calloc(one << 33, one << 33)) == NULL) exit(kHarmless);
}
static void malloc_of_64_tebibytes(void) {
  if (seen(malloc(one << 46)) == NULL) exit(kHarmless);
}

static const struct {
  const char *kind, *name;
  void (*commit)(void);
  int has_size;
} kMistakes[] = {
    {"second free", "double-free", double_free, 1},
    {"second free", "double-free-after-another", double_free_after_another, 1},
    {"second free", "double-free-much-later", double_free_much_later, 1},
    {"second free", "free-after-realloc-moved", free_after_realloc_moved, 1},
    {"second free", "realloc-of-a-freed-block", realloc_of_a_freed_block, 1},
    {"free of no block", "free-of-a-stack-address", free_of_a_stack_address, 0},
    {"free of no block", "free-of-a-static-address", free_of_a_static_address, 0},
    {"free of no block", "free-inside-a-block", free_inside_a_block, 1},
    {"free of no block", "free-of-an-odd-address", free_of_an_odd_address, 1},
    {"free of no block", "free-before-a-block", free_before_a_block, 1},
    {"free of no block", "free-far-behind-a-block", free_far_behind_a_block, 1},
    {"free of no block", "realloc-inside-a-block", realloc_inside_a_block, 1},
    {"free with a wrong size", "delete-of-another-type", delete_of_another_type, 1},
    {"write past the end", "write-1-past-the-end", write_1_past_the_end, 1},
    {"write past the end", "write-8-past-the-end", write_8_past_the_end, 1},
    {"write past the end", "write-32-past-the-end", write_32_past_the_end, 1},
    {"write past the end", "zero-past-the-end", zero_past_the_end, 1},
    {"write past the end", "write-past-the-end-then-realloc", write_past_the_end_then_realloc, 1},
    {"write past the end, never freed", "write-1-past-a-kept-block", write_1_past_a_kept_block, 1},
    {"write past the end, never freed", "write-8-past-a-kept-block", write_8_past_a_kept_block, 1},
    {"write past the end, never freed", "write-32-past-a-kept-block", write_32_past_a_kept_block, 1},
    {"write before the start", "write-1-before-the-start", write_1_before_the_start, 1},
    {"write before the start", "write-8-before-the-start", write_8_before_the_start, 1},
    {"write before the start", "write-32-before-the-start", write_32_before_the_start, 1},
    {"write before the start", "write-1-at-32-before-the-start", write_1_at_32_before_the_start, 1},
    {"write before the start, never freed", "write-1-before-a-kept-block", write_1_before_a_kept_block, 1},
    {"write before the start, never freed", "write-32-before-a-kept-block", write_32_before_a_kept_block, 1},
    {"far write", "write-a-mebibyte-past-the-end", write_a_mebibyte_past_the_end, 1},
    {"far write", "write-a-mebibyte-before-the-start", write_a_mebibyte_before_the_start, 1},
    {"far write", "write-64-mebibytes-past-the-end", write_64_mebibytes_past_the_end, 1},
    {"far write", "copy-of-a-mebibyte-past-the-end", copy_of_a_mebibyte_past_the_end, 1},
    {"access to no bytes", "write-to-no-bytes", write_to_no_bytes, 0},
    {"access to no bytes", "write-to-no-bytes-then-free", write_to_no_bytes_then_free, 0},
    {"access to no bytes", "read-of-no-bytes", read_of_no_bytes, 0},
    {"access to no bytes", "write-to-no-zeroed-bytes", write_to_no_zeroed_bytes, 0},
    {"access to no bytes", "write-to-no-aligned-bytes", write_to_no_aligned_bytes, 0},
    {"access to no bytes", "double-free-of-no-bytes", double_free_of_no_bytes, 0},
    {"write after free", "write-to-a-freed-block", write_to_a_freed_block, 1},
    {"write after free", "write-at-the-end-of-a-freed-block", write_at_the_end_of_a_freed_block, 1},
    {"write after free", "write-before-a-freed-block", write_before_a_freed_block, 1},
    {"write after free", "write-to-a-freed-block-before-the-end", write_to_a_freed_block_before_the_end, 1},
    {"write after free", "write-in-a-freed-block-of-another-size", write_in_a_freed_block_of_another_size, 1},
    {"write after realloc", "write-to-a-block-that-realloc-moved", write_to_a_block_that_realloc_moved, 1},
    {"write after realloc", "write-after-realloc-before-the-end", write_after_realloc_before_the_end, 1},
    {"reuse of what is stale", "freed-block-serves-at-once", freed_block_serves_at_once, 1},
    {"reuse of what is stale", "contents-stay-after-free", contents_stay_after_free, 1},
    {"impossible size", "malloc-of-half-of-all-addresses", malloc_of_half_of_all_addresses, 0},
    {"impossible size", "calloc-of-a-product-that-overflows", calloc_of_a_product_that_overflows, 0},
    {"impossible size", "malloc-of-64-tebibytes", malloc_of_64_tebibytes, 0},
};

// Blocks of other sizes that are held, and some freed between them: the same ones in each run.
static void make_others(int count) {
  uint32_t drawn = 1;
  for (int i = 0; i < count; ++i) {
    drawn = drawn * 1664525u + 1013904223u;
    const size_t length = 1 + (drawn >> 8) % ((drawn >> 30) == 0 ? 3000 : 200);
    char* const other = malloc(length);
    memset(other, 3, length);
    if (i % 3 == 0) free(other);
  }
}

int main(int argc, char** argv) {
  for (size_t i = 0; i < sizeof kMistakes / sizeof *kMistakes; ++i) {
    if (argc < 4) {
      printf("%s\t%s\t%d\n", kMistakes[i].kind, kMistakes[i].name, kMistakes[i].has_size);
    } else if (strcmp(argv[1], kMistakes[i].name) == 0) {
      bytes = strtoul(argv[2], NULL, 10);
      make_others(atoi(argv[3]));
      kMistakes[i].commit();
      return 0;
    }
  }
  return argc < 4 ? 0 : 2;
}
