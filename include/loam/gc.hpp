// loam/gc.hpp: a managed heap for C++20 that knows transactions. Everything is in namespace loam::gc;
// docs/managed-heap.md begins at the beginning.
//
//   Caveats        a plain pointer to an object is good until the next allocation, enlistment or safepoint: hold objects
//                  in Local<T> and Global<T>. A thread that uses a heap has a Mutator.
//   When not       objects that other libraries keep pointers to: they move.
#pragma once

#include "runtime/gc/gc.hpp"
