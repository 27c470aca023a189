/* loam/tm_inlined.h: inline reads and writes for one algorithm. loam/tm.h includes this file when a program is compiled
 * with -DLOAM_TM_ALGORITHM=norec, =etl-wb or =dctl.
 *
 *   cc -DLOAM_TM_ALGORITHM=norec $(pkg-config --cflags loam-tm) -c program.c
 *   loam_tx_read_u64(tx, &x);       this read is compiled inline
 *   (loam_tx_read_u64)(tx, &x);     this read calls the function of the library
 *
 * An inline access handles the common case of its algorithm, and calls the function of the same name in every other
 * case: tm_norec.h and tm_records.h say which.
 *
 * This file repeats the layout of some of the library's structures. runtime/tm/c/inlined.cpp compares the two when the
 * library is built. When a program starts, the library checks the version of the header and the flags with which the
 * program was compiled; if one of them does not fit, the program ends with a message.
 */
#ifndef LOAM_TM_INLINED_H
#define LOAM_TM_INLINED_H

#ifndef LOAM_TM_H
#error "loam/tm_inlined.h: include loam/tm.h, and compile with -DLOAM_TM_ALGORITHM=norec, =etl-wb or =dctl"
#endif

/* ---- layout of the library's structures -------------------------------------------------------------------------- */

typedef uint8_t loam_inlined_u8 __attribute__((may_alias));
typedef uint16_t loam_inlined_u16 __attribute__((may_alias));
typedef uint32_t loam_inlined_u32 __attribute__((may_alias));
typedef uint64_t loam_inlined_u64 __attribute__((may_alias));

#define LOAM_INLINED_APART __attribute__((aligned(128))) /* two cache lines */
#define LOAM_NOREC_MARKS_LOG2 9
#define LOAM_NOREC_LINEAR_MAX 8 /* entries in front of linear_end */

enum {
  LOAM_INLINED_UPDATE = 0,
  LOAM_INLINED_NESTED = 1,
  LOAM_INLINED_READ_ONLY = 2
}; /* modes of a descriptor; in every larger one an access calls the library */

struct loam_inlined_write { /* entry of the write set */
  void* address;
  uint64_t value, mask;
  uint64_t* record;
  uint64_t old_version;
  struct loam_inlined_write* next;
};

struct loam_norec_read { /* log entry: a whole word was read */
  const void* address;
  uint64_t value;
};
struct loam_norec_part { /* log entry: 1, 2 or 4 bytes of a word were read */
  const void* address;
  uint32_t value, bytes;
};

struct loam_norec_state {
  struct loam_norec_read *reads_end, *reads_limit;
  struct loam_norec_part *parts_end, *parts_limit;
  uint8_t generation;                        /* changes with each transaction */
  uint8_t marks[1 << LOAM_NOREC_MARKS_LOG2]; /* a hash of a word's address is the index. Where the mark equals
                                              * generation, the write set may have the word; elsewhere it has not. */
  struct loam_inlined_write* linear_end;     /* an inline write adds entries only in front of this one */
};

struct loam_tx { /* the first members of the library's descriptor of a thread */
#ifdef LOAM_TX_SETJMP
  jmp_buf buffer;
#endif
  void* stack_pointer;
  uint64_t snapshot;
  uint64_t **records_end, **records_limit; /* of the log of the records that were read */
  struct loam_inlined_write *write_end, *write_limit;
  uint64_t locked_word; /* what this thread puts into a record, less the address of its entry */
  uint64_t allocated;
  const void* stocks;
  uint8_t mode, special, quiesces;
  uint32_t slot;
  uint64_t no_record;
  LOAM_INLINED_APART uint64_t announced;
  LOAM_INLINED_APART struct loam_norec_state norec_state; /* under norec */
};

struct loam_inlined_records { /* which ownership record guards an address; fixed while a transaction runs */
  uint64_t* base;
  uint64_t mask;
  uint32_t shift;
};

/* Fixes the algorithm of the process, before its first transaction. version is the header's, layout the offset of
 * loam_tx.norec_state. Ends the program if one of them differs from the library's, or if another algorithm is in use. */
void loam_tm_compiled_for(const char* algorithm, unsigned version, size_t layout);

#define LOAM_INLINED_VERSION (LOAM_VERSION_MAJOR * 10000u + LOAM_VERSION_MINOR * 100u + LOAM_VERSION_PATCH)
#define LOAM_INLINED_LAYOUT offsetof(struct loam_tx, norec_state)

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

#ifdef LOAM_INLINED_ALGORITHM

#define LOAM_INLINED __attribute__((always_inline)) static inline
#define LOAM_INLINED_LIKELY(condition) __builtin_expect(!!(condition), 1)

#ifdef LOAM_INLINED_RECORDS
#include "include/loam/tm_records.h"
#else
#include "include/loam/tm_norec.h"
#endif

LOAM_INLINED void* loam_inlined_read_ptr(loam_tx* tx, const void* address) {
  return (void*)(uintptr_t)loam_inlined_read_u64(tx, address);
}
LOAM_INLINED void loam_inlined_write_ptr(loam_tx* tx, void* address, const void* value) {
  loam_inlined_write_u64(tx, address, (uintptr_t)value);
}

/* Runs before main(), and when a shared library that includes this file is loaded. */
__attribute__((constructor)) static void loam_inlined_is_compiled_for(void) {
  loam_tm_compiled_for(LOAM_INLINED_ALGORITHM, LOAM_INLINED_VERSION, LOAM_INLINED_LAYOUT);
}

/* Only a call becomes inline. (loam_tx_read_u64)(tx, address) and &loam_tx_read_u64 remain the library's function. */
#define loam_tx_read_u8(tx, address) loam_inlined_read_u8((tx), (address))
#define loam_tx_read_u16(tx, address) loam_inlined_read_u16((tx), (address))
#define loam_tx_read_u32(tx, address) loam_inlined_read_u32((tx), (address))
#define loam_tx_read_u64(tx, address) loam_inlined_read_u64((tx), (address))
#define loam_tx_read_ptr(tx, address) loam_inlined_read_ptr((tx), (address))
#define loam_tx_write_u8(tx, address, value) loam_inlined_write_u8((tx), (address), (value))
#define loam_tx_write_u16(tx, address, value) loam_inlined_write_u16((tx), (address), (value))
#define loam_tx_write_u32(tx, address, value) loam_inlined_write_u32((tx), (address), (value))
#define loam_tx_write_u64(tx, address, value) loam_inlined_write_u64((tx), (address), (value))
#define loam_tx_write_ptr(tx, address, value) loam_inlined_write_ptr((tx), (address), (value))

#endif

#endif
