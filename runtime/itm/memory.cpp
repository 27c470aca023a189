// memory: malloc, new and their families in transactions. An abort frees the blocks that the attempt allocated. A block
// that a transaction frees is freed after the commit, when no attempt can read it any more.
#include "runtime/tm/attempts/memory.hpp"
#include "runtime/itm/interface.hpp"
#include "runtime/itm/thread.hpp"
#include "runtime/tm/runtime.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace loam::itm {
namespace {

void delete_one(void* object) { ::operator delete(object); }
void delete_array(void* array) { ::operator delete[](array); }

// Called if the allocator has no memory left. If it can provide more outside of attempts, this attempt begins again.
void ask_for_more() {
  if (Thread* const t = running_with_barriers()) try {
      hardware::leave(*t);
      tm::memory::out_of_memory(*t->d);
    } catch (const std::bad_alloc&) {
    }
}

// make(): a block, null, or an exception
template <class Make>
void* made(Make make) {
  try {
    if (void* const block = make()) return block;
    ask_for_more();
  } catch (const std::bad_alloc&) {
    ask_for_more();
    throw;
  }
  return nullptr;
}

void* created(void* block, std::size_t bytes, void (*free)(void*)) noexcept {
  if (Thread* const t = running_with_barriers(); t != nullptr && block != nullptr) {
    t->undo.note_block(block, free);
    t->capture(block, bytes);
  }
  return block;
}

void free_later(void* block, void (*free)(void*)) {
  if (block == nullptr) return;
  Thread* const t = running_with_barriers();
  if (t == nullptr) return free(block);
  t->d->special = true;
  tm::domain.propose(t->d->limbo, block, free, 0);
}

}  // namespace

LOAM_ITM_EXPORTED void* _ITM_malloc(std::size_t bytes) {
  return created(made([=] { return std::malloc(bytes); }), bytes, &std::free);
}
LOAM_ITM_EXPORTED void* _ITM_calloc(std::size_t count, std::size_t bytes) {
  return created(made([=] { return std::calloc(count, bytes); }), count * bytes, &std::free);
}
LOAM_ITM_EXPORTED void _ITM_free(void* block) { free_later(block, &std::free); }

// Does nothing, which is correct: reads of a place that is dropped stay valid.
LOAM_ITM_EXPORTED void _ITM_dropReferences(void*, std::size_t) {}

// The clones of C++'s allocation functions.
LOAM_ITM_EXPORTED void* _ZGTtnwm(std::size_t bytes) {
  return created(made([=] { return ::operator new(bytes); }), bytes, &delete_one);
}
LOAM_ITM_EXPORTED void* _ZGTtnam(std::size_t bytes) {
  return created(made([=] { return ::operator new[](bytes); }), bytes, &delete_array);
}
LOAM_ITM_EXPORTED void* _ZGTtnwmRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t& tag) {
  return created(made([&] { return ::operator new(bytes, tag); }), bytes, &delete_one);
}
LOAM_ITM_EXPORTED void* _ZGTtnamRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t& tag) {
  return created(made([&] { return ::operator new[](bytes, tag); }), bytes, &delete_array);
}
LOAM_ITM_EXPORTED void _ZGTtdlPv(void* object) { free_later(object, &delete_one); }
LOAM_ITM_EXPORTED void _ZGTtdlPvm(void* object, std::size_t) { free_later(object, &delete_one); }
LOAM_ITM_EXPORTED void _ZGTtdlPvRKSt9nothrow_t(void* object, const std::nothrow_t&) { free_later(object, &delete_one); }
LOAM_ITM_EXPORTED void _ZGTtdlPvmRKSt9nothrow_t(void* object, std::size_t, const std::nothrow_t&) {
  free_later(object, &delete_one);
}
LOAM_ITM_EXPORTED void _ZGTtdaPv(void* array) { free_later(array, &delete_array); }
LOAM_ITM_EXPORTED void _ZGTtdaPvRKSt9nothrow_t(void* array, const std::nothrow_t&) { free_later(array, &delete_array); }

}  // namespace loam::itm
