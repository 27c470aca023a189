/* loam/tm.h: transactional memory for C (C11 or later; also from C++, which has loam/tm.hpp).
 *
 * Shared data is read and written through a transaction, which takes effect whole or not at all.
 *
 *   static void transfer(loam_tx *tx, void *argument) {
 *     struct order *o = argument;
 *     loam_tx_write_u64(tx, o->from, loam_tx_read_u64(tx, o->from) - o->amount);
 *     loam_tx_write_u64(tx, o->to, loam_tx_read_u64(tx, o->to) + o->amount);
 *   }
 *   loam_atomically(transfer, &order, 0);
 *
 * The body may run several times until it commits: it must have no effect but through tx. Shared data is accessed
 * through transactions by everybody. An attempt that aborts leaves the body without running what is behind the access.
 *
 * Errors. What depends on the program's input (loam_configure) returns a code and leaves a sentence in loam_error().
 * Misuse (an access outside of a transaction, begin without commit, a transaction inside one of another transactional
 * memory) and exhausted memory for the runtime's own tables end the program with a message on standard error.
 *
 * Threads. Any thread may run transactions, up to 1024 at once; a tx belongs to the thread that began it.
 */
#ifndef LOAM_TM_H
#define LOAM_TM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Instrumentation must see every jump: the package's flags define this where the library was built with any. */
#ifdef LOAM_INSTRUMENTED
#include <setjmp.h>
#define LOAM_TX_SETJMP 1
#endif

#define LOAM_VERSION_MAJOR 0
#define LOAM_VERSION_MINOR 2
#define LOAM_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- running transactions ---------------------------------------------------------------------------------------- */

typedef struct loam_tx loam_tx; /* a running transaction of the calling thread */
typedef void (*loam_body)(loam_tx* tx, void* argument);

/* Flags of loam_atomically() and loam_tx_begin(). */
#define LOAM_READ_ONLY 1u   /* mostly reads: keeps no log. The first write runs it again with one. */
#define LOAM_IRREVOCABLE 2u /* runs alone and once, so it may do what cannot be undone */

enum { LOAM_COMMITTED = 0, LOAM_CANCELLED = 1 };

/* Runs body(tx, argument) as one transaction. Inside another transaction it becomes a part of that one.
 * returns LOAM_COMMITTED, or LOAM_CANCELLED after loam_tx_cancel() */
int loam_atomically(loam_body body, void* argument, unsigned flags);

/* For code that cannot be a function: between loam_tx_begin() and loam_tx_commit().
 *
 *   loam_tx_frame frame;
 *   if (loam_tx_begin(&frame, 0)) {
 *     loam_tx_write_u64(frame.tx, &x, loam_tx_read_u64(frame.tx, &x) + 1);
 *     loam_tx_commit(&frame);
 *   }
 *
 * As after setjmp(): begin returns again when an attempt aborts, and what the function has assigned to its local
 * variables since is then indeterminate unless they are volatile. The frame is a local variable, and the function that
 * calls begin must not return before commit or cancel. */
typedef struct loam_tx_frame {
#ifdef LOAM_TX_SETJMP
  jmp_buf buffer;
#else
  uint64_t registers[24];
#endif
  uint64_t kept[8];
  loam_tx* tx; /* to use until loam_tx_commit() */
} loam_tx_frame;

/* returns the number of the attempt, from 1 on, at each start of one; 0 after loam_tx_cancel() */
#ifdef LOAM_TX_SETJMP
int loam_tx_begin_after(loam_tx_frame* frame, unsigned flags, int code);
#define loam_tx_begin(frame, flags) loam_tx_begin_after((frame), (flags), _setjmp((frame)->buffer))
#else
int loam_tx_begin(loam_tx_frame* frame, unsigned flags) __attribute__((returns_twice));
#endif

/* Returns if the transaction has committed; otherwise its loam_tx_begin() returns again. The one of a begin inside
 * another transaction leaves the outcome to that one. */
void loam_tx_commit(loam_tx_frame* frame);

/* The transaction that the calling thread is in, or NULL. */
loam_tx* loam_tx_current(void);

/* ---- inside a transaction ---------------------------------------------------------------------------------------- */

/* Values at `address`, which is aligned to their size; bytes may lie anywhere. */
uint8_t loam_tx_read_u8(loam_tx* tx, const void* address);
uint16_t loam_tx_read_u16(loam_tx* tx, const void* address);
uint32_t loam_tx_read_u32(loam_tx* tx, const void* address);
uint64_t loam_tx_read_u64(loam_tx* tx, const void* address);
void* loam_tx_read_ptr(loam_tx* tx, const void* address);
void loam_tx_read_bytes(loam_tx* tx, void* to, const void* address, size_t bytes);

void loam_tx_write_u8(loam_tx* tx, void* address, uint8_t value);
void loam_tx_write_u16(loam_tx* tx, void* address, uint16_t value);
void loam_tx_write_u32(loam_tx* tx, void* address, uint32_t value);
void loam_tx_write_u64(loam_tx* tx, void* address, uint64_t value);
void loam_tx_write_ptr(loam_tx* tx, void* address, const void* value);
void loam_tx_write_bytes(loam_tx* tx, void* address, const void* from, size_t bytes);

/* Compiled with -DLOAM_TM_ALGORITHM=norec, the accesses of this file are inline, but for bytes, and the algorithm of the
 * process is fixed: loam_configure() and LOAM_TM can choose no other. Such a program fits one version of the library
 * alone, which it checks at its start (docs/embedding.md, Accesses without a call). */
#ifdef LOAM_TM_ALGORITHM
#define LOAM_TX_INLINES_norec 1
#define LOAM_TX_JOINED(a, b) a##b
#define LOAM_TX_JOIN(a, b) LOAM_TX_JOINED(a, b)
#if LOAM_TX_JOIN(LOAM_TX_INLINES_, LOAM_TM_ALGORITHM)
#include "include/loam/tm_norec.h"
#else
#error \
    "LOAM_TM_ALGORITHM: norec alone has inline accesses; for another algorithm leave it out and call loam_configure()"
#endif
#endif

/* The same for further types: loam_tx_read_i32 and loam_tx_write_i32, and so on. They are inline functions. */
#define LOAM_TX_ACCESSES_AS(name, type, width)                                      \
  static inline type loam_tx_read_##name(loam_tx* tx, const void* address) {        \
    const uint##width##_t word = loam_tx_read_u##width(tx, address);                \
    type value;                                                                     \
    memcpy(&value, &word, sizeof value);                                            \
    return value;                                                                   \
  }                                                                                 \
  static inline void loam_tx_write_##name(loam_tx* tx, void* address, type value) { \
    uint##width##_t word;                                                           \
    memcpy(&word, &value, sizeof word);                                             \
    loam_tx_write_u##width(tx, address, word);                                      \
  }
LOAM_TX_ACCESSES_AS(i8, int8_t, 8)
LOAM_TX_ACCESSES_AS(i16, int16_t, 16)
LOAM_TX_ACCESSES_AS(i32, int32_t, 32)
LOAM_TX_ACCESSES_AS(i64, int64_t, 64)
LOAM_TX_ACCESSES_AS(float, float, 32)
LOAM_TX_ACCESSES_AS(double, double, 64)
LOAM_TX_ACCESSES_AS(size, size_t, 64)
LOAM_TX_ACCESSES_AS(uintptr, uintptr_t, 64)
#undef LOAM_TX_ACCESSES_AS

/* A block from the process's malloc, freed again if the attempt aborts; NULL where malloc has none. Until the
 * transaction ends nobody else knows the block: it may be filled plainly. */
void* loam_tx_malloc(loam_tx* tx, size_t bytes);
/* Frees a block of malloc's once the transaction has committed and nobody can read it any more. */
void loam_tx_free(loam_tx* tx, void* block);

/* Calls function(argument) once the transaction has committed, or whenever an attempt of it has aborted: after the
 * fact, outside of it, in the order of these calls. */
void loam_tx_on_commit(loam_tx* tx, void (*function)(void* argument), void* argument);
void loam_tx_on_abort(loam_tx* tx, void (*function)(void* argument), void* argument);

/* Keeps the value of a private variable: it goes back to the variable whenever the attempt, or the innermost
 * loam_tx_closed() part, is taken back. For variables that the body changes and that outlive it: what it began with is
 * what its next attempt begins with. */
void loam_tx_keep(loam_tx* tx, void* variable, size_t bytes);

/* What the transaction unlinks, or has learnt to be unlinked, may be unmapped or freed plainly once it has committed, in
 * every mode of loam_config.privatization: the commit waits until no attempt runs that ran beside it. address: says
 * what, to who reads the code. Not needed before loam_tx_free(), nor to read and write plainly under "commit". */
void loam_tx_privatize(loam_tx* tx, const void* address);

/* Takes one read of these bytes out of what the transaction depends on: a later change of them is no conflict. Unsafe:
 * for walks whose author knows what still protects them. Without effect under algorithms that keep no single reads. */
void loam_tx_release_read(loam_tx* tx, const void* address, size_t bytes);

/* Gives up, parts and all, and runs the transaction again at once, as after a conflict; it counts for serialise_after. */
void loam_tx_restart(loam_tx* tx) __attribute__((noreturn));
/* Gives up and runs the transaction again once something that it has read has changed; the thread sleeps meanwhile. */
void loam_tx_retry(loam_tx* tx) __attribute__((noreturn));
/* Takes back the innermost loam_tx_closed() part, or else the whole transaction, which then has no effect. */
void loam_tx_cancel(loam_tx* tx) __attribute__((noreturn));
/* Runs body(tx, argument) as a part that can be taken back by itself. returns LOAM_COMMITTED or LOAM_CANCELLED */
int loam_tx_closed(loam_tx* tx, loam_body body, void* argument);
/* Runs first; if it retries, takes it back and runs second; if that retries too, waits for what either has read. */
void loam_tx_or_else(loam_tx* tx, loam_body first, loam_body second, void* argument);
/* On return the transaction runs alone and cannot abort; to get there it may be run again from its start. */
void loam_tx_become_irrevocable(loam_tx* tx);

/* ---- the process ------------------------------------------------------------------------------------------------- */

typedef struct loam_config {
  const char* algorithm;     /* a name of loam_algorithm_name(); by default "norec" */
  const char* mapping;       /* of addresses to ownership records: "table", "shadow", "hash" */
  unsigned shift;            /* table, hash: log2 of the bytes that share a record, 3 to 12 */
  unsigned records_log2;     /* table, hash: log2 of the number of records, 10 to 26 */
  int adaptive;              /* 1: the two above are where tuning begins (docs/transactions.md); 0: they stay */
  const char* manager;       /* who gives way: "suicide", "delay", "backoff", "karma", "timestamp" */
  const char* privatization; /* "commit": unlinked data may be used plainly at once; "none": after privatize */
  unsigned serialise_after;  /* aborts in a row after which a transaction runs alone; 0: never */
} loam_config;

enum { LOAM_OK = 0, LOAM_UNKNOWN_NAME = 1, LOAM_OUT_OF_RANGE = 2, LOAM_TOO_LATE = 3 };

/* Fills in what holds without loam_configure(): the library's defaults, with what the environment says in their place.
 *   LOAM_TM="algorithm=etl-wb,mapping=shadow,privatization=none"
 * Keys are the names of loam_config. What does not exist is named on standard error and ignored. Programs that run with
 * more rights than their user ignore the variable, and transactions of C++ know nothing of it. */
void loam_config_default(loam_config* config);
/* Before the first transaction of the process. returns LOAM_OK; or another code, and nothing has changed */
int loam_configure(const loam_config* config);
/* What the last loam_configure() of the calling thread complained about: subject, value, and what is allowed. */
const char* loam_error(void);

/* Names of the algorithms, from 0 on; NULL behind the last. */
const char* loam_algorithm_name(unsigned index);
/* The one of this process. */
const char* loam_algorithm_in_use(void);

/* Hands over what the calling thread's transactions keep. Happens by itself at thread exit. */
void loam_thread_exit(void);
/* Frees all that transactions have freed and nobody can read any more. Outside of transactions.
 * returns how many blocks of the calling thread are still held back */
size_t loam_quiesce(void);

#define LOAM_ABORT_CAUSES_MAX 16
typedef struct loam_statistics {
  uint64_t attempts; /* = commits + the sum of aborts */
  uint64_t commits;
  uint64_t aborts[LOAM_ABORT_CAUSES_MAX]; /* by cause: loam_abort_cause_name() */
  uint64_t blocks_allocated;              /* calls of malloc and free, those of aborted attempts included */
  uint64_t blocks_freed;
} loam_statistics;

/* Of the calling thread, and of all threads together; the latter is exact once the others have stopped. */
void loam_statistics_of_thread(loam_statistics* statistics);
void loam_statistics_of_process(loam_statistics* statistics);
const char* loam_abort_cause_name(unsigned cause); /* NULL behind the last */

/* "0.2.0": of the library, to compare with the header's LOAM_VERSION_... */
const char* loam_version(void);

#ifdef __cplusplus
}
#endif

#endif
