/* loam/tm.h: transactional memory for C11 or later. It compiles as C++ too, which has loam/tm.hpp.
 *
 * A program reads and writes shared data through a transaction. The transaction takes effect as a whole or not at all.
 *
 *   static void transfer(loam_tx *tx, void *argument) {
 *     struct order *o = argument;
 *     loam_tx_write_u64(tx, o->from, loam_tx_read_u64(tx, o->from) - o->amount);
 *     loam_tx_write_u64(tx, o->to, loam_tx_read_u64(tx, o->to) + o->amount);
 *   }
 *   loam_atomically(transfer, &order, 0);
 *
 * The body may run several times until it commits, so it must have no effect except through tx. All threads must access
 * shared data through transactions. When an attempt aborts, control leaves the body at the access that found the
 * conflict; the rest of the body does not run.
 *
 * Errors. loam_configure() depends on the program's input: it returns a code, and loam_error() gives the reason. The
 * program ends with a message on standard error after misuse (an access outside of a transaction, a begin without a
 * commit, a transaction inside one of another transactional memory), and when there is no memory for the runtime's own
 * tables.
 *
 * Threads. Any thread may run transactions, up to 16384 threads at once. A tx belongs to the thread that began it.
 */
#ifndef LOAM_TM_H
#define LOAM_TM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The thread sanitizer must see every jump. The package's flags define these if the library was built with a sanitizer. */
#if defined(LOAM_INSTRUMENTED) && !defined(LOAM_ASAN)
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
#define LOAM_READ_ONLY 1u   /* for bodies that seldom write: no log is kept. The first write restarts it with a log. */
#define LOAM_IRREVOCABLE 2u /* runs once, while no other transaction runs: the body may do what cannot be undone */

enum { LOAM_COMMITTED = 0, LOAM_CANCELLED = 1 };

/* Runs body(tx, argument) as one transaction. A call inside another transaction becomes a part of the outer one.
 * returns LOAM_COMMITTED, or LOAM_CANCELLED after loam_tx_cancel() */
int loam_atomically(loam_body body, void* argument, unsigned flags);

/* For code that cannot be a function: the transaction is the code between loam_tx_begin() and loam_tx_commit().
 *
 *   loam_tx_frame frame;
 *   if (loam_tx_begin(&frame, 0)) {
 *     loam_tx_write_u64(frame.tx, &x, loam_tx_read_u64(frame.tx, &x) + 1);
 *     loam_tx_commit(&frame);
 *   }
 *
 * The rules of setjmp() hold: begin returns again when an attempt aborts. A local variable that was assigned since
 * begin then has an indeterminate value, unless it is volatile. The frame is a local variable, and the function that
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

/* Returns once for each attempt, with its number from 1 on; returns 0 after loam_tx_cancel(). */
#ifdef LOAM_TX_SETJMP
int loam_tx_begin_after(loam_tx_frame* frame, unsigned flags, int code);
#define loam_tx_begin(frame, flags) loam_tx_begin_after((frame), (flags), _setjmp((frame)->buffer))
#else
int loam_tx_begin(loam_tx_frame* frame, unsigned flags) __attribute__((returns_twice));
#endif

/* Returns if the transaction has committed; otherwise its loam_tx_begin() returns again. Inside another transaction it
 * always returns, and the outer transaction decides. */
void loam_tx_commit(loam_tx_frame* frame);

/* The transaction that the calling thread is in, or NULL. */
loam_tx* loam_tx_current(void);

/* ---- inside a transaction ---------------------------------------------------------------------------------------- */

/* Read and write a value at `address`, which must be aligned to the value's size. The _bytes functions take any
 * address. */
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

/* With -DLOAM_TM_ALGORITHM=norec, =etl-wb or =dctl the accesses are compiled inline, except _bytes. The process then
 * always uses this algorithm: loam_configure() and LOAM_TM can choose no other. Such a program runs only with the version
 * of the library with which it was compiled; it checks this when it starts (docs/embedding.md, "Accesses without a call").
 *
 * To the preprocessor a name with a dash is a difference of its words. So each word gets a number here, so that no two
 * names have the same difference; words that are not listed are 0. */
#ifdef LOAM_TM_ALGORITHM
#pragma push_macro("norec")
#pragma push_macro("dctl")
#pragma push_macro("etl")
#pragma push_macro("wb")
#pragma push_macro("hash")
#undef norec
#undef dctl
#undef etl
#undef wb
#undef hash
#define norec 7001
#define dctl 7002
#define etl 7100
#define wb 10
#define hash 1
#if LOAM_TM_ALGORITHM + 0 == 7001
#define LOAM_INLINED_ALGORITHM "norec"
#elif LOAM_TM_ALGORITHM + 0 == 7002
#define LOAM_INLINED_ALGORITHM "dctl"
#define LOAM_INLINED_RECORDS 1
#define LOAM_RECORDS_LOAD __ATOMIC_SEQ_CST
#define LOAM_RECORDS_LOCK __ATOMIC_SEQ_CST
#elif LOAM_TM_ALGORITHM + 0 == 7100 - 10
#define LOAM_INLINED_ALGORITHM "etl-wb"
#define LOAM_INLINED_RECORDS 1
#define LOAM_RECORDS_LOAD __ATOMIC_ACQUIRE
#define LOAM_RECORDS_LOCK __ATOMIC_ACQ_REL
#else
#error \
    "LOAM_TM_ALGORITHM: norec, etl-wb and dctl have inline accesses; for another algorithm leave it out and call loam_configure()"
#endif
#pragma pop_macro("norec")
#pragma pop_macro("dctl")
#pragma pop_macro("etl")
#pragma pop_macro("wb")
#pragma pop_macro("hash")
#include "include/loam/tm_inlined.h"
#endif

/* Inline functions for further types: loam_tx_read_i32, loam_tx_write_i32, and so on. */
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

/* Allocates a block with the process's malloc; NULL if malloc has no memory. An attempt that aborts frees it again.
 * Until the transaction commits, no other thread knows the block, so plain stores may fill it. */
void* loam_tx_malloc(loam_tx* tx, size_t bytes);
/* Frees a block of the process's malloc after the commit, once no other transaction can still read it. */
void loam_tx_free(loam_tx* tx, void* block);

/* Calls function(argument) after the transaction has committed, or after each attempt that has aborted. The functions
 * run outside of the transaction, in the order in which they were given. */
void loam_tx_on_commit(loam_tx* tx, void (*function)(void* argument), void* argument);
void loam_tx_on_abort(loam_tx* tx, void (*function)(void* argument), void* argument);

/* Saves the value of a private variable that the body is going to change. The value is restored when the attempt, or
 * the innermost loam_tx_closed() part, is undone: every attempt then begins with the same value. A local variable of a
 * function that has returned by then is not touched. */
void loam_tx_keep(loam_tx* tx, void* variable, size_t bytes);

/* For data that the transaction unlinks, or finds unlinked, and that is to be unmapped or freed plainly after the
 * commit. The commit then waits until every attempt that ran beside it has ended. This holds in every mode of
 * loam_config.privatization. address names the data for the reader of the code; the function does not use it.
 * loam_tx_free() does not need this call, and neither do plain reads and writes under "commit". */
void loam_tx_privatize(loam_tx* tx, const void* address);

/* Early release: removes one read of these bytes from the read set, so a later change of them is no conflict. Unsafe:
 * the author of the walk must know what else protects it. Algorithms that cannot drop single reads ignore the call. */
void loam_tx_release_read(loam_tx* tx, const void* address, size_t bytes);

/* Aborts the attempt, with all its parts, and runs the transaction again at once. Counts for serialise_after. */
void loam_tx_restart(loam_tx* tx) __attribute__((noreturn));
/* Aborts the attempt, sleeps until something that it has read changes, and runs the transaction again. */
void loam_tx_retry(loam_tx* tx) __attribute__((noreturn));
/* Undoes the innermost loam_tx_closed() part. Outside of such a part it undoes the whole transaction, which ends. */
void loam_tx_cancel(loam_tx* tx) __attribute__((noreturn));
/* Runs body(tx, argument) as a closed part, which can be undone alone. returns LOAM_COMMITTED or LOAM_CANCELLED */
int loam_tx_closed(loam_tx* tx, loam_body body, void* argument);
/* Runs first. If it calls loam_tx_retry(), undoes it and runs second. If second calls it too, the transaction sleeps
 * until something changes that either of them has read. */
void loam_tx_or_else(loam_tx* tx, loam_body first, loam_body second, void* argument);
/* When this returns, no other transaction runs and this one cannot abort. Before that, the body may start again. */
void loam_tx_become_irrevocable(loam_tx* tx);

/* ---- the process ------------------------------------------------------------------------------------------------- */

typedef struct loam_config {
  const char* algorithm; /* one of loam_algorithm_name(); the default is "auto" */
  const char* mapping;   /* of addresses to ownership records: "table", "shadow", "hash" */
  unsigned shift;        /* table, hash: log2 of the bytes that share a record, 3 to 12 */
  unsigned records_log2; /* table, hash: log2 of the number of records, 10 to 26 */
  int adaptive;          /* 1: tuning changes the two above (docs/transactions.md); 0: they stay fixed */
  const char* manager;   /* who gives way: "suicide", "pure-suicide", "delay", "backoff", "karma", "timestamp" */
  /* When plain accesses may follow an unlink. "commit", "shared": at once; "none": after loam_tx_privatize(). */
  const char* privatization;
  unsigned serialise_after; /* aborts in a row after which a transaction runs alone; 0: never */
} loam_config;

enum { LOAM_OK = 0, LOAM_UNKNOWN_NAME = 1, LOAM_OUT_OF_RANGE = 2, LOAM_TOO_LATE = 3 };

/* Fills in the configuration that holds without loam_configure(): the library's defaults, changed by the environment.
 *   LOAM_TM="algorithm=etl-wb,mapping=shadow,privatization=none"
 * The keys are the members of loam_config. An unknown key or value is reported on standard error and ignored.
 * Set-user-ID and other privileged programs ignore the variable. Transactions of C++ do not read it. */
void loam_config_default(loam_config* config);
/* Call it before the first transaction of the process. returns LOAM_OK, or a code of an error: then nothing changes */
int loam_configure(const loam_config* config);
/* The error of the calling thread's last loam_configure(): the member, its value, and the values that are allowed. */
const char* loam_error(void);

/* The names of the algorithms, from index 0 on; NULL after the last one. */
const char* loam_algorithm_name(unsigned index);
/* The name of the algorithm that this process uses. */
const char* loam_algorithm_in_use(void);

/* Releases the runtime's data of the calling thread. The runtime does this itself when a thread ends. */
void loam_thread_exit(void);
/* Frees the blocks that transactions have freed and that no transaction can still read. Call it outside of
 * transactions.
 * returns how many blocks of the calling thread still wait */
size_t loam_quiesce(void);

#define LOAM_ABORT_CAUSES_MAX 16
typedef struct loam_statistics {
  uint64_t attempts; /* = commits + the sum of aborts */
  uint64_t commits;
  uint64_t aborts[LOAM_ABORT_CAUSES_MAX]; /* by cause: loam_abort_cause_name() */
  uint64_t blocks_allocated;              /* calls of malloc and free, those of aborted attempts included */
  uint64_t blocks_freed;
} loam_statistics;

/* Counts of the calling thread, and the sum over all threads. The sum is exact once the other threads have stopped. */
void loam_statistics_of_thread(loam_statistics* statistics);
void loam_statistics_of_process(loam_statistics* statistics);
const char* loam_abort_cause_name(unsigned cause); /* NULL after the last one */

/* The version of the library, such as "0.2.0". LOAM_VERSION_MAJOR and so on are the version of this header. */
const char* loam_version(void);

#ifdef __cplusplus
}
#endif

#endif
