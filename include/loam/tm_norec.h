/* loam/tm_norec.h: inline reads and writes for the algorithm norec; a part of tm_inlined.h.
 *
 * An inline access handles the common case of runtime/tm/algorithms/norec.hpp. It calls the function of the same name
 * in every other case:
 *   - no transaction runs, or it runs alone (LOAM_IRREVOCABLE);
 *   - a read-only transaction writes for the first time;
 *   - the transaction may have written this word before, or has written eight words already (not if the access is to a
 *     part of the word that was written last);
 *   - another thread has committed since the snapshot;
 *   - a log is full.
 *
 * Memory orders are those of norec.hpp. An access loads the value with acquire before it loads the sequence number (P2
 * there), so it never takes a new value together with the old sequence number.
 */
#ifndef LOAM_TM_NOREC_H
#define LOAM_TM_NOREC_H

#ifndef LOAM_TM_INLINED_H
#error "loam/tm_norec.h: include loam/tm.h, and compile with -DLOAM_TM_ALGORITHM=norec"
#endif

extern uint64_t loam_norec_sequence __asm__("_ZN4loam2tm14norec_sequenceE"); /* loam::tm::norec_sequence */

/* The index of a word in marks. */
LOAM_INLINED size_t loam_norec_place(uintptr_t word) {
  return ((uint32_t)word * 0x9E3779B1u) >> (32 - LOAM_NOREC_MARKS_LOG2);
}

LOAM_INLINED int loam_norec_may_have_written(const loam_tx* tx, uintptr_t word) {
  return tx->norec_state.marks[loam_norec_place(word)] == tx->norec_state.generation;
}

/* Whether no thread has committed a write since the snapshot: the sequence number is still the snapshot's.
 * relaxed: the caller has loaded its value with acquire, so this load comes after it. */
LOAM_INLINED int loam_norec_holds(const loam_tx* tx) {
  return __atomic_load_n(&loam_norec_sequence, __ATOMIC_RELAXED) == tx->snapshot;
}

/* The last entry of the write set if it is that of `word`, or NULL. Programs often go through the parts of a word in
 * order. */
LOAM_INLINED struct loam_inlined_write* loam_norec_last(const loam_tx* tx, uintptr_t word) {
  struct loam_inlined_write* const last = tx->write_end - 1;
  return last >= tx->norec_state.linear_end - LOAM_NOREC_LINEAR_MAX && (uintptr_t)last->address == word ? last : NULL;
}

/* Whether a read of the bytes `mask` of a word takes them from memory: a transaction runs that logs its accesses, and the
 * write set does not have them. */
LOAM_INLINED int loam_norec_reads_memory(const loam_tx* tx, uintptr_t word, uint64_t mask) {
  const struct loam_inlined_write* last;
  if (!LOAM_INLINED_LIKELY(tx->mode <= LOAM_INLINED_READ_ONLY)) return 0;
  if (LOAM_INLINED_LIKELY(!loam_norec_may_have_written(tx, word))) return 1;
  last = loam_norec_last(tx, word);
  return last != NULL && (last->mask & mask) == 0;
}

/* The bytes of a word that a part of it has, in little-endian order, as everywhere in the library. */
LOAM_INLINED uint64_t loam_norec_mask(const void* address, unsigned bits) {
  return (((uint64_t)1 << bits) - 1) << ((uintptr_t)address & 7) * 8;
}

/* Logs a read of a part of a word. returns 0 if the log is full, or if another thread has committed: then the library
 * does the read */
LOAM_INLINED int loam_norec_log_part(loam_tx* tx, const void* address, uint32_t value, uint32_t bytes) {
  struct loam_norec_part* const entry = tx->norec_state.parts_end;
  if (!LOAM_INLINED_LIKELY(loam_norec_holds(tx)) || !LOAM_INLINED_LIKELY(entry != tx->norec_state.parts_limit))
    return 0;
  entry->address = address;
  entry->value = value;
  entry->bytes = bytes;
  tx->norec_state.parts_end = entry + 1;
  return 1;
}

/* The same of a whole word. */
LOAM_INLINED int loam_norec_log_word(loam_tx* tx, const void* address, uint64_t value) {
  struct loam_norec_read* const entry = tx->norec_state.reads_end;
  if (!LOAM_INLINED_LIKELY(loam_norec_holds(tx)) || !LOAM_INLINED_LIKELY(entry != tx->norec_state.reads_limit))
    return 0;
  entry->address = address;
  entry->value = value;
  tx->norec_state.reads_end = entry + 1;
  return 1;
}

LOAM_INLINED uint64_t loam_inlined_read_u64(loam_tx* tx, const void* address) {
  if (LOAM_INLINED_LIKELY(tx->mode <= LOAM_INLINED_READ_ONLY) &&
      LOAM_INLINED_LIKELY(!loam_norec_may_have_written(tx, (uintptr_t)address))) {
    const uint64_t value = __atomic_load_n((const loam_inlined_u64*)address, __ATOMIC_ACQUIRE);
    if (LOAM_INLINED_LIKELY(loam_norec_log_word(tx, address, value))) return value;
  }
  return loam_tx_read_u64(tx, address);
}

#define LOAM_NOREC_READ(bits)                                                                               \
  LOAM_INLINED uint##bits##_t loam_inlined_read_u##bits(loam_tx* tx, const void* address) {                 \
    if (loam_norec_reads_memory(tx, (uintptr_t)address & ~(uintptr_t)7, loam_norec_mask(address, bits))) {  \
      const uint##bits##_t value = __atomic_load_n((const loam_inlined_u##bits*)address, __ATOMIC_ACQUIRE); \
      if (LOAM_INLINED_LIKELY(loam_norec_log_part(tx, address, value, bits / 8))) return value;             \
    }                                                                                                       \
    return loam_tx_read_u##bits(tx, address);                                                               \
  }
LOAM_NOREC_READ(8)
LOAM_NOREC_READ(16)
LOAM_NOREC_READ(32)
#undef LOAM_NOREC_READ

/* Adds a word to the write set. returns 0 if the word may be there already, if the transaction is not an update, or if
 * there is no place for inline writes: then the library does the write */
LOAM_INLINED int loam_norec_add(loam_tx* tx, uintptr_t word, uint64_t value, uint64_t mask) {
  struct loam_inlined_write* const entry = tx->write_end;
  if (!LOAM_INLINED_LIKELY(tx->mode <= LOAM_INLINED_NESTED) ||
      !LOAM_INLINED_LIKELY(!loam_norec_may_have_written(tx, word)) ||
      !LOAM_INLINED_LIKELY(entry < tx->norec_state.linear_end))
    return 0;
  entry->address = (void*)word;
  entry->value = value;
  entry->mask = mask;
  entry->record = &tx->no_record;
  entry->next = NULL;
  tx->norec_state.marks[loam_norec_place(word)] = tx->norec_state.generation;
  tx->write_end = entry + 1;
  return 1;
}

LOAM_INLINED void loam_inlined_write_u64(loam_tx* tx, void* address, uint64_t value) {
  if (!LOAM_INLINED_LIKELY(loam_norec_add(tx, (uintptr_t)address, value, ~(uint64_t)0)))
    loam_tx_write_u64(tx, address, value);
}

/* Adds a part of a word to the write set, or to its last entry. A write of a part marks the transaction as special: its
 * commit writes only these bytes of the word. returns 0 where the library does the write: as loam_norec_add(), and in a
 * part of the transaction that would have to keep the entry as it was */
LOAM_INLINED int loam_norec_add_part(loam_tx* tx, uintptr_t word, uint64_t value, uint64_t mask) {
  if (!LOAM_INLINED_LIKELY(loam_norec_add(tx, word, value, mask))) {
    struct loam_inlined_write* const last = tx->mode == LOAM_INLINED_UPDATE ? loam_norec_last(tx, word) : NULL;
    if (last == NULL) return 0;
    last->value = (last->value & ~mask) | value;
    last->mask |= mask;
  }
  tx->special = 1;
  return 1;
}

#define LOAM_NOREC_WRITE(bits)                                                                          \
  LOAM_INLINED void loam_inlined_write_u##bits(loam_tx* tx, void* address, uint##bits##_t value) {      \
    const uint64_t mask = loam_norec_mask(address, bits);                                               \
    const uint64_t bytes = (uint64_t)value << ((uintptr_t)address & 7) * 8;                             \
    if (!LOAM_INLINED_LIKELY(loam_norec_add_part(tx, (uintptr_t)address & ~(uintptr_t)7, bytes, mask))) \
      loam_tx_write_u##bits(tx, address, value);                                                        \
  }
LOAM_NOREC_WRITE(8)
LOAM_NOREC_WRITE(16)
LOAM_NOREC_WRITE(32)
#undef LOAM_NOREC_WRITE

#endif
