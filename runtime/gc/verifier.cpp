#include "runtime/gc/verifier.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/pages.hpp"

#include <algorithm>

namespace loam::gc {

Verifier::Verifier(Heap& heap)
    : heap_(heap),
      words_(heap.reserved_half_ / 8 / 64 + 1),
      starts_(static_cast<std::uint64_t*>(platform::map_lazy_or_die(words_ * 8, "the verifier of the heap"))) {}

Verifier::~Verifier() { platform::unmap(starts_, words_ * 8); }

void Verifier::check_descriptor(const Object& object) const {
  const Descriptor& descriptor = object.descriptor();
  const std::uintptr_t word = object.word().load(std::memory_order_relaxed);  // relaxed: the world is stopped
  LOAM_CHECK((word & ~Object::kBits) != 0 && descriptor.magic == Descriptor::kMagic,
             "O1: the object at {} has no descriptor that is known: its first word is {}", &object, word);
}

void Verifier::note_starts() {
  for (std::byte* at = heap_.old_.start; at != heap_.old_.top;) {
    const auto& object = *reinterpret_cast<const Object*>(at);
    check_descriptor(object);
    const auto index = static_cast<std::size_t>(at - heap_.old_.start) / 8;
    starts_[index / 64] |= std::uint64_t{1} << (index % 64);
    at += bytes_of(object);
    LOAM_CHECK(at <= heap_.old_.top, "O1: the object at {} reaches over the end of its space", &object);
  }
}

bool Verifier::is_start(const Object* object) const noexcept {
  const auto* const at = reinterpret_cast<const std::byte*>(object);
  if (at >= heap_.old_.start && at < heap_.old_.top) {
    const auto index = static_cast<std::size_t>(at - heap_.old_.start) / 8;
    return (starts_[index / 64] >> (index % 64) & 1) != 0;
  }
  return std::any_of(heap_.large_.entries().begin(), heap_.large_.entries().end(),
                     [&](const LargeObjects::Entry& entry) { return entry.object == object; });
}

void Verifier::check_target(const Object* target, const char* from, bool before) const {
  if (target == nullptr) return;
  const auto* const at = reinterpret_cast<const std::byte*>(target);
  if (before && at >= heap_.nursery_start_ && at < heap_.nursery_top_) return check_descriptor(*target);
  LOAM_CHECK(is_start(target), "O2: {} refers to {}, which is no object", from, target);
}

void Verifier::check_object(Object& object, bool before) {
  check_descriptor(object);
  const std::uintptr_t word = object.word().load(std::memory_order_relaxed);  // relaxed: as above
  const std::uintptr_t bits = word & Object::kBits & ~(before ? Object::kRemembered : 0);
  LOAM_CHECK(bits == 0, "the object at {} has bits {} in its first word", &object, bits);
  if (object.descriptor().shape == Shape::weak && !before)
    check_target(static_cast<const WeakReference&>(object).target(), "a weak reference", before);
  for_each_reference(object, [&](Object*& slot) {
    check_target(slot, "an object", before);
    const auto* const at = reinterpret_cast<const std::byte*>(slot);
    const bool young = at >= heap_.nursery_start_ && at < heap_.nursery_top_;
    LOAM_CHECK(!young || object.has(Object::kRemembered),
               "M3: the old object at {} refers to the young one at {} and is "
               "not remembered (stored by init() into an object that is not new)",
               &object, slot);
  });
}

void Verifier::for_each_old(void (Verifier::*check)(Object&, bool), bool before) {
  for (std::byte* at = heap_.old_.start; at != heap_.old_.top;) {
    auto& object = *reinterpret_cast<Object*>(at);
    (this->*check)(object, before);
    at += bytes_of(object);
  }
  for (const auto& entry : heap_.large_.entries()) (this->*check)(*entry.object, before);
}

void Verifier::check_roots(bool before) {
  for (Mutator* const mutator : heap_.world_.mutators()) {
    for (LocalBase* local = mutator->newest_local(); local != nullptr; local = local->previous())
      check_target(local->slot(), "a Local", before);
    if (!before && mutator->logs() != nullptr) mutator->logs()->verify();
  }
  for (GlobalBase* global = heap_.globals_; global != nullptr; global = global->next())
    check_target(global->slot(), "a Global", before);
  for (const Finalizable& one : heap_.finalizable_) check_target(one.object, "the list of finalizable objects", before);
  for (std::size_t i = heap_.finalized_; i < heap_.dead_.size(); ++i)
    check_target(heap_.dead_[i].object, "the list of objects to be finalized", before);
}

void Verifier::before_collection() {
  note_starts();
  for_each_old(&Verifier::check_object, true);
  check_roots(true);
}

void Verifier::after_collection() {
  LOAM_CHECK(heap_.old_used() <= heap_.half_bytes(), "H1: {} bytes are old, a half has {}", heap_.old_used(),
             heap_.half_bytes());
  note_starts();
  for_each_old(&Verifier::check_object, false);
  check_roots(false);
}

}  // namespace loam::gc
