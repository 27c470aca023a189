// Backend: another collector in the place of ours, as a control: objects come from it, it finds by itself what lives, and
// nothing moves. Locals lie on stacks, so a conservative collector sees them; a Global is told to it.
//   Contract  allocate returns zeroed memory of 8-byte alignment that stays where it is, or null if the limit is reached.
//   Transactions need one that collects when it is asked, and never else: then each thread is at a safepoint, and no log
//   is half written. It has keep and is_live; what our collector does with logs (tx/visit.cpp) is done with these two.
#pragma once

#include <cstddef>

namespace loam::gc {

class Object;
struct Statistics;

// What a collection asks of the heap, in this order.
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

  // Null in one that collects when it likes.
  void (*keep)(Object* object) = nullptr;
  bool (*is_live)(const Object* object) = nullptr;
  void (*set_limit)(std::size_t memory_bytes) = nullptr;  // what it has already stays
  std::size_t (*in_use)() = nullptr;                      // bytes of its memory, without blocks that are free

  bool serves_transactions() const noexcept { return keep != nullptr; }
};

}  // namespace loam::gc
