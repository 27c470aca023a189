// unlogged_store: a control. A log is one chunk that is overwritten from its start when it is full: the same enlistments
// and the same stores, and no memory. Nothing can be validated or undone: only for data that one thread has.
#pragma once

#include "runtime/gc/logs/store.hpp"
#include "runtime/platform/pages.hpp"

#include <new>

namespace loam::gc {

class UnloggedStore final : public LogStore {
 public:
  void open(LogBase& log, Mutator&) override {
    auto* const chunk = ::new (platform::map_lazy_or_die(kBytes, "a log's chunk")) LogChunk;
    set_per_chunk(log, (kBytes - sizeof(LogChunk)) / log.entry_bytes());
    append(log, chunk);
  }
  void grow(LogBase& log, Mutator& mutator) override {
    mutator.safepoint();
    set_room(log, chunks(log).back()->data(), limit(log));
    log.set_watermark(0);
  }
  void close(LogBase& log) noexcept override {
    platform::unmap(chunks(log).back(), kBytes);
    chunks(log).clear();
  }

 private:
  static constexpr std::size_t kBytes = 8192;
  void shrink(LogBase&, std::size_t) noexcept override {}
};

}  // namespace loam::gc
