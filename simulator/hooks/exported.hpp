// What the shared object shows: the functions that the compiler, the linker and libc's users call by name. All else is
// hidden (-fvisibility=hidden, simulator.map).
#pragma once

#define LOAM_EXPORTED extern "C" __attribute__((visibility("default"), used))
