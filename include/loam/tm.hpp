// loam/tm.hpp: transactional memory for C++20. Everything is in namespace loam::tm; docs/embedding.md begins at the
// beginning, the header below lists what there is.
//
//   #include <loam/tm.hpp>
//   loam::tm::atomically([&](auto& tx) { tx.write(total, tx.read(total) + 1); });
#pragma once

#if __cplusplus < 202002L
#error "loam/tm.hpp needs C++20: compile with -std=c++20 or later"
#elif !defined(__cpp_exceptions)
#error "loam/tm.hpp needs exceptions: compile without -fno-exceptions"
#else
#include "runtime/tm/tm.hpp"
#endif
