// ByHazards: the reclaimer of lock-free structures that names each node that it reads (runtime/reclaim/hazard.hpp).
//   A thread joins at its first section. thread_exit() hands its slot on; it may join again.
#pragma once

#include "runtime/reclaim/hazard.hpp"
#include "structures/plain_access.hpp"

#include <cstddef>

namespace loam::structures {

class ByHazards {
 public:
  class Section {
   public:
    Section() noexcept : self_(member()) {}
    ~Section() { reclaim::HazardDomain::clear(self_); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    void protect(unsigned place, const void* node) noexcept { reclaim::HazardDomain::protect(self_, place, node); }
    void retire(void* node) noexcept { domain_.retire(self_, node); }

   private:
    reclaim::HazardDomain::Member& self_;
  };

  static void thread_exit() noexcept {
    if (self_ != nullptr) domain_.leave(*self_);
    self_ = nullptr;
  }
  // Frees what is held back. No other thread may be inside.  returns how many nodes are left: 0
  static std::size_t quiesce() noexcept {
    thread_exit();
    return domain_.scan_all();
  }

 private:
  static reclaim::HazardDomain::Member& member() noexcept {
    if (self_ == nullptr) [[unlikely]]
      self_ = &domain_.join();
    return *self_;
  }

  inline static constinit reclaim::HazardDomain domain_{[](void* node) { PlainAccess().release(node); }};
  inline static thread_local constinit reclaim::HazardDomain::Member* self_ = nullptr;
};

}  // namespace loam::structures
