// Boehm's collector (Debian's libgc1) as a backend of the managed heap: conservative, mark and sweep, nothing moves.
#pragma once

#include "runtime/gc/backend.hpp"

namespace loam::workloads::managed {

extern const gc::Backend kBoehm;       // collects when it likes
extern const gc::Backend kBoehmAsked;  // when all of its memory is in use: for transactions

}  // namespace loam::workloads::managed
