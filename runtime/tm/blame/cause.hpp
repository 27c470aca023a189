// cause: why an attempt cannot accept a record. For algorithms whose locked records hold the address of the owner's
// write entry.
//   If the record is locked, the owner's entries tell which words it writes. A version only tells that the stripe was
//   written: blame runs keep which word it was (blame.hpp); other runs count the abort as unknown.
#pragma once

#include "runtime/tm/blame/blame.hpp"
#include "runtime/tm/blame/explain.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/runtime.hpp"

namespace loam::tm {

// At most this many entries of another thread's chain are read, because that thread may change it meanwhile.
inline constexpr unsigned kChainStepsMax = 64;

// The write because of which `record` was `seen` locked or newer, when `word` was to be read or written.
template <bool kBlame>
blame::Suspect suspect_of(const Descriptor& d, const Orec& record, std::uint64_t seen, const Word* word) noexcept {
  blame::Suspect suspect;
  if (is_locked(seen) && !is_locked_by(seen, d.slot)) {
    // The owner may have gone on since: what its next transaction put there is passed over unless it is about the same
    // record.
    const WriteEntry* entry = first_entry(seen);
    for (unsigned steps = 0; entry != nullptr && steps < kChainStepsMax; ++steps) {
      const Word* const theirs = entry->address.load(std::memory_order_relaxed);
      if (theirs != nullptr && &shared.map.record(theirs) == &record)
        suspect = blame::closer(
            suspect, {.cause = blame::relation(word, theirs), .word = theirs, .slot = owner_of(seen), .locked = true});
      entry = entry->next.load(std::memory_order_relaxed);
    }
  }
  if constexpr (kBlame) suspect = blame::closer(suspect, blame::suspect_of_version(record, word, d.snapshot));
  return suspect;
}

// `record`, which guards `word`, was `seen`: locked by another thread, or with a version after the snapshot. The
// attempt is about to abort: a run that explains keeps the conflict.
//   Of the words behind the record that the attempt has read, the one closest to what was written counts, not the one
//   at which this came out: with a record for each word the attempt would abort because of that one. What a read-only
//   attempt has read stays valid at its snapshot, so there only the word at hand counts.
template <bool kBlame>
AbortCause cause_of(const Descriptor& d, const Orec& record, std::uint64_t seen, const Word* word) noexcept {
  blame::Suspect suspect = suspect_of<kBlame>(d, record, seen, word);
  if constexpr (kBlame) {
    const Word* mine = word;
    if (d.mode != Mode::read_only && d.read_cursor != nullptr) {
      for (Orec* const* entry = d.reads.begin(); entry != d.read_cursor; ++entry) {
        if (suspect.cause == AbortCause::same_word) break;
        const Word* const read = d.read_addresses.begin()[entry - d.reads.begin()];
        if (*entry != &record || read == mine) continue;
        const blame::Suspect other = suspect_of<kBlame>(d, record, seen, read);
        if (other.cause >= suspect.cause) continue;
        suspect = other;
        mine = read;
      }
    }
    if (explain::every != 0) explain::conflict(d, record, mine, suspect);
  }
  return suspect.cause;
}

}  // namespace loam::tm
