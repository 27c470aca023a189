/* list: a sorted linked list that threads insert into and delete from, with transactional malloc and free. */
#include "example.h"

enum { THREADS = 3, STEPS = 20000, KEYS = 128 };

struct node {
  struct node* next;
  uint32_t key;
};

static struct node* head;

struct request {
  uint32_t key;
  int done;
};

/* The link that leads to the first node whose key is at least `key`. */
static struct node** find(loam_tx* tx, uint32_t key) {
  struct node **link = &head, *node;
  while ((node = loam_tx_read_ptr(tx, link)) != NULL && loam_tx_read_u32(tx, &node->key) < key) link = &node->next;
  return link;
}

static void insert(loam_tx* tx, void* argument) {
  struct request* request = argument;
  struct node **link = find(tx, request->key), *next = loam_tx_read_ptr(tx, link);
  request->done = next == NULL || loam_tx_read_u32(tx, &next->key) != request->key;
  if (!request->done) return;
  struct node* node = loam_tx_malloc(tx, sizeof *node);
  if (node == NULL) loam_tx_cancel(tx);
  /* Nobody else knows the node yet. */
  node->next = next;
  node->key = request->key;
  loam_tx_write_ptr(tx, link, node);
}

static void delete(loam_tx* tx, void* argument) {
  struct request* request = argument;
  struct node **link = find(tx, request->key), *node = loam_tx_read_ptr(tx, link);
  request->done = node != NULL && loam_tx_read_u32(tx, &node->key) == request->key;
  if (!request->done) return;
  loam_tx_write_ptr(tx, link, loam_tx_read_ptr(tx, &node->next));
  loam_tx_free(tx, node);
}

struct worker {
  unsigned seed;
  long grown;
};

static void* work(void* argument) {
  struct worker* self = argument;
  for (int i = 0; i < STEPS; ++i) {
    struct request request = {1 + random_below(&self->seed, KEYS), 0};
    const int inserts = random_below(&self->seed, 2) == 0;
    if (loam_atomically(inserts ? insert : delete, &request, 0) != LOAM_COMMITTED) abort();
    self->grown += inserts ? request.done : -request.done;
  }
  return NULL;
}

int main(int argc, char** argv) {
  choose_algorithm(argc, argv);
  pthread_t threads[THREADS];
  struct worker workers[THREADS];
  for (int t = 0; t < THREADS; ++t) {
    workers[t] = (struct worker){(unsigned)t + 1, 0};
    threads[t] = start(work, &workers[t]);
  }
  long expected = 0, size = 0;
  for (int t = 0; t < THREADS; ++t) {
    pthread_join(threads[t], NULL);
    expected += workers[t].grown;
  }
  loam_quiesce();
  /* The threads have ended: plain reads will do. */
  int sorted = 1;
  for (struct node* node = head; node != NULL; node = node->next, ++size)
    sorted &= node->next == NULL || node->key < node->next->key;
  loam_statistics s;
  loam_statistics_of_process(&s);
  printf("%s: keys %ld, blocks allocated %llu, freed %llu\n", loam_algorithm_in_use(), size,
         (unsigned long long)s.blocks_allocated, (unsigned long long)s.blocks_freed);
  return sorted && size == expected && s.blocks_allocated - s.blocks_freed == (uint64_t)size ? 0 : 1;
}
