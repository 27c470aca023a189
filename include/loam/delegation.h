/* loam/delegation.h: delegation for C11 or later. It compiles as C++ too, which has loam/delegation.hpp.
 *
 * Delegation takes the place of a mutex around short operations that many threads want. A thread sends its operation to
 * another thread that has the object in its cache; that thread executes one operation at a time.
 *
 *   static void deposit(void *object, void *argument) {
 *     struct account *account = object;
 *     account->balance += *(const long *)argument;
 *   }
 *   loam_delegation *accounts = loam_delegation_new(&account, "cc-synch", NULL);
 *   loam_delegation_apply(accounts, deposit, &amount);
 *   loam_delegation_free(accounts);
 *
 * Operations. An operation may run on another thread: it then sees that thread's thread-local variables and errno. What
 * it writes is visible to the caller when the call returns. It may send operations to other objects. One that would come
 * back to an object that waits for it is refused. Two threads that ask for operations of one object that call another,
 * and the other way round, can deadlock, as with two locks. An operation that ends its thread ends the program.
 *
 * Errors. When a function that makes something fails, it returns NULL. When a call fails, it returns a code. In both
 * cases loam_delegation_error() returns the reason, in the thread that made the call. Misuse, such as a ticket of
 * another thread, ends the program with a message on standard error.
 *
 * Threads. Any thread may call at any time, without registration. Their number is not limited by this interface.
 *
 * Fork. The child has no servers: there, calls to an object of a server return LOAM_DELEGATION_STOPPED. Fork only while
 * no operation is under way.
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

/* Codes that a call returns. Only after LOAM_DELEGATION_OK has the operation been executed. */
enum {
  LOAM_DELEGATION_OK = 0,
  LOAM_DELEGATION_NESTED = 1,  /* the object, or its server, executes an operation that waits for this call */
  LOAM_DELEGATION_STOPPED = 2, /* the server was stopped, or it runs in the parent of a fork */
  LOAM_DELEGATION_FULL = 3     /* the server has 16384 requests under way: wait for some tickets, then try again */
};

/* ---- settings ---------------------------------------------------------------------------------------------------- */

#define LOAM_NEVER_SLEEP (~0u)
#define LOAM_CALIBRATED (~0u)
#define LOAM_ANY_CPU (~0u)

typedef struct loam_delegation_settings {
  unsigned pauses;         /* pause instructions between two checks of a waiting thread, or LOAM_CALIBRATED */
  unsigned first_delay_ns; /* time before a waiting thread checks for the first time */
  unsigned spin_ns;        /* a waiting thread sleeps in the kernel after this time, or LOAM_NEVER_SLEEP */
  unsigned turn_max;       /* operations of other threads that a combiner executes before it hands over */
  unsigned passes;         /* flat-combining: passes over the published operations; it ends when one finds nothing */
  unsigned lists;          /* h-synch: number of lists; 0: one for each processor package */
  unsigned server_cpu;     /* the processor of a server's thread, or LOAM_ANY_CPU */
} loam_delegation_settings;

/* Fills in the default settings. */
void loam_delegation_default(loam_delegation_settings* settings);

/* The names of all schemes, from index 0 on; NULL after the last one. */
const char* loam_delegation_scheme(unsigned index);

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Makes a delegation for one object. scheme is one of the names above, or NULL for cc-synch. settings may be NULL for
 * the defaults. If the scheme needs a server, this starts one for the object, and loam_delegation_free() stops it.
 * returns NULL, with the reason in loam_delegation_error(), if the scheme is unknown or its thread cannot be started */
loam_delegation* loam_delegation_new(void* object, const char* scheme, const loam_delegation_settings* settings);

/* Frees the delegation, not the object. No operation may be under way. NULL does nothing. */
void loam_delegation_free(loam_delegation* delegation);

/* Executes operation(object, argument) on some thread, while no other operation of the object runs. Returns a code when
 * the operation is done. */
int loam_delegation_apply(loam_delegation* delegation, loam_operation operation, void* argument);

/* Sends an operation without waiting for it, if the scheme has a server. Under every other scheme the operation is done
 * when this returns. `argument` must stay valid until loam_ticket_wait() has returned.
 * returns a ticket for the calling thread. On an error it returns NULL, and the code in *code unless code is NULL */
loam_ticket* loam_delegation_submit(loam_delegation* delegation, loam_operation operation, void* argument, int* code);

/* Whether the operation is done, so that loam_ticket_wait() would return at once. */
int loam_ticket_is_ready(const loam_ticket* ticket);

/* Waits until the operation is done, and frees the ticket. returns a code */
int loam_ticket_wait(loam_ticket* ticket);

/* ---- servers ----------------------------------------------------------------------------------------------------- */

/* Starts a server for several objects. scheme is the name of a scheme with a server, or NULL for the scheme "server".
 * returns NULL, with the reason in loam_delegation_error(), if the scheme has none, or the thread cannot be started */
loam_server* loam_server_start(const char* scheme, const loam_delegation_settings* settings);

/* Makes a delegation for one more object of a server. Free it before the server. returns NULL if there is no memory */
loam_delegation* loam_server_delegation(loam_server* server, void* object);

/* Executes the operations that were sent before, refuses later ones, and ends the server's thread. Only one thread may
 * call this; a second call does nothing. */
void loam_server_stop(loam_server* server);

/* Stops the server if it still runs, and frees it. Its delegations must have been freed. NULL does nothing. */
void loam_server_free(loam_server* server);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* The reason of the last failed call of the calling thread, without a newline at its end. */
const char* loam_delegation_error(void);

#ifdef __cplusplus
}
#endif

#endif
