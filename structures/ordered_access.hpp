// OrderedAccess: PlainAccess for a structure whose parts are guarded by different locks: it orders the writes of one
// part before the reads of another.
//   Orders  ordered.A  write(): release, read(): acquire.  Without it, a thread that finds a node behind a link could
//           read the node's old contents.   Cost  on x86-64 that of plain code.
#pragma once

#include "structures/plain_access.hpp"

#include <atomic>

namespace loam::structures {

class OrderedAccess : public PlainAccess {
 public:
  template <class Field>
  Field read(const Field& field) const noexcept {
    return std::atomic_ref(const_cast<Field&>(field)).load(std::memory_order_acquire);  // ordered.A
  }
  template <class Field>
  void write(Field& field, std::type_identity_t<Field> value) const noexcept {
    std::atomic_ref(field).store(value, std::memory_order_release);  // ordered.A
  }
};

}  // namespace loam::structures
