// SetupAccess: the access policy of what an application builds before its threads start and looks at after they ended.
//   Plain, by one thread at a time. It tells the synchronisation of each block, so that blame knows its bounds, and
//   counts blocks apart from the synchronisation: a transaction may free what was built here.
#pragma once

#include "structures/plain_access.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::workloads::applications {

template <class SyncType>
class SetupAccess : public structures::PlainAccess {
 public:
  template <class Node, class... Values>
  Node* create(Values... values) const noexcept {
    return ::new (allocate(sizeof(Node))) Node{values...};
  }
  void* allocate(std::size_t bytes) const noexcept {
    void* const block = std::malloc(bytes);
    LOAM_CHECK(block != nullptr, "malloc({}) failed", bytes);
    SyncType::note_block(block, bytes);
    ++live_;
    return block;
  }
  template <class Node>
  void destroy(Node* node) const noexcept {
    release(node);
  }
  void release(void* block) const noexcept {
    std::free(block);
    --live_;
  }

  // Of a block that a structure or a vector has taken by itself, and which is not counted.
  void note(const void* block, std::size_t bytes) const noexcept { SyncType::note_block(block, bytes); }

  static std::int64_t live_blocks() noexcept { return live_; }

 private:
  inline static constinit std::int64_t live_ = 0;
};

}  // namespace loam::workloads::applications
