#include "runtime/itm/access.hpp"

namespace loam::itm {

void read_object(Thread& t, void* to, const void* from, std::size_t bytes, std::uintptr_t frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (t.in_frames(address, frame) || t.is_captured(address))
    std::memcpy(to, from, bytes);
  else
    t.operations->read_bytes[t.d->mode](*t.d, to, from, bytes);
}

void write_private(Thread& t, void* to, const void* from, std::size_t bytes, bool in_frames) {
  // The frame of the function that began the transaction still exists after an abort.
  if (t.notes_private || (in_frames && reinterpret_cast<std::uintptr_t>(to) >= t.stack)) [[unlikely]]
    t.undo.note_value(to, bytes, in_frames);
  std::memcpy(to, from, bytes);
}

void write_object(Thread& t, void* to, const void* from, std::size_t bytes, std::uintptr_t frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  const bool in_frames = t.in_frames(address, frame);
  if (in_frames || t.is_captured(address) || t.notes_all)
    write_private(t, to, from, bytes, in_frames);
  else
    t.operations->write_bytes[t.d->mode](*t.d, to, from, bytes);
}

}  // namespace loam::itm
