// Transaction::sift: removes entries from a log; the other entries move down.
#pragma once

#include "runtime/gc/tx/transaction.hpp"

#include <cstddef>

namespace loam::gc {

// Keeps the entries from `first` on for which keep(entry) is true. counts: the levels' numbers of entries, which are
// adjusted
template <class Entry, class Keep>
void Transaction::sift(LogStore& store, Log<Entry>& log, std::size_t Level::* counts, std::size_t first, Keep keep) {
  const std::size_t size = log.size();
  std::size_t kept = first;
  unsigned level = 0;
  while (level < depth_ && levels_[level].*counts < first) ++level;
  if (first == size) return;
  typename Log<Entry>::Cursor place(log, first);
  log.for_each(first, size, [&](Entry& entry, std::size_t number) {
    for (; level < depth_ && levels_[level].*counts == number; ++level) levels_[level].*counts = kept;
    if (!keep(entry, *place)) return;
    ++kept;
    place.advance();
  });
  for (; level < depth_; ++level) levels_[level].*counts = kept;
  if (kept != size) store.truncate(log, kept);
}

}  // namespace loam::gc
