/* accounts: threads move money between the accounts of a bank, under any scheme: `accounts [SCHEME]`. No mutex. */
#include <loam/delegation.h>

#include <pthread.h>
#include <stdio.h>

enum { ACCOUNTS = 8, THREADS = 3, TRANSFERS = 5000 };

struct bank {
  long balance[ACCOUNTS];
  long transfers;
};

struct transfer {
  int from, to;
  long amount;
};

static void move(void* object, void* argument) {
  struct bank* bank = object;
  const struct transfer* transfer = argument;
  bank->balance[transfer->from] -= transfer->amount;
  bank->balance[transfer->to] += transfer->amount;
  ++bank->transfers;
}

static void audit(void* object, void* argument) {
  const struct bank* bank = object;
  long* total = argument;
  *total = 0;
  for (int i = 0; i < ACCOUNTS; ++i) *total += bank->balance[i];
}

static void* work(void* argument) {
  loam_delegation* bank = argument;
  for (int i = 0; i < TRANSFERS; ++i) {
    struct transfer transfer = {i % ACCOUNTS, (i + 3) % ACCOUNTS, i % 7};
    if (loam_delegation_apply(bank, move, &transfer) != LOAM_DELEGATION_OK) {
      fprintf(stderr, "accounts: %s\n", loam_delegation_error());
      break;
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  struct bank money = {{100, 100, 100, 100, 100, 100, 100, 100}, 0};
  loam_delegation* bank = loam_delegation_new(&money, argc > 1 ? argv[1] : NULL, NULL);
  if (bank == NULL) {
    fprintf(stderr, "accounts: %s\n", loam_delegation_error());
    return 2;
  }
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], NULL, work, bank) != 0) return 1;
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);

  /* In flight: at a scheme with a server this thread could do something else meanwhile. */
  long total = 0;
  loam_ticket* ticket = loam_delegation_submit(bank, audit, &total, NULL);
  if (ticket == NULL || loam_ticket_wait(ticket) != LOAM_DELEGATION_OK) return 1;
  loam_delegation_free(bank);
  printf("%s: %ld transfers, %ld in all accounts\n", argc > 1 ? argv[1] : "cc-synch", money.transfers, total);
  return money.transfers == THREADS * TRANSFERS && total == ACCOUNTS * 100 ? 0 : 1;
}
