#include "runtime/gc/large.hpp"

#include "runtime/platform/pages.hpp"

namespace loam::gc {

std::size_t LargeObjects::mapped_bytes_of(std::size_t bytes) noexcept {
  return (bytes + platform::page_bytes() - 1) / platform::page_bytes() * platform::page_bytes();
}

Object* LargeObjects::add(std::size_t bytes, const Descriptor& descriptor) noexcept {
  const std::size_t mapped = mapped_bytes_of(bytes);
  auto* const object = static_cast<Object*>(platform::map_lazy(mapped, {.is_promised = true}));
  if (object == nullptr) return nullptr;
  object->word().store(reinterpret_cast<std::uintptr_t>(&descriptor), std::memory_order_relaxed);
  entries_.push({object, mapped});
  mapped_ += mapped;
  return object;
}

void LargeObjects::mark(Object* object) noexcept {
  if (object->has(Object::kMarked)) return;
  object->word().fetch_or(Object::kMarked, std::memory_order_relaxed);  // relaxed: one thread, the world is stopped
  gray_.push(object);
}

bool LargeObjects::scan_one(Object*& object) noexcept {
  if (gray_.empty()) return false;
  object = gray_.pop();
  return true;
}

void LargeObjects::sweep() noexcept {
  for (std::size_t i = 0; i < entries_.size();) {
    const Entry entry = entries_[i];
    if (entry.object->has(Object::kMarked)) {
      entry.object->word().fetch_and(~Object::kMarked, std::memory_order_relaxed);  // relaxed: as above
      ++i;
      continue;
    }
    mapped_ -= entry.mapped_bytes;
    platform::unmap(entry.object, entry.mapped_bytes);
    entries_.remove_unordered(i);
  }
}

LargeObjects::~LargeObjects() {
  for (const Entry& entry : entries_) platform::unmap(entry.object, entry.mapped_bytes);
}

}  // namespace loam::gc
