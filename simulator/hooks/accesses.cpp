// The hooks that the compiler calls before each load and store (-fsanitize=thread).
#include "simulator/engine/access.hpp"
#include "simulator/hooks/exported.hpp"

using loam::simulator::access;
using loam::simulator::access_range;
using loam::simulator::Kind;

#define LOAM_HOOKS(bytes)                                                                                            \
  LOAM_EXPORTED void __tsan_read##bytes(void* p) { access(p, bytes, Kind::read, LOAM_CALLER); }                      \
  LOAM_EXPORTED void __tsan_write##bytes(void* p) { access(p, bytes, Kind::write, LOAM_CALLER); }                    \
  LOAM_EXPORTED void __tsan_unaligned_read##bytes(void* p) { access(p, bytes, Kind::read, LOAM_CALLER); }            \
  LOAM_EXPORTED void __tsan_unaligned_write##bytes(void* p) { access(p, bytes, Kind::write, LOAM_CALLER); }          \
  LOAM_EXPORTED void __tsan_volatile_read##bytes(void* p) { access(p, bytes, Kind::read, LOAM_CALLER); }             \
  LOAM_EXPORTED void __tsan_volatile_write##bytes(void* p) { access(p, bytes, Kind::write, LOAM_CALLER); }           \
  LOAM_EXPORTED void __tsan_unaligned_volatile_read##bytes(void* p) { access(p, bytes, Kind::read, LOAM_CALLER); }   \
  LOAM_EXPORTED void __tsan_unaligned_volatile_write##bytes(void* p) { access(p, bytes, Kind::write, LOAM_CALLER); } \
  LOAM_EXPORTED void __tsan_read_write##bytes(void* p) {                                                             \
    access(p, bytes, Kind::read, LOAM_CALLER);                                                                       \
    access(p, bytes, Kind::write, LOAM_CALLER);                                                                      \
  }

LOAM_HOOKS(1)
LOAM_HOOKS(2)
LOAM_HOOKS(4)
LOAM_HOOKS(8)
LOAM_HOOKS(16)

LOAM_EXPORTED void __tsan_read_range(void* p, unsigned long bytes) { access_range(p, bytes, Kind::read, LOAM_CALLER); }
LOAM_EXPORTED void __tsan_write_range(void* p, unsigned long bytes) {
  access_range(p, bytes, Kind::write, LOAM_CALLER);
}
LOAM_EXPORTED void __tsan_vptr_read(void** p) { access(p, sizeof *p, Kind::read, LOAM_CALLER); }
LOAM_EXPORTED void __tsan_vptr_update(void** p, void*) { access(p, sizeof *p, Kind::write, LOAM_CALLER); }

LOAM_EXPORTED void __tsan_init() {}
LOAM_EXPORTED void __tsan_func_entry(void*) {}
LOAM_EXPORTED void __tsan_func_exit() {}
