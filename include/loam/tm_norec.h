/* loam/tm_norec.h: inline reads and writes for the algorithm norec. loam/tm.h includes this file when a program is
 * compiled with -DLOAM_TM_ALGORITHM=norec.
 *
 *   cc -DLOAM_TM_ALGORITHM=norec $(pkg-config --cflags loam-tm) -c program.c
 *   loam_tx_read_u64(tx, &x);       this read is compiled inline
 *   (loam_tx_read_u64)(tx, &x);     this read calls the function of the library
 *
 * An inline access handles the common case of runtime/tm/algorithms/norec.hpp. It calls the function of the same name
 * in every other case:
 *   - no transaction runs, or it runs alone (LOAM_IRREVOCABLE);
 *   - a read-only transaction writes for the first time;
 *   - the transaction may have written this word before, or has written eight words already;
 *   - another thread has committed since the snapshot;
 *   - a log is full.
 *
 * This file repeats the layout of some of the library's structures. runtime/tm/c/inlined.cpp compares the two when the
 * library is built. When a program starts, the library checks the version of the header and the flags with which the
 * program was compiled; if one of them does not fit, the program ends with a message.
 *
 * Memory orders are those of norec.hpp. An access loads the value with acquire before it loads the sequence number (P2
 * there), so it never takes a new value together with the old sequence number.
 */
#ifndef LOAM_TM_NOREC_H
#define LOAM_TM_NOREC_H

#ifndef LOAM_TM_H
#error "loam/tm_norec.h: include loam/tm.h, and compile with -DLOAM_TM_ALGORITHM=norec"
#endif

/* ---- layout of the library's structures -------------------------------------------------------------------------- */

typedef uint8_t loam_norec_u8 __attribute__((may_alias));
typedef uint16_t loam_norec_u16 __attribute__((may_alias));
typedef uint32_t loam_norec_u32 __attribute__((may_alias));
typedef uint64_t loam_norec_u64 __attribute__((may_alias));

#define LOAM_NOREC_APART __attribute__((aligned(128))) /* two cache lines */
#define LOAM_NOREC_MARKS_LOG2 9

enum {
  LOAM_NOREC_UPDATE = 0,
  LOAM_NOREC_NESTED = 1,
  LOAM_NOREC_READ_ONLY = 2
}; /* modes of a descriptor; in every larger one an access calls the library */

struct loam_norec_read { /* log entry: a whole word was read */
  const void* address;
  uint64_t value;
};
struct loam_norec_part { /* log entry: 1, 2 or 4 bytes of a word were read */
  const void* address;
  uint32_t value, bytes;
};
struct loam_norec_write { /* entry of the write set */
  void* address;
  uint64_t value, mask;
  void* record;
  uint64_t old_version;
  struct loam_norec_write* next;
};

struct loam_norec_state {
  struct loam_norec_read *reads_end, *reads_limit;
  struct loam_norec_part *parts_end, *parts_limit;
  uint8_t generation;                        /* changes with each transaction */
  uint8_t marks[1 << LOAM_NOREC_MARKS_LOG2]; /* a hash of a word's address is the index. Where the mark equals
                                              * generation, the write set may have the word; elsewhere it has not. */
  struct loam_norec_write* linear_end;       /* an inline write adds entries only in front of this one */
};

struct loam_tx { /* the first members of the library's descriptor of a thread */
#ifdef LOAM_TX_SETJMP
  jmp_buf buffer;
#endif
  void* stack_pointer;
  uint64_t snapshot;
  void *records_end, *records_limit;
  struct loam_norec_write *write_end, *write_limit;
  uint64_t locked_word, allocated;
  const void* stocks;
  uint8_t mode, special, quiesces;
  uint32_t slot;
  uint64_t no_record;
  LOAM_NOREC_APART uint64_t announced;
  LOAM_NOREC_APART struct loam_norec_state state;
};

extern uint64_t loam_norec_sequence __asm__("_ZN4loam2tm14norec_sequenceE"); /* loam::tm::norec_sequence */

/* Fixes the algorithm of the process, before its first transaction. version is the header's, layout the offset of
 * loam_tx.state. Ends the program if one of them differs from the library's, or if another algorithm is in use. */
void loam_tm_compiled_for(const char* algorithm, unsigned version, size_t layout);

#define LOAM_NOREC_VERSION (LOAM_VERSION_MAJOR * 10000u + LOAM_VERSION_MINOR * 100u + LOAM_VERSION_PATCH)
#define LOAM_NOREC_LAYOUT offsetof(struct loam_tx, state)

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

#define LOAM_NOREC_INLINED __attribute__((always_inline)) static inline
#define LOAM_NOREC_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* The index of a word in marks. */
LOAM_NOREC_INLINED size_t loam_norec_place(uintptr_t word) {
  return ((uint32_t)word * 0x9E3779B1u) >> (32 - LOAM_NOREC_MARKS_LOG2);
}

LOAM_NOREC_INLINED int loam_norec_may_have_written(const loam_tx* tx, uintptr_t word) {
  return tx->state.marks[loam_norec_place(word)] == tx->state.generation;
}

/* Whether no thread has committed a write since the snapshot: the sequence number is still the snapshot's.
 * relaxed: the caller has loaded its value with acquire, so this load comes after it. */
LOAM_NOREC_INLINED int loam_norec_holds(const loam_tx* tx) {
  return __atomic_load_n(&loam_norec_sequence, __ATOMIC_RELAXED) == tx->snapshot;
}

/* Whether a read takes its value from memory: a transaction runs that logs its accesses, and the write set does not
 * have the word. */
LOAM_NOREC_INLINED int loam_norec_reads_memory(const loam_tx* tx, const void* address) {
  return LOAM_NOREC_LIKELY(tx->mode <= LOAM_NOREC_READ_ONLY) &&
         LOAM_NOREC_LIKELY(!loam_norec_may_have_written(tx, (uintptr_t)address & ~(uintptr_t)7));
}

/* Logs a read of a part of a word. returns 0 if the log is full, or if another thread has committed: then the library
 * does the read */
LOAM_NOREC_INLINED int loam_norec_log_part(loam_tx* tx, const void* address, uint32_t value, uint32_t bytes) {
  struct loam_norec_part* const entry = tx->state.parts_end;
  if (!LOAM_NOREC_LIKELY(loam_norec_holds(tx)) || !LOAM_NOREC_LIKELY(entry != tx->state.parts_limit)) return 0;
  entry->address = address;
  entry->value = value;
  entry->bytes = bytes;
  tx->state.parts_end = entry + 1;
  return 1;
}

/* The same of a whole word. */
LOAM_NOREC_INLINED int loam_norec_log_word(loam_tx* tx, const void* address, uint64_t value) {
  struct loam_norec_read* const entry = tx->state.reads_end;
  if (!LOAM_NOREC_LIKELY(loam_norec_holds(tx)) || !LOAM_NOREC_LIKELY(entry != tx->state.reads_limit)) return 0;
  entry->address = address;
  entry->value = value;
  tx->state.reads_end = entry + 1;
  return 1;
}

LOAM_NOREC_INLINED uint64_t loam_norec_read_u64(loam_tx* tx, const void* address) {
  if (LOAM_NOREC_LIKELY(tx->mode <= LOAM_NOREC_READ_ONLY) &&
      LOAM_NOREC_LIKELY(!loam_norec_may_have_written(tx, (uintptr_t)address))) {
    const uint64_t value = __atomic_load_n((const loam_norec_u64*)address, __ATOMIC_ACQUIRE);
    if (LOAM_NOREC_LIKELY(loam_norec_log_word(tx, address, value))) return value;
  }
  return loam_tx_read_u64(tx, address);
}

LOAM_NOREC_INLINED void* loam_norec_read_ptr(loam_tx* tx, const void* address) {
  return (void*)(uintptr_t)loam_norec_read_u64(tx, address);
}

#define LOAM_NOREC_READ(bits)                                                                             \
  LOAM_NOREC_INLINED uint##bits##_t loam_norec_read_u##bits(loam_tx* tx, const void* address) {           \
    if (loam_norec_reads_memory(tx, address)) {                                                           \
      const uint##bits##_t value = __atomic_load_n((const loam_norec_u##bits*)address, __ATOMIC_ACQUIRE); \
      if (LOAM_NOREC_LIKELY(loam_norec_log_part(tx, address, value, bits / 8))) return value;             \
    }                                                                                                     \
    return loam_tx_read_u##bits(tx, address);                                                             \
  }
LOAM_NOREC_READ(8)
LOAM_NOREC_READ(16)
LOAM_NOREC_READ(32)
#undef LOAM_NOREC_READ

/* Adds a word to the write set. returns 0 if the word may be there already, if the transaction is not an update, or if
 * there is no place for inline writes: then the library does the write */
LOAM_NOREC_INLINED int loam_norec_add(loam_tx* tx, uintptr_t word, uint64_t value, uint64_t mask) {
  struct loam_norec_write* const entry = tx->write_end;
  if (!LOAM_NOREC_LIKELY(tx->mode <= LOAM_NOREC_NESTED) || !LOAM_NOREC_LIKELY(!loam_norec_may_have_written(tx, word)) ||
      !LOAM_NOREC_LIKELY(entry < tx->state.linear_end))
    return 0;
  entry->address = (void*)word;
  entry->value = value;
  entry->mask = mask;
  entry->record = &tx->no_record;
  entry->next = NULL;
  tx->state.marks[loam_norec_place(word)] = tx->state.generation;
  tx->write_end = entry + 1;
  return 1;
}

LOAM_NOREC_INLINED void loam_norec_write_u64(loam_tx* tx, void* address, uint64_t value) {
  if (!LOAM_NOREC_LIKELY(loam_norec_add(tx, (uintptr_t)address, value, ~(uint64_t)0)))
    loam_tx_write_u64(tx, address, value);
}

LOAM_NOREC_INLINED void loam_norec_write_ptr(loam_tx* tx, void* address, const void* value) {
  loam_norec_write_u64(tx, address, (uintptr_t)value);
}

/* A write of a part of a word marks the transaction as special: its commit writes only these bytes of the word.
 * Bytes are in little-endian order, as everywhere in the library. */
#define LOAM_NOREC_WRITE(bits)                                                                                     \
  LOAM_NOREC_INLINED void loam_norec_write_u##bits(loam_tx* tx, void* address, uint##bits##_t value) {             \
    const unsigned first = (unsigned)((uintptr_t)address & 7) * 8;                                                 \
    const uint64_t mask = (((uint64_t)1 << bits) - 1) << first;                                                    \
    if (LOAM_NOREC_LIKELY(loam_norec_add(tx, (uintptr_t)address & ~(uintptr_t)7, (uint64_t)value << first, mask))) \
      tx->special = 1;                                                                                             \
    else                                                                                                           \
      loam_tx_write_u##bits(tx, address, value);                                                                   \
  }
LOAM_NOREC_WRITE(8)
LOAM_NOREC_WRITE(16)
LOAM_NOREC_WRITE(32)
#undef LOAM_NOREC_WRITE

#ifndef LOAM_NOREC_WITHOUT_START
/* Runs before main(), and when a shared library that includes this file is loaded. */
__attribute__((constructor)) static void loam_norec_is_compiled_for(void) {
  loam_tm_compiled_for("norec", LOAM_NOREC_VERSION, LOAM_NOREC_LAYOUT);
}
#endif

/* Only a call becomes inline. (loam_tx_read_u64)(tx, address) and &loam_tx_read_u64 remain the library's function. */
#define loam_tx_read_u8(tx, address) loam_norec_read_u8((tx), (address))
#define loam_tx_read_u16(tx, address) loam_norec_read_u16((tx), (address))
#define loam_tx_read_u32(tx, address) loam_norec_read_u32((tx), (address))
#define loam_tx_read_u64(tx, address) loam_norec_read_u64((tx), (address))
#define loam_tx_read_ptr(tx, address) loam_norec_read_ptr((tx), (address))
#define loam_tx_write_u8(tx, address, value) loam_norec_write_u8((tx), (address), (value))
#define loam_tx_write_u16(tx, address, value) loam_norec_write_u16((tx), (address), (value))
#define loam_tx_write_u32(tx, address, value) loam_norec_write_u32((tx), (address), (value))
#define loam_tx_write_u64(tx, address, value) loam_norec_write_u64((tx), (address), (value))
#define loam_tx_write_ptr(tx, address, value) loam_norec_write_ptr((tx), (address), (value))

#endif
