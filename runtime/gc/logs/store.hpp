// LogStore: where the chunks of logs lie. One file each:
//   heap_store       in the collected heap: the baseline, as library-based memories have them
//   dedicated_store  chunks of one size from a free list of all threads, outside of the heap
//   arena_store      a range of addresses for each log, one chunk that grows
//   unlogged_store   a control for private data: what is logged is overwritten
#pragma once

#include "runtime/gc/collector.hpp"
#include "runtime/gc/logs/log.hpp"
#include "runtime/gc/mutator.hpp"

#include <cstddef>

namespace loam::gc {

class LogStore {
 public:
  virtual ~LogStore() = default;
  // The first chunk of a log; throws OutOfMemory.
  virtual void open(LogBase& log, Mutator& mutator) = 0;
  // Room for one entry more at least. May collect; throws OutOfMemory, and the log is as it was.
  virtual void grow(LogBase& log, Mutator& mutator) = 0;
  virtual void close(LogBase& log) noexcept = 0;
  // Cuts the log to `entries` entries. Chunks that it does not need any more may be freed.
  void truncate(LogBase& log, std::size_t entries) noexcept;
  // Called at the end of a transaction, before its log is emptied: memory that was not needed may be freed.
  virtual void ended(LogBase&) noexcept {}
  // While the world is stopped: chunks that the collector moves, or a backend keeps.
  virtual void visit_chunks(LogBase&, Collector&) {}
  virtual void keep_chunks(LogBase&, const Backend&) {}
  // While the world is stopped: gives memory outside of the heap that contains no entry back to the system: memory of
  // this log, or free memory of all logs. returns its size, which is still charged to the heap
  virtual std::size_t give_back(LogBase&) noexcept { return 0; }

 protected:
  // Frees the chunks beyond the first `kept`, and sets the log's last chunk.
  virtual void shrink(LogBase& log, std::size_t kept) noexcept = 0;

  static void set_per_chunk(LogBase& log, std::size_t entries) noexcept { log.per_chunk_ = entries; }
  static OsVector<LogChunk*>& chunks(LogBase& log) noexcept { return log.chunks_; }
  static std::size_t per_chunk(const LogBase& log) noexcept { return log.per_chunk_; }
  static void set_room(LogBase& log, std::byte* next, std::byte* limit) noexcept {
    log.next_ = next;
    log.limit_ = limit;
  }
  static std::byte* next(const LogBase& log) noexcept { return log.next_; }
  static std::byte* limit(const LogBase& log) noexcept { return log.limit_; }
  // Whether the log has room: a collection in between may have removed entries.
  static bool has_room(const LogBase& log) noexcept { return log.next_ != log.limit_; }
  // Appends a chunk of `bytes` of data.
  static void append(LogBase& log, LogChunk* chunk) noexcept;
};

}  // namespace loam::gc
