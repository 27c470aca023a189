// Access to libc's own functions, for names that the simulator defines itself.
#pragma once

#include <dlfcn.h>

// The next definition of a function after the simulator's, looked up once.
#define LOAM_REAL(name)                                                       \
  ([]() -> decltype(& ::name) {                                               \
    static decltype(&::name) found = nullptr;                                 \
    if (found == nullptr) found = (decltype(&::name))dlsym(RTLD_NEXT, #name); \
    return found;                                                             \
  }())

// First in a function that the program calls: on a thread that nothing simulates, libc's own serves.
#define LOAM_OUTSIDE(call) \
  if (now.thread == nullptr) return call
