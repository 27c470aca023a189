/* loam/malloc.h: what Loam's malloc tells of itself (C11 or later, C++).
 *
 * Link libloam-malloc.so (CMake: loam::malloc, pkg-config: loam-malloc), or preload it under a program as it is:
 *
 *   LD_PRELOAD=/usr/local/lib/libloam-malloc.so your-program
 *
 * malloc, free, operator new and the rest of the family are then Loam's. Nothing of this header is needed for that: it
 * is for programs that want to look. A program that also runs without the library declares what it uses weak, and
 * compares the address with NULL.
 *
 * Environment. LOAM_MALLOC_STATS=1 writes the summary at exit, LOAM_MALLOC_HARDENED=1 turns on checks that cost time,
 * LOAM_MALLOC_BACKGROUND=1 starts a thread that gives free memory back while the program rests, LOAM_MALLOC_GUARD_MS=50
 * puts a block between guard pages every 50 ms.
 *
 * Threads. The first two functions may be called at any time, from any thread; what they tell is a snapshot whose
 * numbers were read one after the other. None of the three allocates, and all keep errno.
 */
#ifndef LOAM_MALLOC_H
#define LOAM_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what the heap holds as one JSON object, at most `bytes` characters with the terminating null; more is cut.
 *   {"schema":1,"allocator":"loam","version":"0.2.0","pid":...,"hardened":false,"reserved_bytes":...,...}
 * Numbers of bytes: reserved_bytes (addresses), committed_bytes (in use: slab_bytes and large_bytes), dirty_bytes
 * (free, still backed by memory), clean_bytes (free, once used, given back), metadata_bytes, purged_bytes_total (given back so
 * far). Others: large_blocks, areas (reservations), heaps_in_use and heaps_idle (of threads), remote_blocks_sent (freed
 * by another thread than their owner).
 *
 * returns the length of the whole text without the null, as snprintf() does; 4096 bytes are always enough */
size_t loam_malloc_json(char* buffer, size_t bytes);

/* Writes the same for people, some lines of aligned text, to a file descriptor. */
void loam_malloc_summary(int descriptor);

/* Walks all of the heap's structures: a test's, slow, and only while no other thread allocates or frees.
 * returns NULL, or the name of the first invariant that does not hold */
const char* loam_malloc_verify(void);

#ifdef __cplusplus
}
#endif

#endif
