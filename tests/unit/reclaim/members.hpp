// Threads of a domain as tests play them, and deleters that count.
#pragma once

#include "runtime/reclaim/epoch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace loam::reclaim {

inline std::atomic<std::uint64_t> freed{0};
inline void count_free(void*) { freed.fetch_add(1, std::memory_order_relaxed); }
inline void really_free(void* block) {
  freed.fetch_add(1, std::memory_order_relaxed);
  std::free(block);
}

// Participants are never unmapped: a scan may look at one whose thread has gone.
inline Participant& new_participant() {
  static sync::SpinLock lock;
  static std::deque<Participant> all;
  const std::lock_guard guard(lock);
  return all.emplace_back();
}

// A registered thread of the test; several may be played by one real thread.
struct Member {
  explicit Member(Domain& owner) : domain(owner), slot(owner.acquire_slot()), self(new_participant()) {
    owner.attach(slot, self);
  }
  ~Member() {
    if (!gone) domain.release_slot(slot, limbo);
  }
  void retire(std::uintptr_t name, std::size_t bytes = 16) {
    domain.retire(limbo, reinterpret_cast<void*>(name), count_free, bytes);
  }
  std::size_t reclaim() { return domain.reclaim(self, limbo); }
  void settle() { domain.settle(self, limbo); }
  void exit() {
    domain.release_slot(slot, limbo);
    gone = true;
  }

  Domain& domain;
  unsigned slot;
  Participant& self;
  Limbo limbo;
  bool gone = false;
};

// A domain has 1024 line pairs: too much for the stack of a thread.
struct DomainTest : testing::Test {
  static std::unique_ptr<Domain> make(Limits limits = {}) { return std::make_unique<Domain>(limits); }
  void SetUp() override { freed = 0; }
};

// Freed blocks by name, in the order in which they were freed.
inline std::vector<std::uintptr_t> freed_names;
inline void note_name(void* block) { freed_names.push_back(reinterpret_cast<std::uintptr_t>(block)); }

}  // namespace loam::reclaim
