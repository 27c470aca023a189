// loam/tm.hpp: transactional memory for C++20. Everything is in namespace loam::tm; docs/embedding.md begins at the
// beginning, the header below lists what there is.
//
//   #include <loam/tm.hpp>
//   loam::tm::atomically([&](auto& tx) { tx.write(total, tx.read(total) + 1); });
#pragma once

#include "runtime/tm/tm.hpp"
