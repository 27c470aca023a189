// PlainAccess: the access policy of code that runs alone, or under a lock: loads, stores, malloc and free.
//   An access policy is the interface by which a structure accesses shared memory:
//     read(field)              the field's value                     field: a trivially copyable member
//     write(field, value)      changes it
//     create<Node>(values...)  a new block from malloc, constructed  ends the program if there is no memory
//     destroy(node)            destroys and frees                    (a transaction defers it to its commit)
//     allocate(bytes), release(block)  the same without a type: arrays whose length is known as the program runs
//   A copy of a policy is the same policy: a function that is not inlined takes it by value.
//   A read-only policy has read() alone. PlainAccess counts blocks per thread, so that a workload can prove that live
//   nodes and allocator calls agree.
#pragma once

#include "runtime/base/check.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

// A function that a transaction may call as it is, because it reads only what no transaction changes. GCC's transactional
// memory has to be told; others do not look.
#ifdef __clang__
#define LOAM_PURE_IN_TRANSACTIONS
#else
#define LOAM_PURE_IN_TRANSACTIONS [[gnu::transaction_pure]]
#endif

namespace loam::structures {

class PlainAccess {
 public:
  template <class Field>
  Field read(const Field& field) const noexcept {
    static_assert(std::is_trivially_copyable_v<Field>);
    return field;
  }

  template <class Field>
  void write(Field& field, std::type_identity_t<Field> value) const noexcept {
    static_assert(std::is_trivially_copyable_v<Field>);
    field = value;
  }

  template <class Node, class... Values>
  Node* create(Values... values) const noexcept {
    void* const block = std::malloc(sizeof(Node));
    LOAM_CHECK(block != nullptr, "malloc({}) failed", sizeof(Node));
    ++live_;
    return ::new (block) Node{values...};
  }

  template <class Node>
  void destroy(Node* node) const noexcept {
    static_assert(std::is_trivially_destructible_v<Node>);
    std::free(node);
    --live_;
  }

  void* allocate(std::size_t bytes) const noexcept {
    void* const block = std::malloc(bytes);
    LOAM_CHECK(block != nullptr, "malloc({}) failed", bytes);
    ++live_;
    return block;
  }

  void release(void* block) const noexcept {
    std::free(block);
    --live_;
  }

  // Adds to the count of live blocks, for an access policy that allocates in its own way.
  static void count(std::int64_t blocks) noexcept { live_ += blocks; }

  // Adds this thread's count to the process's: call at thread exit.
  static void hand_over_counts() noexcept {
    live_of_exited_.fetch_add(live_, std::memory_order_relaxed);  // relaxed: read after joining
    live_ = 0;
  }

  // Blocks created minus blocks destroyed by the calling thread and all that handed over.
  static std::int64_t live_blocks() noexcept { return live_ + live_of_exited_.load(std::memory_order_relaxed); }

 private:
  inline static thread_local constinit std::int64_t live_ = 0;
  inline static constinit std::atomic<std::int64_t> live_of_exited_{0};
};

}  // namespace loam::structures
