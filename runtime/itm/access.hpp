// access: the reads and writes of barriers.
#pragma once

#include "runtime/itm/thread.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace loam::itm {

// Objects of any size and alignment.
void read_object(Thread& t, void* to, const void* from, std::size_t bytes, std::uintptr_t frame);
void write_object(Thread& t, void* to, const void* from, std::size_t bytes, std::uintptr_t frame);

// Writes a private object in place. Logs its old value first, if an abort must restore it.
void write_private(Thread& t, void* to, const void* from, std::size_t bytes, bool in_frames);

// Call before the algorithm accesses what may be a local of another thread. Does not return if the transaction must
// begin again alone.
void meet_locals(Thread& t, const void* address, std::size_t bytes);

// Whether an object on the stack, in_frames(), is accessed in place.
[[gnu::always_inline]] inline bool is_private(const Thread& t, std::uintptr_t address, std::size_t bytes) noexcept {
  return address < t.stack || t.locals.in_place(t.stack, t.frame_top, address, bytes);
}
// Writes an object on the stack. Does not return if the transaction must begin again alone.
void write_on_stack(Thread& t, void* to, const void* from, std::size_t bytes);

// An address below the frames of the barrier's callers. The stack pointer takes one instruction. With the address of
// its own frame the barrier would have to set up a frame at every access.
[[gnu::always_inline]] inline std::uintptr_t own_frame() noexcept { return platform::stack_pointer(); }

template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                                             std::conditional_t<sizeof(T) == 8, std::uint64_t, void>>>>;

template <class U>
constexpr const auto& reads_of(const open::Operations& operations) noexcept {
  if constexpr (sizeof(U) == 1)
    return operations.read_u8;
  else if constexpr (sizeof(U) == 2)
    return operations.read_u16;
  else if constexpr (sizeof(U) == 4)
    return operations.read_u32;
  else
    return operations.read_u64;
}
template <class U>
constexpr const auto& writes_of(const open::Operations& operations) noexcept {
  if constexpr (sizeof(U) == 1)
    return operations.write_u8;
  else if constexpr (sizeof(U) == 2)
    return operations.write_u16;
  else if constexpr (sizeof(U) == 4)
    return operations.write_u32;
  else
    return operations.write_u64;
}

// An access that is hardly ever made: of what may be a local of another thread, or of a local that is shared.
template <class T>
[[gnu::noinline]] T read_local(const T* from) {
  Thread& t = *current;
  meet_locals(t, from, sizeof(T));
  T value;
  t.operations->read_bytes[t.d->mode](*t.d, &value, from, sizeof value);
  return value;
}
template <class T>
[[gnu::noinline]] void write_local(T* to, T value) {
  Thread& t = *current;
  meet_locals(t, to, sizeof(T));
  t.operations->write_bytes[t.d->mode](*t.d, to, &value, sizeof value);
}

template <class T>
[[gnu::always_inline]] inline void read(T& value, const T* from, std::uintptr_t frame) {
  Thread& t = *current;
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if constexpr (!std::is_void_v<Bits<T>>) {
    using U = Bits<T>;
    if (t.in_frames(address, frame)) {
      if (is_private(t, address, sizeof(T)))
        std::memcpy(&value, from, sizeof value);
      else
        value = read_local(from);
    } else if (t.is_captured(address)) {
      std::memcpy(&value, from, sizeof value);
    } else if (Locals::may_hold(address)) [[unlikely]] {
      value = read_local(from);
    } else if (address % sizeof(U) == 0) [[likely]] {
      const U bits = reads_of<U>(*t.operations)[t.d->mode](*t.d, from);
      std::memcpy(&value, &bits, sizeof value);
    } else {
      t.operations->read_bytes[t.d->mode](*t.d, &value, from, sizeof value);
    }
  } else {
    read_object(t, &value, from, sizeof value, frame);
  }
}

template <class T>
[[gnu::always_inline]] inline void write(T* to, const T& value, std::uintptr_t frame) {
  Thread& t = *current;
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if constexpr (!std::is_void_v<Bits<T>>) {
    using U = Bits<T>;
    // The paths that need an address take it of a copy, so that on the usual path the value stays in a register.
    if (t.in_frames(address, frame)) {
      const T copy = value;
      write_on_stack(t, to, &copy, sizeof copy);
    } else if (t.is_captured(address) || t.notes_all) {
      const T copy = value;
      write_private(t, to, &copy, sizeof copy, false);
    } else if (Locals::may_hold(address)) [[unlikely]] {
      write_local(to, value);
    } else if (address % sizeof(U) == 0) [[likely]] {
      U bits;
      std::memcpy(&bits, &value, sizeof value);
      writes_of<U>(*t.operations)[t.d->mode](*t.d, to, bits);
    } else {
      const T copy = value;
      t.operations->write_bytes[t.d->mode](*t.d, to, &copy, sizeof copy);
    }
  } else {
    write_object(t, to, &value, sizeof value, frame);
  }
}

}  // namespace loam::itm
