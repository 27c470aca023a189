// System calls without libc, for donor threads and the simulator itself. A call by libc's names would call the
// simulator's own functions of these names (simulator/posix).
#pragma once

#include <sys/syscall.h>

namespace loam::simulator {

// returns what the kernel returns: negative errno on failure
inline long kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

template <class Pointer>
long word_of(Pointer* pointer) noexcept {
  return reinterpret_cast<long>(pointer);
}

}  // namespace loam::simulator
