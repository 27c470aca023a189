/* bank: threads move money between accounts, between loam_tx_begin() and loam_tx_commit(); a transfer that the account
 * cannot pay is cancelled. Whoever adds all accounts up meanwhile always sees the same sum. */
#include "example.h"

enum { ACCOUNTS = 64, TELLERS = 3, TRANSFERS = 20000, OPENING = 1000 };

static uint64_t balances[ACCOUNTS];
static uint64_t tellers_at_work = TELLERS;

/* returns 0 if the account does not have the amount */
static int transfer(uint64_t* from, uint64_t* to, uint64_t amount) {
  loam_tx_frame frame;
  if (!loam_tx_begin(&frame, 0)) return 0;
  loam_tx_write_u64(frame.tx, to, loam_tx_read_u64(frame.tx, to) + amount);
  if (loam_tx_read_u64(frame.tx, from) < amount) loam_tx_cancel(frame.tx);
  loam_tx_write_u64(frame.tx, from, loam_tx_read_u64(frame.tx, from) - amount);
  loam_tx_commit(&frame);
  return 1;
}

struct audit {
  uint64_t sum, tellers;
};

static void audit(loam_tx* tx, void* argument) {
  struct audit* result = argument;
  result->sum = 0;
  for (int i = 0; i < ACCOUNTS; ++i) result->sum += loam_tx_read_u64(tx, &balances[i]);
  result->tellers = loam_tx_read_u64(tx, &tellers_at_work);
}

static void go_home(loam_tx* tx, void* nothing) {
  (void)nothing;
  loam_tx_write_u64(tx, &tellers_at_work, loam_tx_read_u64(tx, &tellers_at_work) - 1);
}

static void* teller(void* argument) {
  unsigned seed = *(unsigned*)argument;
  for (int i = 0; i < TRANSFERS; ++i) {
    const unsigned from = random_below(&seed, ACCOUNTS), to = random_below(&seed, ACCOUNTS);
    if (from != to) transfer(&balances[from], &balances[to], 1 + random_below(&seed, 600));
  }
  loam_atomically(go_home, NULL, 0);
  return NULL;
}

int main(int argc, char** argv) {
  choose_algorithm(argc, argv);
  for (int i = 0; i < ACCOUNTS; ++i) balances[i] = OPENING;
  pthread_t tellers[TELLERS];
  unsigned seeds[TELLERS];
  for (int t = 0; t < TELLERS; ++t) {
    seeds[t] = (unsigned)t + 1;
    tellers[t] = start(teller, &seeds[t]);
  }
  struct audit now;
  unsigned wrong = 0;
  do {
    loam_atomically(audit, &now, LOAM_READ_ONLY);
    wrong += now.sum != (uint64_t)ACCOUNTS * OPENING;
  } while (now.tellers != 0);
  for (int t = 0; t < TELLERS; ++t) pthread_join(tellers[t], NULL);
  printf("%s: total %llu, wrong sums seen %u\n", loam_algorithm_in_use(), (unsigned long long)now.sum, wrong);
  return wrong == 0 ? 0 : 1;
}
