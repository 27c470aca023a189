#include "runtime/itm/access.hpp"

namespace loam::itm {
namespace {

bool runs_alone(const Thread& t) noexcept { return t.d->mode == Mode::serial; }

// Begins the transaction again, alone. It can still be cancelled.
[[noreturn]] void run_alone(const Thread& t) {
  hardware::leave(t);
  t.operations->become_irrevocable();
  __builtin_unreachable();
}

bool ends_in_locals(const void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return Locals::may_hold(begin) || Locals::may_hold(begin + bytes - 1);
}

}  // namespace

void meet_locals(Thread& t, const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (!Locals::may_be_in_place(&t.locals, begin, bytes)) return;
  if (!runs_alone(t)) run_alone(t);
  Locals::share(&t.locals, begin, bytes);
}

void read_object(Thread& t, void* to, const void* from, std::size_t bytes, std::uintptr_t frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (t.in_frames(address, frame) ? is_private(t, address, bytes) : t.is_captured(address))
    return void(std::memcpy(to, from, bytes));
  if (bytes == 0) return;
  if (ends_in_locals(from, bytes)) meet_locals(t, from, bytes);
  t.operations->read_bytes[t.d->mode](*t.d, to, from, bytes);
}

void write_private(Thread& t, void* to, const void* from, std::size_t bytes, bool in_frames) {
  // The frame of the function that began the transaction still exists after an abort.
  if (t.notes_private || (in_frames && reinterpret_cast<std::uintptr_t>(to) >= t.stack)) [[unlikely]] {
    t.undo.note_value(to, bytes, in_frames);
    t.locals.unsettle();
  }
  std::memcpy(to, from, bytes);
}

void write_on_stack(Thread& t, void* to, const void* from, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (!is_private(t, address, bytes)) {
    if (!runs_alone(t)) run_alone(t);
    t.locals.write_alone(t.stack, t.frame_top, address, bytes);
  }
  write_private(t, to, from, bytes, true);
}

void write_object(Thread& t, void* to, const void* from, std::size_t bytes, std::uintptr_t frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (t.in_frames(address, frame)) return write_on_stack(t, to, from, bytes);
  if (t.is_captured(address) || t.notes_all) return write_private(t, to, from, bytes, false);
  if (bytes == 0) return;
  if (ends_in_locals(to, bytes)) meet_locals(t, to, bytes);
  t.operations->write_bytes[t.d->mode](*t.d, to, from, bytes);
}

}  // namespace loam::itm
