#include "runtime/gc/world.hpp"

#include "runtime/platform/machine.hpp"

namespace loam::gc {

void World::attach(Mutator& mutator) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !requested_; });
  mutators_.push(&mutator);
  ++running_;
}

void World::detach(Mutator& mutator) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < mutators_.size(); ++i)
    if (mutators_[i] == &mutator) mutators_.remove_unordered(i--);
  --running_;
  changed_.notify_all();
}

void World::wait_at_safepoint() {
  std::unique_lock lock(mutex_);
  if (!requested_) return;
  --running_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !requested_; });
  ++running_;
}

void World::enter_native() {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void World::leave_native() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !requested_; });
  ++running_;
}

bool World::stop(std::uint64_t& took_ns) {
  const std::uint64_t asked_ns = platform::monotonic_ns();
  std::unique_lock lock(mutex_);
  --running_;
  if (requested_) {
    changed_.notify_all();
    changed_.wait(lock, [&] { return !requested_; });
    ++running_;
    return false;
  }
  requested_ = true;
  stop_.store(true, std::memory_order_relaxed);  // relaxed: see is_stop_requested()
  changed_.wait(lock, [&] { return running_ == 0; });
  took_ns = platform::monotonic_ns() - asked_ns;
  return true;
}

void World::resume() {
  const std::lock_guard lock(mutex_);
  requested_ = false;
  stop_.store(false, std::memory_order_relaxed);  // relaxed: see is_stop_requested()
  ++running_;
  changed_.notify_all();
}

}  // namespace loam::gc
