/* loam/malloc.h: the state of Loam's malloc, for programs that want to look at it (C11 or later, C++).
 *
 * Link libloam-malloc.so (CMake: loam::malloc, pkg-config: loam-malloc), or preload it without changing the program:
 *
 *   LD_PRELOAD=/usr/local/lib/libloam-malloc.so your-program
 *
 * malloc, free, operator new and the rest of the family are then Loam's. That needs nothing of this header. If a
 * program must also run without the library, it declares these functions weak and compares their addresses with NULL.
 *
 * Environment. LOAM_MALLOC_STATS=1 writes the summary at exit. LOAM_MALLOC_HARDENED=1 turns on checks that cost time.
 * LOAM_MALLOC_BACKGROUND=1 starts a thread that returns free memory to the system while the program is idle.
 * LOAM_MALLOC_GUARD_MS=50 puts one block between guard pages every 50 ms. LOAM_MALLOC_APART=FILE gives blocks of the
 * allocation sites in the file cache lines of their own.
 *
 * Threads. The first two functions may be called at any time, from any thread. They read their numbers one after the
 * other, so the numbers may not belong to the same moment. None of the three functions allocates or changes errno.
 */
#ifndef LOAM_MALLOC_H
#define LOAM_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the state of the heap as one JSON object. Writes at most `bytes` characters, the terminating null included,
 * and cuts the rest.
 *
 *   {"schema":1,"allocator":"loam","version":"0.2.0","pid":...,"hardened":false,"reserved_bytes":...,...}
 *
 *   reserved_bytes      addresses reserved
 *   committed_bytes     in use: slab_bytes + large_bytes
 *   dirty_bytes         free, still backed by memory
 *   clean_bytes         free, used before, memory returned to the system
 *   metadata_bytes      the heap's own tables
 *   purged_bytes_total  returned to the system so far
 *   large_blocks        blocks with a span of their own
 *   areas               reservations of addresses
 *   heaps_in_use, heaps_idle   thread heaps
 *   remote_blocks_sent  blocks freed by another thread than their owner
 *
 * returns the length of the whole text without the null, as snprintf() does; 4096 bytes are always enough */
size_t loam_malloc_json(char* buffer, size_t bytes);

/* Writes the same as some lines of aligned text to a file descriptor. */
void loam_malloc_summary(int descriptor);

/* Verifies all structures of the heap. For tests: it is slow, and no other thread may allocate or free meanwhile.
 * returns NULL, or the name of the first invariant that does not hold */
const char* loam_malloc_verify(void);

#ifdef __cplusplus
}
#endif

#endif
