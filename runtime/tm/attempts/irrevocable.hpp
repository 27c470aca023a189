// irrevocable: the transaction of a body that runs alone, in place: plain accesses.
//   While it may still be undone, old values are logged; from the first irrevocable part on, none are.
#pragma once

#include "runtime/tm/access.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/descriptor.hpp"
#include "runtime/tm/logs/words.hpp"

#include <atomic>

namespace loam::tm {

class IrrevocableTx : public UpdateAccess<IrrevocableTx, false> {
 public:
  explicit IrrevocableTx(Descriptor& d) noexcept : d_(&d) {}
  Descriptor& descriptor() const noexcept { return *d_; }

  // relaxed: nobody else runs; serial.A and serial.C order what came before and comes after.
  template <class U>
  U load(const U* address) noexcept {
    return std::atomic_ref<U>(*const_cast<U*>(address)).load(std::memory_order_relaxed);
  }
  void store(Word* address, Word value, Word mask) noexcept {
    if (serial::revocable()) serial::note(*d_, address, mask);
    store_masked(address, value, mask);
  }

 private:
  Descriptor* d_;
};

}  // namespace loam::tm
