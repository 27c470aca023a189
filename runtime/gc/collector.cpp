#include "runtime/gc/collector.hpp"

#include "runtime/base/check.hpp"
#include "runtime/gc/verifier.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace loam::gc {

Collector::Collector(Heap& heap, bool full) noexcept
    : heap_(heap),
      full_(full),
      nursery_(reinterpret_cast<std::uintptr_t>(heap.nursery_start_)),
      nursery_bytes_(heap.nursery_used()),
      from_(reinterpret_cast<std::uintptr_t>(heap.old_.start)),
      from_bytes_(full ? heap.old_used() : 0),
      top_(full ? heap.other_.start : heap.old_.top),
      scanned_(top_),
      limit_((full ? heap.other_.start : heap.old_.start) + heap.reserved_half_) {}

void Collector::run(bool last) {
  for (Mutator* const mutator : heap_.world_.mutators()) {
    mutator->give_up_buffer();
    mutator->kept_buffers_.clear();
  }
#ifdef LOAM_CHECKED
  Verifier(heap_).before_collection();
#endif
  for (Mutator* const mutator : heap_.world_.mutators())
    if (mutator->logs() != nullptr) mutator->logs()->before_collection(full_, last);
  visit_roots();
  scan();
  clear_weak();
  revive_finalizable();
  scan();
  clear_weak();  // those of revived objects, which may refer to each other
  for (Mutator* const mutator : heap_.world_.mutators())
    if (mutator->logs() != nullptr) mutator->logs()->visit_weak(*this);

  heap_.nursery_top_ = heap_.nursery_start_;
  heap_.returned_.clear();
  if (full_) {
    heap_.large_.sweep();
    std::swap(heap_.old_, heap_.other_);
    heap_.other_.top = heap_.other_.start;
  }
  heap_.old_.top = top_;
  auto& counts = heap_.statistics_;
  ++(full_ ? counts.full : counts.minor);
  if (full_) counts.live_bytes_max = std::max<std::uint64_t>(counts.live_bytes_max, heap_.live_bytes());
#ifdef LOAM_CHECKED
  Verifier(heap_).after_collection();
#endif
}

bool Collector::is_in_old_half(const Object* object) const noexcept {
  const auto* const at = reinterpret_cast<const std::byte*>(object);
  return (at >= heap_.old_.start && at < heap_.old_.start + heap_.reserved_half_) ||
         (at >= heap_.other_.start && at < heap_.other_.start + heap_.reserved_half_);
}

Object* Collector::forward(Object* object) {
  if (object == nullptr) return nullptr;
  if (is_moving(object)) return forward_moving(*object);
  if (full_ && !is_in_old_half(object)) heap_.large_.mark(object);
  return object;
}

// Copies the object of the first reference directly behind its referrer, and so on, so that a list stays together.
Object* Collector::forward_moving(Object& object) {
  // relaxed, here and below: the world is stopped.
  const std::uintptr_t word = object.word().load(std::memory_order_relaxed);
  if ((word & Object::kForwarded) != 0) return reinterpret_cast<Object*>(word & ~Object::kForwarded);
  Object* const first = copy(object);
  for (Object* at = first;;) {
    const Descriptor& descriptor = at->descriptor();
    if (descriptor.shape != Shape::fields || descriptor.references == 0) return first;
    auto*& next = *reinterpret_cast<Object**>(reinterpret_cast<std::byte*>(at) + descriptor.offsets[0]);
    if (next == nullptr || !is_moving(next) || next->has(Object::kForwarded)) return first;
    at = next = copy(*next);
  }
}

Object* Collector::copy(Object& object) {
  const std::size_t bytes = bytes_of(object);
  LOAM_CHECK(bytes <= static_cast<std::size_t>(limit_ - top_), "H1: {} bytes live do not fit into a half", bytes);
  auto* const to = reinterpret_cast<Object*>(std::exchange(top_, top_ + bytes));
  std::memcpy(static_cast<void*>(to), &object, bytes);
  object.word().store(reinterpret_cast<std::uintptr_t>(to) | Object::kForwarded, std::memory_order_relaxed);
  heap_.statistics_.copied_bytes += bytes;
  return to;
}

Object* Collector::visit_chunk(Object* chunk) {
  const std::byte* const before = top_;
  Object* const to = forward(chunk);
  heap_.statistics_.copied_chunk_bytes += static_cast<std::size_t>(top_ - before);
  return to;
}

Object* Collector::surviving(Object* object) const noexcept {
  return object == nullptr || is_in_old_half(object) || object->has(Object::kMarked) ? object : nullptr;
}

void Collector::visit_roots() {
  for (Mutator* const mutator : heap_.world_.mutators()) {
    for (Object* const object : mutator->remembered_) heap_.remembered_.push(object);
    mutator->remembered_.clear();
  }
  // Clears all bits first, so that no copy has one.
  for (Object* const object : heap_.remembered_)
    object->word().fetch_and(~Object::kRemembered, std::memory_order_relaxed);
  if (!full_)
    for (Object* const object : heap_.remembered_) for_each_reference(*object, [&](Object*& slot) { visit(slot); });
  heap_.remembered_.clear();
  for (Mutator* const mutator : heap_.world_.mutators()) {
    for (LocalBase* local = mutator->newest_local_; local != nullptr; local = local->previous()) visit(local->slot());
    if (mutator->logs() != nullptr) mutator->logs()->visit_strong(*this);
  }
  for (GlobalBase* global = heap_.globals_; global != nullptr; global = global->next()) visit(global->slot());
  heap_.dead_.drop_front(std::exchange(heap_.finalized_, 0));
  for (Finalizable& dead : heap_.dead_) visit(dead.object);
}

void Collector::scan() {
  const auto scan_object = [&](Object& object) {
    if (object.descriptor().shape == Shape::weak) weak_.push(static_cast<WeakReference*>(&object));
    for_each_reference(object, [&](Object*& slot) { visit(slot); });
  };
  for (Object* large = nullptr; scanned_ != top_ || heap_.large_.scan_one(large); large = nullptr) {
    if (large != nullptr) {
      scan_object(*large);
      continue;
    }
    auto& object = *reinterpret_cast<Object*>(scanned_);
    scanned_ += bytes_of(object);
    scan_object(object);
  }
}

// A weak reference in the old generation refers to an old object, because its target is set when it is made. So a minor
// collection need not visit it.
void Collector::clear_weak() {
  for (WeakReference* const reference : weak_) {
    Object*& target = reference->target_slot();
    if (target == nullptr) continue;
    target = moved(target);
    heap_.statistics_.weak_cleared += target == nullptr ? 1 : 0;
  }
  weak_.clear();
}

// A minor collection looks only at objects that were made since the last collection: older ones stay. It is known of all
// of them which are dead before the first one is revived, because that revives what it refers to.
void Collector::revive_finalizable() {
  auto &all = heap_.finalizable_, &dead = heap_.dead_;
  for (Mutator* const mutator : heap_.world_.mutators()) {
    for (const Finalizable& young : mutator->finalizable_) all.push(young);
    mutator->finalizable_.clear();
  }
  const std::size_t dead_before = dead.size();
  std::size_t kept = full_ ? 0 : heap_.old_finalizable_;
  for (std::size_t i = kept; i < all.size(); ++i) {
    const Finalizable entry = all[i];
    if (Object* const object = moved(entry.object))
      all[kept++] = {object, entry.finalize};
    else
      dead.push(entry);
  }
  all.resize_down(kept);
  heap_.old_finalizable_ = kept;
  for (std::size_t i = dead_before; i < dead.size(); ++i) visit(dead[i].object);
}

}  // namespace loam::gc
