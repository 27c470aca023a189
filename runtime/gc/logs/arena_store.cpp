#include "runtime/gc/logs/arena_store.hpp"

#include "runtime/gc/heap.hpp"
#include "runtime/gc/tx_settings.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>
#include <new>

namespace loam::gc {

// The length of an arena's chunk has no other use, so it holds the bytes that are charged for it.
std::size_t ArenaStore::charged(const LogBase& log) noexcept {
  return chunks(const_cast<LogBase&>(log)).back()->length();
}

void ArenaStore::open(LogBase& log, Mutator& mutator) {
  heap_.charge_logs(mutator, kStep);
  auto* const chunk = ::new (platform::map_lazy_or_die(kAddresses, "a log's arena", {.huge_pages = false})) LogChunk;
  chunk->set_length(kStep);
  set_per_chunk(log, (kAddresses - sizeof(LogChunk)) / log.entry_bytes());
  append(log, chunk);
  set_room(log, chunk->data(), chunk->data() + (kStep - sizeof(LogChunk)) / log.entry_bytes() * log.entry_bytes());
}

void ArenaStore::grow(LogBase& log, Mutator& mutator) {
  mutator.safepoint();
  if (has_room(log)) return;
  LogChunk& chunk = *chunks(log).back();
  const std::size_t step = std::max(kStep, chunk.length() / 4 / kStep * kStep);
  if (chunk.length() + step > kAddresses) throw LogsTooLong(chunk.length() + step, kAddresses);
  heap_.charge_logs(mutator, step);
  if (has_room(log)) return heap_.discharge_logs(step);
  chunk.set_length(chunk.length() + step);
  const std::size_t room = (chunk.length() - sizeof(LogChunk)) / log.entry_bytes() * log.entry_bytes();
  set_room(log, next(log), chunk.data() + room);
}

void ArenaStore::close(LogBase& log) noexcept {
  heap_.discharge_logs(charged(log));
  platform::unmap(chunks(log).back(), kAddresses);
  chunks(log).clear();
}

// An arena of more than four steps gives a half back at the end of a transaction that did not need it. So the memory of a
// long transaction stays for the next long one, and is returned after some short ones.
void ArenaStore::ended(LogBase& log) noexcept {
  LogChunk& chunk = *chunks(log).back();
  const std::size_t used = sizeof(LogChunk) + log.size() * log.entry_bytes();
  const std::size_t half = chunk.length() / 2 / kStep * kStep;
  if (chunk.length() <= 4 * kStep || used > half) return;
  heap_.discharge_logs(cut(log, half));
}

std::size_t ArenaStore::give_back(LogBase& log) noexcept {
  const std::size_t used = sizeof(LogChunk) + (log.size() + 1) * log.entry_bytes();  // with the next entry (L1)
  const std::size_t needed = (used + kStep - 1) / kStep * kStep;
  return needed < charged(log) ? cut(log, needed) : 0;
}

std::size_t ArenaStore::cut(LogBase& log, std::size_t bytes) noexcept {
  LogChunk& chunk = *chunks(log).back();
  const std::size_t rest = chunk.length() - bytes;
  platform::purge(reinterpret_cast<std::byte*>(&chunk) + bytes, rest);
  chunk.set_length(bytes);
  const std::size_t room = (bytes - sizeof(LogChunk)) / log.entry_bytes() * log.entry_bytes();
  set_room(log, next(log), chunk.data() + room);
  return rest;
}

}  // namespace loam::gc
