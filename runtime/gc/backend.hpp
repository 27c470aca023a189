// Backend: another collector that replaces ours, as a control for measurements. It allocates objects and finds the live
// ones; objects do not move. Locals lie on stacks, where a conservative collector finds them; the heap registers
// Globals.
//   Contract  allocate returns zeroed memory of 8-byte alignment, which does not move, or null if the limit is reached.
//   Transactions need a backend that collects only when the heap asks: then each thread is at a safepoint, and no log
//   is half written. Such a backend has keep and is_live. With these two the work on logs is done (tx/visit.cpp).
#pragma once

#include <cstddef>

namespace loam::gc {

class Object;
struct Statistics;

// The functions of the heap that a collection calls, in this order.
struct Marking {
  void* heap;
  void (*strong)(void* heap);  // while it marks: calls keep() for each object that logs alone keep
  void (*weak)(void* heap);    // when it has marked, before anything is freed: asks is_live()
};

struct Backend {
  void (*open)(std::size_t memory_bytes);                     // before the first object; the limit of its memory
  void* (*allocate)(std::size_t bytes, bool has_references);  // without references: it need not look into the object
  void (*collect)(const Marking& marking);
  void (*add_root)(void* first, void* end);
  void (*remove_root)(void* first, void* end);
  void (*attach)();  // a thread that will use it; nothing to do for one that has attached before
  void (*detach)();
  void (*count)(Statistics& counts);  // adds its collections and pauses so far

  // Null in a backend that decides itself when to collect.
  void (*keep)(Object* object) = nullptr;
  bool (*is_live)(const Object* object) = nullptr;
  void (*set_limit)(std::size_t memory_bytes) = nullptr;  // memory that it has taken already stays
  std::size_t (*in_use)() = nullptr;                      // bytes of its memory, without blocks that are free

  bool serves_transactions() const noexcept { return keep != nullptr; }
};

}  // namespace loam::gc
