// words: shared words for the transactions of tests.
//   x, y and z lie on records of their own under every mapping of tm_variants.hpp; beside_x shares the stripe of x.
#pragma once

#include "runtime/tm/types.hpp"

namespace loam::tests {

alignas(1024) inline tm::Word words[64];
inline tm::Word& x = words[0];
inline tm::Word& beside_x = words[1];
inline tm::Word& y = words[16];
inline tm::Word& z = words[32];

}  // namespace loam::tests
