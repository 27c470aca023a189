// The functions of a heap and its threads that differ if another collector replaces ours.
#include "runtime/gc/backend.hpp"

#include "runtime/gc/heap.hpp"

#include <algorithm>
#include <mutex>

namespace loam::gc {
namespace {

// Room is kept for logs that are longer than all before, by 1/kLogsMayGrow of the longest.
constexpr std::size_t kLogsMayGrow = 8;

}  // namespace

Object* Mutator::allocate_elsewhere(std::size_t bytes, const Descriptor& descriptor) {
  const Backend& backend = *heap_.settings_.backend;
  const bool references = descriptor.shape != Shape::values && descriptor.shape != Shape::chunk;
  collect_for_tests();
  Object* object = nullptr;
  RequestBy request({bytes, bytes, 0}, [&] {
    object = static_cast<Object*>(backend.allocate(bytes, references));
    return object != nullptr;
  });
  if (!request.take()) {
    if (!backend.serves_transactions()) {  // it has collected already
      const std::lock_guard lock(heap_.mutex_);
      throw heap_.refusal(request.needs());
    }
    heap_.obtain(*this, request, true);
  }
  // relaxed: nobody else has it.
  object->word().store(reinterpret_cast<std::uintptr_t>(&descriptor), std::memory_order_relaxed);
  bytes_elsewhere_ += bytes;
  return object;
}

bool Heap::collect_elsewhere(Mutator& mutator, Request* request) {
  const Backend& backend = *settings_.backend;
  const Marking marking{this, [](void* heap) { static_cast<Heap*>(heap)->keep_strong(); },
                        [](void* heap) { static_cast<Heap*>(heap)->drop_dead(); }};
  if (!backend.serves_transactions()) {
    backend.collect(marking);
    return true;
  }
  std::uint64_t way_ns = 0;
  if (!world_.stop(mutator, way_ns)) return false;
  statistics_.time_to_safepoint.add(way_ns);
  {
    const std::lock_guard lock(mutex_);
    const auto collect_all = [&](bool last) {
      for (Mutator* const mutator : world_.mutators())
        if (mutator->logs() != nullptr) mutator->logs()->before_collection(true, last);
      backend.collect(marking);
      return request == nullptr || request->take();
    };
    if (!collect_all(false) && !collect_all(true)) request->refusal.emplace(refusal(request->needs()));
  }
  world_.resume(mutator);
  return true;
}

void Heap::keep_strong() {
  for (Mutator* const mutator : world_.mutators())
    if (mutator->logs() != nullptr) mutator->logs()->keep_strong(*settings_.backend);
}

void Heap::drop_dead() {
  for (Mutator* const mutator : world_.mutators())
    if (mutator->logs() != nullptr) mutator->logs()->drop_dead(*settings_.backend);
}

bool Heap::fits_elsewhere(std::size_t more) const noexcept {
  return settings_.backend->in_use() + log_bytes_ + more <= settings_.memory_bytes;
}

// Logs outside of the backend's memory lower its limit. The backend never returns memory, so its limit leaves room for
// the largest size that logs have had, and an eighth more: transactions of the same kind log different amounts.
void Heap::limit_elsewhere() noexcept {
  if (!settings_.backend->serves_transactions()) return;
  const std::size_t most = settings_.charge_logs ? statistics_.log_bytes_max : 0;
  settings_.backend->set_limit(settings_.memory_bytes - std::min(settings_.memory_bytes, most + most / kLogsMayGrow));
}

}  // namespace loam::gc
