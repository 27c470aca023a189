/* queue: producers and consumers over a bounded queue. Who finds it full, or empty, retries: its thread sleeps until
 * somebody has changed what it read. */
#include "example.h"

enum { CAPACITY = 8, ITEMS = 5000, PRODUCERS = 2, CONSUMERS = 2, STOP = 0 };

static uint64_t ring[CAPACITY], begin, end;

static void push(loam_tx* tx, void* argument) {
  const uint64_t at = loam_tx_read_u64(tx, &end);
  if (at - loam_tx_read_u64(tx, &begin) == CAPACITY) loam_tx_retry(tx);
  loam_tx_write_u64(tx, &ring[at % CAPACITY], *(uint64_t*)argument);
  loam_tx_write_u64(tx, &end, at + 1);
}

static void pop(loam_tx* tx, void* argument) {
  const uint64_t at = loam_tx_read_u64(tx, &begin);
  if (at == loam_tx_read_u64(tx, &end)) loam_tx_retry(tx);
  *(uint64_t*)argument = loam_tx_read_u64(tx, &ring[at % CAPACITY]);
  loam_tx_write_u64(tx, &begin, at + 1);
}

static void* producer(void* nothing) {
  (void)nothing;
  for (uint64_t i = 1; i <= ITEMS; ++i) loam_atomically(push, &i, 0);
  return NULL;
}

static void* consumer(void* argument) {
  uint64_t *sum = argument, item;
  for (;;) {
    loam_atomically(pop, &item, 0);
    if (item == STOP) return NULL;
    *sum += item;
  }
}

int main(int argc, char** argv) {
  choose_algorithm(argc, argv);
  pthread_t producers[PRODUCERS], consumers[CONSUMERS];
  uint64_t sums[CONSUMERS] = {0}, stop = STOP, sum = 0;
  for (int c = 0; c < CONSUMERS; ++c) consumers[c] = start(consumer, &sums[c]);
  for (int p = 0; p < PRODUCERS; ++p) producers[p] = start(producer, NULL);
  for (int p = 0; p < PRODUCERS; ++p) pthread_join(producers[p], NULL);
  for (int c = 0; c < CONSUMERS; ++c) loam_atomically(push, &stop, 0);
  for (int c = 0; c < CONSUMERS; ++c) {
    pthread_join(consumers[c], NULL);
    sum += sums[c];
  }
  printf("%s: sum %llu\n", loam_algorithm_in_use(), (unsigned long long)sum);
  return sum == (uint64_t)PRODUCERS * ITEMS * (ITEMS + 1) / 2 ? 0 : 1;
}
