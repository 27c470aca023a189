/* loam/tm_records.h: inline reads and writes for the algorithms etl-wb and dctl; a part of tm_inlined.h.
 *
 * An inline access handles the common case of runtime/tm/algorithms/etl_wb.hpp. It calls the function of the same name
 * in every other case:
 *   - no transaction runs, or it runs alone (LOAM_IRREVOCABLE);
 *   - a read-only transaction writes for the first time;
 *   - the record of the word is locked, by this transaction or by another, or newer than the snapshot;
 *   - a write in a part of a transaction (loam_tx_closed), and one of less than a word;
 *   - a log is full.
 *
 * Memory orders are those of etl_wb.hpp and dctl.hpp. A read loads the record with acquire before the value (P1), and
 * the value with acquire before it compares the record (P2). Under dctl the record is loaded and locked with seq_cst (P3
 * there).
 */
#ifndef LOAM_TM_RECORDS_H
#define LOAM_TM_RECORDS_H

#ifndef LOAM_TM_INLINED_H
#error "loam/tm_records.h: include loam/tm.h, and compile with -DLOAM_TM_ALGORITHM=etl-wb or =dctl"
#endif

extern struct loam_inlined_records loam_inlined_records __asm__("_ZN4loam2tm6sharedE"); /* loam::tm::shared.map */

LOAM_INLINED uint64_t* loam_records_of(const void* address) {
  return loam_inlined_records.base + (((uintptr_t)address >> loam_inlined_records.shift) & loam_inlined_records.mask);
}

/* Whether a value is valid that was loaded since the record was seen as `before`, a version up to the snapshot. Logs the
 * read in an update. relaxed: the caller has loaded the value with acquire, so this load comes after it. */
LOAM_INLINED int loam_records_take(loam_tx* tx, uint64_t* record, uint64_t before) {
  uint64_t** const entry = tx->records_end;
  if (!LOAM_INLINED_LIKELY(__atomic_load_n(record, __ATOMIC_RELAXED) == before)) return 0;
  if (tx->mode > LOAM_INLINED_NESTED) return tx->mode == LOAM_INLINED_READ_ONLY; /* keeps no log */
  if (!LOAM_INLINED_LIKELY(entry != tx->records_limit)) return 0;
  *entry = record;
  tx->records_end = entry + 1;
  return 1;
}

#define LOAM_RECORDS_READ(bits)                                                                             \
  LOAM_INLINED uint##bits##_t loam_inlined_read_u##bits(loam_tx* tx, const void* address) {                 \
    uint64_t* const record = loam_records_of(address);                                                      \
    const uint64_t before = __atomic_load_n(record, LOAM_RECORDS_LOAD);                                     \
    if (LOAM_INLINED_LIKELY(before <= tx->snapshot)) {                                                      \
      const uint##bits##_t value = __atomic_load_n((const loam_inlined_u##bits*)address, __ATOMIC_ACQUIRE); \
      if (LOAM_INLINED_LIKELY(loam_records_take(tx, record, before))) return value;                         \
    }                                                                                                       \
    return loam_tx_read_u##bits(tx, address);                                                               \
  }
LOAM_RECORDS_READ(8)
LOAM_RECORDS_READ(16)
LOAM_RECORDS_READ(32)
LOAM_RECORDS_READ(64)
#undef LOAM_RECORDS_READ

/* Locks the record of a word that no transaction has locked, and adds the word to the write set. returns 0 otherwise:
 * then the library does the write. relaxed: the exchange publishes the entry to threads that find the lock */
LOAM_INLINED int loam_records_lock(loam_tx* tx, void* word, uint64_t value) {
  uint64_t* const record = loam_records_of(word);
  uint64_t version = __atomic_load_n(record, __ATOMIC_RELAXED); /* relaxed: the exchange decides */
  struct loam_inlined_write* const entry = tx->write_end;
  if (!LOAM_INLINED_LIKELY(version <= tx->snapshot) || !LOAM_INLINED_LIKELY(tx->mode == LOAM_INLINED_UPDATE) ||
      !LOAM_INLINED_LIKELY(entry + 1 != tx->write_limit))
    return 0;
  __atomic_store_n(&entry->address, word, __ATOMIC_RELAXED);
  entry->value = value;
  entry->mask = ~(uint64_t)0;
  entry->record = record;
  entry->old_version = version;
  __atomic_store_n(&entry->next, (struct loam_inlined_write*)NULL, __ATOMIC_RELAXED);
  if (!LOAM_INLINED_LIKELY(__atomic_compare_exchange_n(record, &version, tx->locked_word | (uintptr_t)entry, 0,
                                                       LOAM_RECORDS_LOCK, __ATOMIC_RELAXED)))
    return 0;
  tx->write_end = entry + 1;
  return 1;
}

LOAM_INLINED void loam_inlined_write_u64(loam_tx* tx, void* address, uint64_t value) {
  if (!LOAM_INLINED_LIKELY(loam_records_lock(tx, address, value))) loam_tx_write_u64(tx, address, value);
}

/* The rest of the word has to be loaded once the record is locked, which may lie behind the end of an object: sanitizers
 * let the library do that. */
#define LOAM_RECORDS_WRITE(bits)                                                                   \
  LOAM_INLINED void loam_inlined_write_u##bits(loam_tx* tx, void* address, uint##bits##_t value) { \
    loam_tx_write_u##bits(tx, address, value);                                                     \
  }
LOAM_RECORDS_WRITE(8)
LOAM_RECORDS_WRITE(16)
LOAM_RECORDS_WRITE(32)
#undef LOAM_RECORDS_WRITE

#endif
