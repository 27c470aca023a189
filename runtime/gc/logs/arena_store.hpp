// arena_store: each log has a range of addresses of its own and is one chunk that grows. No list, no lock; a log is
// contiguous. Memory is taken in steps and charged to the heap. A transaction that used less than half of a long log
// returns the upper half when it ends. A collection that needs room returns all memory above the log's entries.
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
  // Cuts the log's chunk to `bytes`, and gives the memory behind it back to the system. returns the size of that
  // memory, which is still charged to the heap
  static std::size_t cut(LogBase& log, std::size_t bytes) noexcept;

  Heap& heap_;
};

}  // namespace loam::gc
