// Bodies of the C interface as lambdas.
#pragma once

#include "include/loam/tm.h"

#include <type_traits>

namespace loam::tests {

// loam_atomically() with a lambda.
template <class F>
int atomically(F&& f, unsigned flags = 0) {
  return loam_atomically([](loam_tx* tx, void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(tx); }, &f,
                         flags);
}
template <class F>
int closed(loam_tx* tx, F&& f) {
  return loam_tx_closed(
      tx, [](loam_tx* part, void* self) { (*static_cast<std::remove_reference_t<F>*>(self))(part); }, &f);
}

}  // namespace loam::tests
