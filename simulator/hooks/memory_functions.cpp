// memcpy and the like, when instrumented code calls them (the linker's --wrap): libc's own code has no hooks.
#include "simulator/engine/access.hpp"
#include "simulator/hooks/exported.hpp"

#include <cstring>

using loam::simulator::access_range;
using loam::simulator::Kind;

LOAM_EXPORTED void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  access_range(from, bytes, Kind::read, LOAM_CALLER);
  access_range(to, bytes, Kind::write, LOAM_CALLER);
  return std::memcpy(to, from, bytes);
}

LOAM_EXPORTED void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  access_range(from, bytes, Kind::read, LOAM_CALLER);
  access_range(to, bytes, Kind::write, LOAM_CALLER);
  return std::memmove(to, from, bytes);
}

LOAM_EXPORTED void* __wrap_memset(void* to, int value, std::size_t bytes) {
  access_range(to, bytes, Kind::write, LOAM_CALLER);
  return std::memset(to, value, bytes);
}
