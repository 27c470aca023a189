#include "runtime/gc/logs/store.hpp"

namespace loam::gc {

void LogStore::append(LogBase& log, LogChunk* chunk) noexcept {
  log.chunks_.push(chunk);
  set_room(log, chunk->data(), chunk->data() + log.per_chunk_ * log.entry_bytes_);
}

void LogStore::truncate(LogBase& log, std::size_t entries) noexcept {
  if (log.chunks_.empty()) return;
  const std::size_t in_chunk = entries % log.per_chunk_;
  std::size_t kept = entries / log.per_chunk_ + 1;
  std::size_t in_last = in_chunk;
  // The last chunk may be full, because memory for the next one was refused.
  if (kept > log.chunks_.size()) {
    --kept;
    in_last = log.per_chunk_;
  }
  if (kept < log.chunks_.size()) {
    shrink(log, kept);
    set_room(log, log.last().data(), log.last().data() + log.per_chunk_ * log.entry_bytes_);
  }
  log.next_ = log.last().data() + in_last * log.entry_bytes_;
  log.watermark_ = std::min(log.watermark_, entries);
}

}  // namespace loam::gc
