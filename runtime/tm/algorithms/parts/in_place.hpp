// in_place: what algorithms share that let one attempt run at a time: plain reads, writes in place, an undo log.
//   Nothing conflicts. An attempt ends early only if its body asks for it: by an exception, cancel(), retry(), a part
//   that is taken back, or to run irrevocably.
//   Exclusion   static void attach(Descriptor&)      whether the thread may take part at all
//               static void lock(), unlock()         alone in between; what one did happens before what the next does
//               static bool unchanged(Descriptor&)   as the algorithm's
//   Orders      Data accesses are relaxed: the exclusion orders them. The version clock counts commits that wrote. It
//               changes only inside the exclusion and tells sleepers in retry() that something has changed.
//   Undo        one entry per write, in the order of the writes, duplicates included; restored from the newest on. Only
//               the written bytes are restored: the bytes beside them may belong to somebody else.
#pragma once

#include "runtime/base/points.hpp"
#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/attempts/waiting.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/logs/words.hpp"
#include "runtime/tm/runtime.hpp"

#include <atomic>

namespace loam::tm {

template <bool kBlame, class Exclusion>
struct InPlace {
  static constexpr bool kWritesInPlace = true, kPrivatizesSafely = true;

  class Handle {
   public:
    explicit Handle(Descriptor& d) noexcept : d_(&d) {}
    Descriptor& descriptor() const noexcept { return *d_; }

    template <class U>
    [[gnu::always_inline]] U load(const U* address) noexcept {
      LOAM_POINT("tm.reading");
      return std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_relaxed);  // relaxed: alone
    }

   protected:
    Descriptor* d_;
  };

  class ReadOnlyTx : public Handle, public ReadAccess<ReadOnlyTx, kBlame> {
   public:
    using Handle::Handle;
  };

  class UpdateTx : public Handle, public UpdateAccess<UpdateTx, kBlame> {
   public:
    using Handle::Handle;

    [[gnu::always_inline]] void store(Word* address, Word value, Word mask) noexcept {
      Descriptor& d = *this->d_;
      WriteEntry& entry = *d.write_end;
      entry.address.store(address, std::memory_order_relaxed);  // relaxed: nobody else looks at these entries
      entry.value = load_whole(address);
      entry.mask = mask;
      if (++d.write_end == d.write_limit) [[unlikely]]
        d.writes.full();
      LOAM_POINT("tm.locked");
      store_masked(address, value, mask);
    }
  };
  using NestedTx = UpdateTx;  // every write is in the log: any part can be undone

  using Savepoint = WriteEntry*;

  static void attach(Descriptor& d) noexcept { Exclusion::attach(d); }

  // Announced before the lock, not after: a transaction that runs alone waits for who is announced, and would wait for
  // ever for the lock's holder if that one waited for the gate.
  static void begin_read_only(Descriptor& d) noexcept {
    lifecycle::enter<false>(d);
    begin(d, Mode::read_only);
  }
  static void begin_update(Descriptor& d) noexcept {
    lifecycle::enter<true>(d);
    begin(d, Mode::update);
  }

  static void commit_read_only(Descriptor& d) noexcept { leave(d); }

  static void commit_update(Descriptor& d) noexcept {
    LOAM_POINT("tm.committing");
    LOAM_POINT("tm.validated");
    if (d.write_end == d.writes.begin()) return leave(d);
    d.write_end = d.writes.begin();
    LOAM_POINT("tm.written");
    // waiting.A: the clock has moved before notify() looks for sleepers.
    version_clock.now.store(d.snapshot + 1, std::memory_order_release);
    waiting::notify();
    leave(d);
  }

  static void rollback(Descriptor& d, AbortCause cause) noexcept {
    restore(d, d.writes.begin());
    Exclusion::unlock();  // before the handlers, which may run transactions
    lifecycle::aborted(d, cause);
  }

  static Savepoint save(Descriptor& d) noexcept { return d.write_end; }

  static void restore(Descriptor& d, const Savepoint& savepoint) noexcept {
    while (d.write_end != savepoint) {
      const WriteEntry& entry = *--d.write_end;
      store_masked(entry.address.load(std::memory_order_relaxed), entry.value, entry.mask);  // relaxed: own
    }
  }

  static bool unchanged(Descriptor& d) noexcept { return Exclusion::unchanged(d); }

 private:
  static void begin(Descriptor& d, Mode mode) noexcept {
    Exclusion::lock();
    d.snapshot = version_clock.now.load(std::memory_order_relaxed);  // relaxed: moves under the lock alone
    LOAM_POINT("tm.began");
    d.mode = mode;
  }

  static void leave(Descriptor& d) noexcept {
    Exclusion::unlock();
    if (d.special) [[unlikely]]
      return lifecycle::committed_special(d, 0);
    lifecycle::committed(d);
  }
};

}  // namespace loam::tm
