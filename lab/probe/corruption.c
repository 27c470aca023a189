// Mistakes with memory, one a run, for whatever allocator serves the process to find or to miss.
//   corruption             prints the names of the mistakes
//   corruption NAME BYTES  commits it with blocks of that size; ends with 0 if nothing stopped it
// Each mistake is what real programs do; none is shaped for an allocator.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kOthers = 64, kTurns = 20000 };

static size_t bytes;
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
  for (int turn = 0; turn < kTurns / kOthers; ++turn) {
    for (int i = 0; i < kOthers; ++i) memset(blocks[i] = malloc(bytes), 2, bytes);
    for (int i = 0; i < kOthers; ++i) free(blocks[i]);
  }
}

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
static void free_of_a_stack_address(void) {
  char local[256];
  free(seen(local + 64));
}
static void free_of_a_static_address(void) { free(seen(elsewhere + 1024)); }
static void free_inside_a_block(void) { free(seen(make() + 16)); }
static void free_of_an_odd_address(void) { free(seen(make() + 1)); }

// Of C++, where the process has it: an allocator that brings none is not asked.
extern void _ZdlPvm(void* block, size_t size) __attribute__((weak));
extern void* _Znwm(size_t size) __attribute__((weak));
static void delete_of_another_type(void) {
  if (_Znwm == NULL || _ZdlPvm == NULL) exit(4);
  _ZdlPvm(seen(_Znwm(bytes)), bytes / 2);
}

static void write_past_the_end(size_t past) {
  char* const block = make();
  for (size_t i = 0; i < past; ++i) seen(block)[bytes + i] = 0x5a;
  free(block);
}
static void write_of_1_byte_past_the_end(void) { write_past_the_end(1); }
static void write_of_8_bytes_past_the_end(void) { write_past_the_end(8); }
static void write_of_32_bytes_past_the_end(void) { write_past_the_end(32); }

static void write_to_a_freed_block(void) {
  char* const block = make();
  free(block);
  memset(seen(block), 0x5a, bytes);
  go_on();
}
static void write_behind_the_start_of_a_freed_block(void) {
  char* const block = make();
  free(block);
  seen(block)[bytes - 1] = 0x5a;
  go_on();
}

static void write_to_a_freed_block_before_the_end(void) {
  char* const block = make();
  free(block);
  memset(seen(block), 0x5a, bytes);
}
// Of a block whose neighbours are whatever the allocator put there.
static void write_of_8_bytes_before_the_start(void) {
  char* const block = make();
  for (int i = 1; i <= 8; ++i) seen(block)[-i] = 0x5a;
  free(block);
  go_on();
}

static const struct {
  const char* name;
  void (*commit)(void);
} kMistakes[] = {
    {"double-free", double_free},
    {"double-free-after-another", double_free_after_another},
    {"double-free-much-later", double_free_much_later},
    {"free-of-a-stack-address", free_of_a_stack_address},
    {"free-of-a-static-address", free_of_a_static_address},
    {"free-inside-a-block", free_inside_a_block},
    {"free-of-an-odd-address", free_of_an_odd_address},
    {"delete-of-another-type", delete_of_another_type},
    {"write-1-past-the-end", write_of_1_byte_past_the_end},
    {"write-8-past-the-end", write_of_8_bytes_past_the_end},
    {"write-32-past-the-end", write_of_32_bytes_past_the_end},
    {"write-to-a-freed-block", write_to_a_freed_block},
    {"write-at-the-end-of-a-freed-block", write_behind_the_start_of_a_freed_block},
    {"write-to-a-freed-block-before-the-end", write_to_a_freed_block_before_the_end},
    {"write-8-before-the-start", write_of_8_bytes_before_the_start},
};

int main(int argc, char** argv) {
  for (size_t i = 0; i < sizeof kMistakes / sizeof *kMistakes; ++i) {
    if (argc < 3) {
      puts(kMistakes[i].name);
    } else if (strcmp(argv[1], kMistakes[i].name) == 0) {
      bytes = strtoul(argv[2], NULL, 10);
      char* const around[] = {make(), make()};
      kMistakes[i].commit();
      free(around[0]);
      free(around[1]);
      return 0;
    }
  }
  return argc < 3 ? 0 : 2;
}
