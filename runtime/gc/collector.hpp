// Collector: one collection, by one thread, while all others are stopped.
//   Source  Cheney, "A nonrecursive list compacting algorithm", CACM 1970: copied objects are scanned in order, so the
//           new half is its own work list. A minor collection promotes all live objects at once: afterwards no object
//           is young, and no list of remembered objects is needed.
//   Order   prepare logs; copy the objects of roots, of remembered objects and of old values in logs; scan the copied
//           objects; clear weak references; copy and scan objects to be finalized; update or drop the other references
//           in logs.
//   Cost    depends on the live objects, not on the dead ones.
#pragma once

#include "runtime/gc/heap.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::gc {

class Collector {
 public:
  Collector(Heap& heap, bool full) noexcept;
  void run(bool last = false);  // last: as for LogVisitor

  // For logs (LogVisitor). visit: keeps the object that a slot refers to, and follows it.
  void visit(Object*& slot) { slot = forward(slot); }
  // A chunk of a log: kept and moved as it is.
  Object* visit_chunk(Object* chunk);
  // The new address of an object; null if it is dead. Call it after all live objects are known.
  // In line: nearly all entries of logs are of old objects, for which a minor collection has nothing to do.
  [[gnu::always_inline]] Object* moved(Object* object) const noexcept {
    if (is_moving(object)) return forwarded(*object);
    return full_ ? surviving(object) : object;
  }
  // The same, for an object that moves if it is live.
  static Object* forwarded(const Object& object) noexcept {
    const std::uintptr_t word = object.word().load(std::memory_order_relaxed);  // relaxed: the world is stopped
    return (word & Object::kForwarded) != 0 ? reinterpret_cast<Object*>(word & ~Object::kForwarded) : nullptr;
  }
  bool is_full() const noexcept { return full_; }
  Statistics& statistics() noexcept { return heap_.statistics_; }

 private:
  Object* forward(Object* object);
  Object* forward_moving(Object& object);
  Object* copy(Object& object);
  [[gnu::always_inline]] bool is_moving(const Object* object) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(object);
    return at - nursery_ < nursery_bytes_ || at - from_ < from_bytes_;
  }
  // The same, in a full collection, for an object that does not move: a large one, or one that was copied already.
  Object* surviving(Object* object) const noexcept;
  bool is_in_old_half(const Object* object) const noexcept;
  void visit_roots();
  void scan();
  void clear_weak();
  void revive_finalizable();

  Heap& heap_;
  const bool full_;
  // The addresses of objects that move: the used part of the nursery, and in a full collection the old half.
  const std::uintptr_t nursery_, nursery_bytes_, from_, from_bytes_;
  std::byte *top_, *scanned_;
  std::byte* limit_;
  OsVector<WeakReference*> weak_;
};

}  // namespace loam::gc
