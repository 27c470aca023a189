// loam/gc.hpp: a garbage-collected heap for C++20 with object transactions. Everything is in namespace loam::gc;
// docs/managed-heap.md is the introduction.
//
//   Caveats        Objects move. A plain pointer to an object is valid only until the next allocation, enlistment or
//                  safepoint, so hold objects in Local<T> and Global<T>. A thread that uses a heap needs a Mutator.
//   When not       For objects to which other libraries keep pointers.
#pragma once

#if __cplusplus < 202002L
#error "loam/gc.hpp needs C++20: compile with -std=c++20 or later"
#elif !defined(__cpp_exceptions)
#error "loam/gc.hpp needs exceptions: compile without -fno-exceptions"
#else
#include "runtime/gc/gc.hpp"
#endif
