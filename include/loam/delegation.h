/* loam/delegation.h: delegation for C (C11 or later; also from C++, which has loam/delegation.hpp).
 *
 * An operation on an object is sent to the thread that has the object in its cache, and executed there alone. Use it in
 * place of a mutex around short operations that many threads want.
 *
 *   static void deposit(void *object, void *argument) {
 *     struct account *account = object;
 *     account->balance += *(const long *)argument;
 *   }
 *   loam_delegation *accounts = loam_delegation_new(&account, "cc-synch", NULL);
 *   loam_delegation_apply(accounts, deposit, &amount);
 *   loam_delegation_free(accounts);
 *
 * The operation runs on another thread: thread-local variables and errno are that thread's. What it writes is visible to
 * the caller when the call returns. It may call other objects; two objects whose operations call each other can deadlock,
 * as two locks do. An operation that ends its thread ends the program.
 *
 * Errors. Functions that make something return NULL, and calls return a code; loam_delegation_error() then holds a sentence
 * of the calling thread. Misuse (a ticket of another thread) ends the program with a message on standard error.
 *
 * Threads. Any thread may call at any time; nobody has to say how many there will be.
 *
 * Fork. The child has no servers: calls return LOAM_DELEGATION_STOPPED there. Fork while no operation is under way.
 */
#ifndef LOAM_DELEGATION_H
#define LOAM_DELEGATION_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct loam_delegation loam_delegation; /* an object, and how operations on it are executed */
typedef struct loam_server loam_server;         /* a thread that executes operations, for one object or several */
typedef struct loam_ticket loam_ticket;         /* an operation in flight */
typedef void (*loam_operation)(void* object, void* argument);

/* What a call returns. */
enum {
  LOAM_DELEGATION_OK = 0,
  LOAM_DELEGATION_NESTED = 1,  /* this object is executing an operation of the calling thread already */
  LOAM_DELEGATION_STOPPED = 2, /* the server was stopped, or is in the parent of a fork: not executed */
  LOAM_DELEGATION_FULL = 3     /* 16384 requests of one server are under way: not executed; wait for tickets */
};

/* ---- settings ---------------------------------------------------------------------------------------------------- */

#define LOAM_NEVER_SLEEP (~0u)
#define LOAM_CALIBRATED (~0u)
#define LOAM_ANY_CPU (~0u)

typedef struct loam_delegation_settings {
  unsigned pauses;         /* of the processor between two looks of a thread that waits, or LOAM_CALIBRATED */
  unsigned first_delay_ns; /* before the first look */
  unsigned spin_ns;        /* then the thread sleeps in the kernel; LOAM_NEVER_SLEEP: it never does */
  unsigned turn_max;       /* operations for others that a combiner executes in one go */
  unsigned passes;         /* flat-combining: over the published operations, as long as each finds one */
  unsigned lists;          /* h-synch: 0 is one for each package of processors */
  unsigned server_cpu;     /* where a server's thread is placed, or LOAM_ANY_CPU */
} loam_delegation_settings;

void loam_delegation_default(loam_delegation_settings* settings);

/* The names of all schemes: NULL after the last. */
const char* loam_delegation_scheme(unsigned index);

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Delegation of one object by the scheme of this name; NULL: cc-synch. settings: NULL for the defaults. A scheme with a
 * server gets one of its own, which loam_delegation_free() stops.
 * returns NULL, with a sentence in loam_delegation_error(), if there is no such scheme, or its thread cannot be started */
loam_delegation* loam_delegation_new(void* object, const char* scheme, const loam_delegation_settings* settings);

/* No operation may be under way. The object stays as it is. NULL does nothing. */
void loam_delegation_free(loam_delegation* delegation);

/* Calls operation(object, argument) alone, on some thread, and returns when that is done. */
int loam_delegation_apply(loam_delegation* delegation, loam_operation operation, void* argument);

/* The same without waiting, at a server; every other scheme has done it by the time this returns. `argument` must live
 * until the ticket is redeemed.
 * returns a ticket of the calling thread, or NULL, with the code in *code if that is not NULL */
loam_ticket* loam_delegation_submit(loam_delegation* delegation, loam_operation operation, void* argument, int* code);

/* Whether loam_ticket_wait() would return at once. */
int loam_ticket_is_ready(const loam_ticket* ticket);

/* Waits until the operation is done, and frees the ticket. returns a code */
int loam_ticket_wait(loam_ticket* ticket);

/* ---- servers ----------------------------------------------------------------------------------------------------- */

/* Starts the thread of a scheme with a server; NULL: `server`.
 * returns NULL, with a sentence in loam_delegation_error(), if the scheme has none, or the thread cannot be started */
loam_server* loam_server_start(const char* scheme, const loam_delegation_settings* settings);

/* Delegation of one more object by a server, which must outlive it. returns NULL if there is no memory */
loam_delegation* loam_server_delegation(loam_server* server, void* object);

/* Executes what was posted before, refuses what comes later, and ends the thread. By one thread; again: nothing. */
void loam_server_stop(loam_server* server);

/* Stops it if nobody has. Its delegations must have been freed. NULL does nothing. */
void loam_server_free(loam_server* server);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* What the calling thread's last call that failed says, without a line's end. */
const char* loam_delegation_error(void);

#ifdef __cplusplus
}
#endif

#endif
