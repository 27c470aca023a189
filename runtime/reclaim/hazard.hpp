// hazard: hazard pointers. Memory that other threads may still read is freed when no hazard pointer names it.
//   A reader stores the address of a block that it is about to read in its own hazard pointer (a "place"), then checks
//   that the block can still be reached. If so, no thread frees it while the place names it. Unlinked memory is retired
//   into a list of the thread. A scan reads all places and frees the retired blocks that none of them names.
//   Source      Michael: "Hazard pointers: safe memory reclamation for lock-free objects", TPDS 2004.
//   Guarantees  the number of waiting blocks is bounded: by a thread's batch, plus the number of all places. A stopped
//               reader delays only the blocks that its places name.
//   Cost        protect: a store and the caller's second look, no fence; retire: an append; a scan per batch, which
//               interrupts every processor of the process once (announce_heavy).
//   When not    walks over many nodes, each of which would need a place and a look: epochs (epoch.hpp) announce once.
// Invariants
//   H1 a block is freed once, after a scan that began when it was retired and found no place with its address.
//   H2 a thread that leaves names no block; its list of retired blocks stays in its slot, for the next thread there.
// Orders
//   hazard.A  a reader names a block, then looks whether it is linked; a scan finds blocks that were unlinked, then reads
//             the places. Each must see the other (StoreLoad): announce_light() and announce_heavy().  Without it both
//             could miss each other, and the block is freed under the reader.
//   hazard.B  a place: release when it is cleared or named anew, acquire by a scan: the reads before happen before the
//             free.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/thread_slots.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::reclaim {

class HazardDomain {
 public:
  static constexpr unsigned kSlots = 1024;  // threads at the same time
  static constexpr unsigned kPlaces = 2;    // of a thread: as many blocks as it may name at once
  static constexpr std::size_t kBlocksMax = std::size_t{2} * kSlots * kPlaces;  // that a thread may hold back
  using Deleter = void (*)(void* block);

  // The places and the list of one slot. In pages of the operating system, all zero bytes at first.
  struct alignas(platform::kApartBytes) Member {
    std::atomic<const void*> places[kPlaces];
    // What the thread in the slot alone touches.
    alignas(platform::kApartBytes) std::size_t retired;
    std::size_t scan_at;  // 0: not known yet
    void* blocks[kBlocksMax];
  };

  // deleter: frees a block; the same for all
  explicit constexpr HazardDomain(Deleter deleter) noexcept : deleter_(deleter) {}
  HazardDomain(const HazardDomain&) = delete;
  HazardDomain& operator=(const HazardDomain&) = delete;

  // For the calling thread; ends the program when all slots are taken.
  Member& join() noexcept;
  // Names nothing any more.
  void leave(Member& self) noexcept;

  // hazard.A: from here on, and if the caller then finds that `block` is still linked, it is not freed.
  static void protect(Member& self, unsigned place, const void* block) noexcept {
    platform::announce_light(self.places[place], block);
  }
  static void clear(Member& self) noexcept {
    for (auto& place : self.places) place.store(nullptr, std::memory_order_release);  // hazard.B
  }

  // Hands over a block that no new reader can find.
  void retire(Member& self, void* block) noexcept {
    self.blocks[self.retired++] = block;
    if (self.retired >= self.scan_at) [[unlikely]]
      scan(self);
  }

  // Frees what no place names.
  void scan(Member& self) noexcept;
  // The same for every slot. No other thread may be registered.  returns how many blocks are still held back
  std::size_t scan_all() noexcept;

 private:
  Member* members() noexcept;

  const Deleter deleter_;
  sync::ThreadSlots<kSlots> slots_;
  std::atomic<Member*> members_{nullptr};
};

}  // namespace loam::reclaim
