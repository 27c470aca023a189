// barriers: reads, writes and notes of each type. The variants for a place that was read or written before (RaR, WaW)
// are the whole barrier, too: what they could leave out differs between algorithms.
#include "runtime/itm/access.hpp"
#include "runtime/itm/interface.hpp"

#define LOAM_ITM_READ(T, name, attributes)                    \
  LOAM_ITM_EXPORTED attributes T _ITM_##name(const T* from) { \
    T value;                                                  \
    read(value, from, own_frame());                           \
    return value;                                             \
  }
#define LOAM_ITM_WRITE(T, name, attributes) \
  LOAM_ITM_EXPORTED attributes void _ITM_##name(T* to, T value) { write(to, value, own_frame()); }
// Logs the old value of a local variable that was set before the transaction began.
#define LOAM_ITM_NOTE(T, name) \
  LOAM_ITM_EXPORTED void _ITM_L##name(const T* of) { note(of, sizeof(T), own_frame()); }

#define LOAM_ITM_TYPE(T, name, attributes) \
  LOAM_ITM_READ(T, R##name, attributes)    \
  LOAM_ITM_READ(T, RaR##name, attributes)  \
  LOAM_ITM_READ(T, RaW##name, attributes)  \
  LOAM_ITM_READ(T, RfW##name, attributes)  \
  LOAM_ITM_WRITE(T, W##name, attributes)   \
  LOAM_ITM_WRITE(T, WaR##name, attributes) \
  LOAM_ITM_WRITE(T, WaW##name, attributes) \
  LOAM_ITM_NOTE(T, name)

namespace loam::itm {
namespace {

void note(const void* address, std::size_t bytes, std::uintptr_t frame) {
  Thread& t = *current;
  t.undo.note_value(address, bytes, t.in_frames(reinterpret_cast<std::uintptr_t>(address), frame));
}

}  // namespace

LOAM_ITM_TYPES(LOAM_ITM_TYPE)

LOAM_ITM_EXPORTED void _ITM_LB(const void* of, std::size_t bytes) { note(of, bytes, own_frame()); }

}  // namespace loam::itm
