// STMBench7 under locks: one for all (coarse), or one for each level of assemblies and each kind of object (medium).
//   The medium ones have one more, for the structure: structural modifications take it alone, exclusively; all others
//   share it. They are taken in the order of their numbers.
//   All are read-write locks, and fair: who waits holds a gate, so nobody overtakes it.
#pragma once

#include "runtime/gc/gc.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace loam::workloads::managed::bench7 {

//   bit 0 structure   bits 1..7 assemblies of this level   bit 8 composite parts   9 atomic parts   10 documents   11 manual
inline constexpr unsigned kLocks = 12;
inline constexpr std::uint32_t kStructure = 1, kBases = 2, kAllLevels = 0xfe, kComposites = 0x100, kAtomics = 0x200,
                               kDocuments = 0x400, kManual = 0x800;

struct LockSet {
  std::uint32_t shared = 0, exclusive = 0;
  constexpr LockSet writes(std::uint32_t locks) const noexcept { return {shared & ~locks, exclusive | locks}; }
};
constexpr LockSet reads(std::uint32_t locks) noexcept { return {locks | kStructure, 0}; }
inline constexpr LockSet kStructural{0, kStructure};

class Locks {
  struct Fair {
    std::mutex gate;
    std::shared_mutex mutex;
  };

 public:
  explicit Locks(bool coarse) noexcept : coarse_(coarse) {}

  // The locks of an operation, as long as it lives.
  class Holder {
   public:
    Holder(Locks& locks, gc::Mutator& mutator, LockSet wanted) : locks_(locks.locks_) {
      taken_ = !locks.coarse_ ? wanted : wanted.exclusive != 0 ? LockSet{0, kStructure} : LockSet{kStructure, 0};
      for (unsigned i = 0; i < kLocks; ++i) {
        const std::uint32_t bit = 1U << i;
        if ((taken_.shared & bit) != 0) take(mutator, locks_[i], [](Fair& lock) { lock.mutex.lock_shared(); });
        if ((taken_.exclusive & bit) != 0) take(mutator, locks_[i], [](Fair& lock) { lock.mutex.lock(); });
      }
    }
    ~Holder() {
      for (unsigned i = kLocks; i-- != 0;) {
        const std::uint32_t bit = 1U << i;
        if ((taken_.shared & bit) != 0) locks_[i].mutex.unlock_shared();
        if ((taken_.exclusive & bit) != 0) locks_[i].mutex.unlock();
      }
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    // The world may be stopped while it waits: it touches no object.
    template <class Lock>
    static void take(gc::Mutator& mutator, Fair& fair, Lock lock) {
      const gc::Mutator::Native native(mutator);
      const std::lock_guard gate(fair.gate);
      lock(fair);
    }
    std::array<Fair, kLocks>& locks_;
    LockSet taken_;
  };

 private:
  const bool coarse_;
  std::array<Fair, kLocks> locks_;
};

}  // namespace loam::workloads::managed::bench7
