// The functions that the shared object exports: those that the compiler, the linker and users of libc call by name. All
// others are hidden (-fvisibility=hidden, simulator.map).
#pragma once

#define LOAM_EXPORTED extern "C" __attribute__((visibility("default"), used))
