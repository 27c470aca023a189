/* bump: the custom allocator of paper 001 (section 2.3): each thread owns a region and cuts blocks of fixed sizes from it.
 * A freed block goes to the list of its size of the thread that frees it; nothing is given back before the thread ends, and
 * then its lists and what is left of its region serve the next thread that begins.
 *   Cost  a malloc or free is some ten instructions without any atomic operation.
 *   When not  everything but this measurement: memory never shrinks, and a thread that only frees collects what others
 *   only allocate.
 * Sizes: powers of two from 32 bytes to 64 KiB, header included; larger blocks are mappings of their own.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define SHOWN __attribute__((visibility("default")))
#define LOCAL static __thread __attribute__((tls_model("initial-exec")))

enum { HEADER = 16, CLASS_MIN = 5, CLASS_MAX = 16, CLASSES = CLASS_MAX + 1, LARGE = 255 };
#define REGION_BYTES ((size_t)64 << 20)
#define PAGE ((size_t)4096)

/* In front of each block. start: of the mapping of a large one, which has `bytes`; of an aligned block, of its own memory. */
struct header {
  void* start;
  uint64_t word; /* class in the lowest 8 bits, usable bytes above */
};
_Static_assert(sizeof(struct header) == HEADER, "blocks are aligned to 16 bytes");

struct cache {
  void* free[CLASSES];
  char *at, *end;
  struct cache* next; /* of those whose thread has ended */
};

LOCAL struct cache* mine;
static struct cache* left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
SHOWN const char loam_bump_version[] = "loam bump 1.0.0";

static void* map(size_t bytes) {
  void* const start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? NULL : start;
}

static void thread_ends(void* cache) {
  struct cache* const ended = cache;
  pthread_mutex_lock(&lock);
  ended->next = left;
  left = ended;
  mine = NULL;
  pthread_mutex_unlock(&lock);
}

/* A child of a fork has one thread, and perhaps a locked lock. */
static void in_child(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

static void make_key(void) {
  pthread_key_create(&key, thread_ends);
  pthread_atfork(NULL, NULL, in_child);
}

static struct cache* cache_slow(void) {
  pthread_mutex_lock(&lock);
  struct cache* cache = left;
  if (cache != NULL) left = cache->next;
  pthread_mutex_unlock(&lock);
  if (cache == NULL) {
    cache = map(REGION_BYTES);
    if (cache == NULL) return NULL;
    cache->at = (char*)cache + (sizeof *cache + PAGE - 1) / PAGE * PAGE;
    cache->end = (char*)cache + REGION_BYTES;
  }
  mine = cache; /* before what follows, which may allocate */
  pthread_once(&once, make_key);
  pthread_setspecific(key, cache);
  return cache;
}

static struct header* header_of(void* block) { return (struct header*)((char*)block - HEADER); }

static void* large(size_t bytes) {
  if (bytes > PTRDIFF_MAX - 2 * PAGE) return NULL;
  const size_t whole = (bytes + HEADER + PAGE - 1) / PAGE * PAGE;
  struct header* const header = map(whole);
  if (header == NULL) return NULL;
  header->start = header;
  header->word = (uint64_t)(whole - HEADER) << 8 | LARGE;
  return header + 1;
}

static unsigned class_of(size_t bytes) {
  const size_t whole = bytes + HEADER;
  return whole <= (size_t)1 << CLASS_MIN ? CLASS_MIN : 64 - (unsigned)__builtin_clzll(whole - 1);
}

static void* cut(struct cache* cache, unsigned class) {
  const size_t bytes = (size_t)1 << class;
  if ((size_t)(cache->end - cache->at) < bytes) {
    char* const region = map(REGION_BYTES);
    if (region == NULL) return NULL;
    cache->at = region;
    cache->end = region + REGION_BYTES;
  }
  struct header* const header = (struct header*)cache->at;
  cache->at += bytes;
  header->start = header;
  header->word = (uint64_t)(bytes - HEADER) << 8 | class;
  return header + 1;
}

static void* allocate(size_t bytes) {
  if (__builtin_expect(bytes > ((size_t)1 << CLASS_MAX) - HEADER, 0)) return large(bytes);
  const unsigned class = class_of(bytes);
  struct cache* cache = mine;
  if (__builtin_expect(cache == NULL, 0) && (cache = cache_slow()) == NULL) return NULL;
  void* const block = cache->free[class];
  if (__builtin_expect(block == NULL, 0)) return cut(cache, class);
  cache->free[class] = *(void**)block;
  return block;
}

SHOWN void free(void* block) {
  if (block == NULL) return;
  struct header* const header = header_of(block);
  const unsigned class = header->word & 255;
  if (__builtin_expect(class == LARGE, 0)) {
    const int before = errno;
    munmap(header->start, (size_t)((char*)block - (char*)header->start) + (size_t)(header->word >> 8));
    errno = before;
    return;
  }
  /* Of an aligned block, the memory that it was cut from. */
  if (__builtin_expect(header->start != header, 0)) block = (struct header*)header->start + 1;
  struct cache* cache = mine;
  if (__builtin_expect(cache == NULL, 0) && (cache = cache_slow()) == NULL) return; /* lost, as in a full process */
  *(void**)block = cache->free[class];
  cache->free[class] = block;
}

SHOWN void* malloc(size_t bytes) {
  void* const block = allocate(bytes);
  if (__builtin_expect(block == NULL, 0)) errno = ENOMEM;
  return block;
}

SHOWN void* calloc(size_t count, size_t each) {
  size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  void* const block = malloc(bytes);
  if (block != NULL && (header_of(block)->word & 255) != LARGE) memset(block, 0, bytes);
  return block;
}

SHOWN size_t malloc_usable_size(void* block) { return block == NULL ? 0 : (size_t)(header_of(block)->word >> 8); }

SHOWN void* realloc(void* block, size_t bytes) {
  if (block == NULL) return malloc(bytes);
  if (bytes == 0) {
    free(block);
    return NULL;
  }
  const size_t has = malloc_usable_size(block);
  if (bytes <= has) return block;
  void* const longer = malloc(bytes);
  if (longer == NULL) return NULL;
  memcpy(longer, block, has);
  free(block);
  return longer;
}

SHOWN void* aligned_alloc(size_t alignment, size_t bytes) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    errno = EINVAL;
    return NULL;
  }
  if (alignment <= HEADER) return malloc(bytes);
  size_t whole;
  if (__builtin_add_overflow(bytes, alignment + HEADER, &whole)) {
    errno = ENOMEM;
    return NULL;
  }
  char* const block = malloc(whole);
  if (block == NULL) return NULL;
  char* const aligned = (char*)(((uintptr_t)block + alignment - 1) & ~(uintptr_t)(alignment - 1));
  if (aligned == block) return block;
  /* At least 16 bytes lie between: blocks are aligned to these. */
  const struct header own = *header_of(block);
  header_of(aligned)->start = own.start;
  header_of(aligned)->word = (uint64_t)((size_t)(own.word >> 8) - (size_t)(aligned - block)) << 8 | (own.word & 255);
  return aligned;
}

SHOWN void* memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
SHOWN void* valloc(size_t bytes) { return aligned_alloc(PAGE, bytes); }
SHOWN void* pvalloc(size_t bytes) { return aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE); }

SHOWN int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  const int before = errno;
  void* const block = aligned_alloc(alignment, bytes);
  errno = before;
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}
