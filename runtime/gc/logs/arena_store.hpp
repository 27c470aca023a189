// arena_store: each log has a range of addresses of its own and is one chunk that grows. No list, no lock; a log is
// contiguous. Memory is taken in steps, charged to the heap, and given back above what the last transactions needed, and
// at a full collection above what the running one has.
//   Source  paper 002, section 4.3, "an alternative".   Cost  address space: kAddresses for each log of each thread.
#pragma once

#include "runtime/gc/logs/store.hpp"

namespace loam::gc {

class ArenaStore final : public LogStore {
 public:
  explicit ArenaStore(Heap& heap) noexcept : heap_(heap) {}

  void open(LogBase& log, Mutator& mutator) override;
  void grow(LogBase& log, Mutator& mutator) override;
  void close(LogBase& log) noexcept override;
  void ended(LogBase& log) noexcept override;
  std::size_t give_back(LogBase& log) noexcept override;

 private:
  static constexpr std::size_t kAddresses = std::size_t{256} << 20;
  static constexpr std::size_t kStep = std::size_t{64} << 10;

  void shrink(LogBase&, std::size_t) noexcept override {}
  static std::size_t charged(const LogBase& log) noexcept;
  // The log's room ends after so many bytes of its chunk. returns the bytes that are still charged for the rest
  static std::size_t cut(LogBase& log, std::size_t bytes) noexcept;

  Heap& heap_;
};

}  // namespace loam::gc
