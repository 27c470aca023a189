// heap_store: chunks are objects of the collected heap. They fill the nursery, are copied and promoted, and make the
// next collection come earlier. The first chunk of each log is kept. This is the system with which paper 002 begins.
//   Cost  a chunk: an allocation of its size, zeroed, and a copy at each collection that it survives (both halves).
#pragma once

#include "runtime/gc/backend.hpp"
#include "runtime/gc/logs/store.hpp"

namespace loam::gc {

class HeapStore final : public LogStore {
 public:
  explicit HeapStore(std::size_t chunk_bytes) noexcept : chunk_bytes_(chunk_bytes) {}

  void open(LogBase& log, Mutator& mutator) override {
    set_per_chunk(log, (chunk_bytes_ - sizeof(LogChunk)) / log.entry_bytes());
    grow(log, mutator);
  }
  void grow(LogBase& log, Mutator& mutator) override {
    const std::size_t bytes = chunk_bytes_ - sizeof(LogChunk);
    // The allocation may collect, and finds the log as it is: full.
    auto* const chunk = static_cast<LogChunk*>(mutator.allocate_chunk(chunk_bytes_, kDescriptorOf<LogChunk>));
    chunk->set_length(bytes);
    if (has_room(log)) return;
    append(log, chunk);
  }
  void close(LogBase& log) noexcept override { chunks(log).clear(); }
  void visit_chunks(LogBase& log, Collector& collector) override {
    if (chunks(log).empty()) return;
    const auto used = next(log) - chunks(log).back()->data();
    for (LogChunk*& chunk : chunks(log)) chunk = static_cast<LogChunk*>(collector.visit_chunk(chunk));
    std::byte* const data = chunks(log).back()->data();
    set_room(log, data + used, data + per_chunk(log) * log.entry_bytes());
  }
  void keep_chunks(LogBase& log, const Backend& backend) override {
    for (LogChunk* const chunk : chunks(log)) backend.keep(chunk);
  }

 private:
  void shrink(LogBase& log, std::size_t kept) noexcept override { chunks(log).resize_down(kept); }

  const std::size_t chunk_bytes_;
};

}  // namespace loam::gc
