// ByEpochs: the reclaimer of lock-free structures that announces each operation once (runtime/reclaim/epoch.hpp).
//   A thread joins at its first section. thread_exit() hands its slot on; it may join again.
#pragma once

#include "runtime/reclaim/epoch.hpp"
#include "structures/plain_access.hpp"

#include <array>
#include <cstddef>

namespace loam::structures {

class ByEpochs {
 public:
  class Section {
   public:
    Section() noexcept : self_(member()) { domain_.enter(self_); }
    ~Section() {
      domain_.leave(self_);
      domain_.settle(self_, limbo_);
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    void protect(unsigned, const void*) noexcept {}
    template <class Node>
    void retire(Node* node) noexcept {
      domain_.retire(limbo_, node, [](void* block) { PlainAccess().release(block); }, sizeof(Node));
    }

   private:
    reclaim::Participant& self_;
  };

  static void thread_exit() noexcept {
    if (!joined_) return;
    domain_.release_slot(slot_, limbo_);
    joined_ = false;
  }
  // Frees what is held back. No other thread may be inside.  returns how many nodes are left: 0
  static std::size_t quiesce() noexcept {
    reclaim::Participant& self = member();
    std::size_t held = domain_.reclaim(self, limbo_);
    // What others left behind is adopted by one scan and freed by the next.
    if (held != 0 || domain_.orphan_blocks() != 0) held = domain_.reclaim(self, limbo_);
    thread_exit();
    return held;
  }

 private:
  static reclaim::Participant& member() noexcept {
    if (!joined_) [[unlikely]]
      join();
    return participants_[slot_];
  }
  static void join() noexcept {
    slot_ = domain_.acquire_slot();
    domain_.attach(slot_, participants_[slot_]);
    joined_ = true;
  }

  inline static constinit reclaim::Domain domain_{};
  inline static constinit std::array<reclaim::Participant, reclaim::Domain::kSlots> participants_{};
  inline static thread_local constinit reclaim::Limbo limbo_{};
  inline static thread_local constinit unsigned slot_ = 0;
  inline static thread_local constinit bool joined_ = false;
};

}  // namespace loam::structures
