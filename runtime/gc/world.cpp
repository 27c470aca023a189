#include "runtime/gc/world.hpp"

#include "runtime/base/check.hpp"
#include "runtime/gc/mutator.hpp"
#include "runtime/platform/machine.hpp"

#include <new>

namespace loam::gc {
namespace {

// The Mutators of this thread, of all heaps, the newest first.
constinit thread_local Mutator* newest = nullptr;

}  // namespace

bool World::is_of_this_thread(const Mutator& mutator) noexcept {
  for (const Mutator* own = newest; own != nullptr; own = own->member().next_of_thread)
    if (own == &mutator) return true;
  return false;
}

void World::poll_all_of_this_thread() {
  for (Mutator* own = newest; own != nullptr; own = own->member().next_of_thread) own->safepoint();
}

Mutator* World::leader_of_this_thread() const noexcept {
  for (Mutator* own = newest; own != nullptr; own = own->member().next_of_thread)
    if (&own->world() == this) return own->member().leader;
  return nullptr;
}

void World::attach(Mutator& mutator) {
  mutator.member().next_of_thread = newest;
  Mutator* const leader = leader_of_this_thread();
  LOAM_CHECK(leader == nullptr || leader->member().natives == 0,
             "a Mutator is made inside of a Mutator::Native of the same thread and heap (end the Native first)");
  mutator.member().leader = leader != nullptr ? leader : &mutator;
  newest = &mutator;
  if (leader == nullptr) mutator.member().natives = 1;  // safe until leave_native()
  {
    std::unique_lock lock(mutex_);
    if (leader == nullptr) {
      // A collection under way has gone through the list of Mutators already.
      while (requested_) {
        lock.unlock();
        enter_elsewhere();
        lock.lock();
        changed_.wait(lock, [&] { return !requested_; });
        lock.unlock();
        leave_elsewhere();
        lock.lock();
      }
    }
    mutators_.push(&mutator);
  }
  if (leader == nullptr) leave_native(mutator);
}

void World::detach(Mutator& mutator) {
  LOAM_CHECK(is_of_this_thread(mutator), "a Mutator ends in the thread that has made it");
  LOAM_CHECK(mutator.member().leader->member().natives == 0, "a Mutator ends inside of a Mutator::Native");
  Mutator** link = &newest;
  while (*link != &mutator) link = &(*link)->member().next_of_thread;
  *link = mutator.member().next_of_thread;
  Mutator* heir = nullptr;  // the next leader
  if (mutator.member().leader == &mutator)
    for (Mutator* own = newest; own != nullptr; own = own->member().next_of_thread)
      if (own->member().leader == &mutator) own->member().leader = heir = heir != nullptr ? heir : own;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < mutators_.size(); ++i)
    if (mutators_[i] == &mutator) mutators_.remove_unordered(i--);
  if (mutator.member().leader != &mutator || heir != nullptr) return;
  --running_;
  changed_.notify_all();
}

void World::wait_at_safepoint(Mutator& mutator) {
  if (mutator.member().leader->member().natives != 0) return;
  enter_native(mutator);
  leave_native(mutator);
}

void World::enter_native(Mutator& mutator) {
  const std::lock_guard lock(mutex_);
  if (mutator.member().leader->member().natives++ != 0) return;
  --running_;
  changed_.notify_all();
}

void World::leave_native(Mutator& mutator) {
  Mutator& leader = *mutator.member().leader;
  std::unique_lock lock(mutex_);
  while (leader.member().natives == 1 && requested_) {
    lock.unlock();
    enter_elsewhere();
    lock.lock();
    changed_.wait(lock, [&] { return !requested_; });
    lock.unlock();
    leave_elsewhere();
    lock.lock();
  }
  if (--leader.member().natives == 0) ++running_;
}

void World::enter_elsewhere() {
  for (Mutator* own = newest; own != nullptr; own = own->member().next_of_thread)
    if (&own->world() != this && own->member().leader == own) own->world().enter_native(*own);
}

void World::leave_elsewhere() {
  for (Mutator* own = newest; own != nullptr; own = own->member().next_of_thread)
    if (&own->world() != this && own->member().leader == own) own->world().leave_native(*own);
}

bool World::stop(Mutator& mutator, std::uint64_t& took_ns) {
  LOAM_CHECK(mutator.member().leader->member().natives == 0,
             "an allocation or a collection inside of a Mutator::Native, while another thread may collect");
  const std::uint64_t asked_ns = platform::monotonic_ns();
  enter_elsewhere();
  enter_native(mutator);
  {
    std::unique_lock lock(mutex_);
    if (!requested_) {
      requested_ = true;
      stop_.store(true, std::memory_order_relaxed);  // relaxed: see is_stop_requested()
      changed_.wait(lock, [&] { return running_ == 0; });
      took_ns = platform::monotonic_ns() - asked_ns;
      return true;
    }
  }
  leave_native(mutator);
  leave_elsewhere();
  return false;
}

// Other heaps come last: a thread that has stopped one of them may wait for this one.
void World::resume(Mutator& mutator) {
  {
    const std::lock_guard lock(mutex_);
    requested_ = false;
    stop_.store(false, std::memory_order_relaxed);  // relaxed: see is_stop_requested()
    mutator.member().leader->member().natives = 0;
    ++running_;
    changed_.notify_all();
  }
  leave_elsewhere();
}

void World::stop_for_fork() {
  if (Mutator* const own = leader_of_this_thread()) enter_native(*own);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !requested_; });
  requested_ = true;
  stop_.store(true, std::memory_order_relaxed);  // relaxed: see is_stop_requested()
  changed_.wait(lock, [&] { return running_ == 0; });
}

// With the mutex.
void World::resume_after_fork(bool in_child) {
  requested_ = false;
  stop_.store(false, std::memory_order_relaxed);  // relaxed: see is_stop_requested()
  if (in_child)
    ::new (&changed_) std::condition_variable;  // threads that are not there wait for the old one
  else
    changed_.notify_all();
  mutex_.unlock();
  if (Mutator* const own = leader_of_this_thread()) leave_native(*own);
}

}  // namespace loam::gc
