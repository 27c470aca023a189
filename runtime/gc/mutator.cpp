#include "runtime/gc/mutator.hpp"

#include "runtime/base/check.hpp"
#include "runtime/gc/backend.hpp"
#include "runtime/gc/heap.hpp"

#include <utility>

namespace loam::gc {

Mutator::Mutator(Heap& heap)
    : nursery_(reinterpret_cast<std::uintptr_t>(heap.nursery_start_)),
      nursery_bytes_(heap.settings_.nursery_bytes),
      world_(heap.world_),
      heap_(heap) {
  if (heap.settings_.backend != nullptr) heap.settings_.backend->attach();
  world_.attach(*this);
}

Mutator::~Mutator() {
  LOAM_CHECK(newest_local_ == nullptr, "a Mutator ends after its thread's Locals");
  LOAM_CHECK(logs_ == nullptr, "a Mutator ends after its thread's transactions");
  {
    const std::lock_guard lock(heap_.mutex_);
    heap_.take_over(*this);
  }
  world_.detach(*this);
  if (heap_.settings_.backend != nullptr) heap_.settings_.backend->detach();
}

// With the heap's mutex, or while the world is stopped.
void Mutator::give_up_buffer() noexcept {
  heap_.statistics_.allocated_bytes += static_cast<std::size_t>(next_ - buffer_) + std::exchange(bytes_elsewhere_, 0);
  if (keeps_buffers_ && buffer_ != nullptr) kept_buffers_.push({buffer_, limit_});
  buffer_ = next_ = limit_ = nullptr;
}

Object* Mutator::allocate_slow(std::size_t bytes, const Descriptor& descriptor) {
  LOAM_CHECK(member_.leader->member().natives == 0,
             "an allocation inside of a Mutator::Native, while another thread may collect");
  safepoint();
  if (heap_.settings_.backend != nullptr) return allocate_elsewhere(bytes, descriptor);
  if (bytes >= kLargeBytes) {
    Object* const object = heap_.allocate_large(*this, bytes, descriptor);
    // It is born old, and init() has no barrier.
    if (has_references(descriptor)) remember(object);
    return object;
  }
  collect_for_tests();
  heap_.refill(*this, bytes);
  return allocate_bytes(bytes, descriptor);
}

// At every n-th allocation (Settings::collect_every).
void Mutator::collect_for_tests() {
  const unsigned every = heap_.settings_.collect_every;
  if (every == 0 || until_collection_-- != 0) return;
  until_collection_ = every - 1;
  heap_.collect(*this, heap_.settings_.backend != nullptr);
}

void Mutator::refuse_array(std::size_t length, std::size_t element_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(length, element_bytes, &bytes)) bytes = ~std::size_t{0};
  heap_.refuse(bytes);
}

Object* Mutator::allocate_to_stay(std::size_t bytes, const Descriptor& descriptor) {
  if (!keeps_buffers_ || bytes >= kLargeBytes) return allocate_bytes(bytes, descriptor);
  safepoint();
  collect_for_tests();
  return heap_.allocate_apart(*this, bytes, descriptor);
}

Object* Mutator::allocate_finalizable(std::size_t bytes, const Descriptor& descriptor, void (*finalize)(Object*)) {
  LOAM_CHECK(heap_.settings_.backend == nullptr, "a finalizable object: a backend finalizes nothing");
  Object* const object = allocate_to_stay(bytes, descriptor);
  finalizable_.push({object, finalize});
  return object;
}

WeakReference* Mutator::allocate_weak(const LocalBase& target) {
  auto* const reference = allocate<WeakReference>();
  reference->target_slot() = target.object();
  return reference;
}

Object* Mutator::allocate_chunk(std::size_t bytes, const Descriptor& descriptor) {
  Object* const chunk = allocate_to_stay(bytes, descriptor);
  const std::lock_guard lock(heap_.mutex_);
  heap_.statistics_.allocated_chunk_bytes += bytes;
  return chunk;
}

void Mutator::collect(bool full) { heap_.collect(*this, full); }

// The bit decides which of several threads puts the object into its list.
void Mutator::remember(Object* holder) {
  // relaxed: only the bit counts; the collector sees it by the stop.
  if ((holder->word().fetch_or(Object::kRemembered, std::memory_order_relaxed) & Object::kRemembered) == 0)
    remembered_.push(holder);
}

void Mutator::wait_at_safepoint() { world_.wait_at_safepoint(*this); }

}  // namespace loam::gc
