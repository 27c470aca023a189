#include "runtime/itm/unwritten.hpp"

#include "runtime/itm/access.hpp"
#include "runtime/itm/thread.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::itm {
namespace {

// Sets the thread's functions to those of the algorithm, and returns them.
const open::Operations& begin_writing() noexcept {
  Thread& t = *current;
  t.operations = t.in_software;
  return *t.operations;
}

template <class U>
void write_first(Descriptor& d, void* address, U value) {
  writes_of<U>(begin_writing())[d.mode](d, address, value);
}
void write_first_bytes(Descriptor& d, void* address, const void* from, std::size_t bytes) {
  begin_writing().write_bytes[d.mode](d, address, from, bytes);
}

}  // namespace

open::Operations until_a_write(const open::Operations& algorithm) noexcept {
  open::Operations o = algorithm;
  if (!o.reads_alike) return o;
  o.read_u8[Mode::update] = o.read_u8[Mode::read_only];
  o.read_u16[Mode::update] = o.read_u16[Mode::read_only];
  o.read_u32[Mode::update] = o.read_u32[Mode::read_only];
  o.read_u64[Mode::update] = o.read_u64[Mode::read_only];
  o.read_bytes[Mode::update] = o.read_bytes[Mode::read_only];
  o.write_u8[Mode::update] = &write_first<std::uint8_t>;
  o.write_u16[Mode::update] = &write_first<std::uint16_t>;
  o.write_u32[Mode::update] = &write_first<std::uint32_t>;
  o.write_u64[Mode::update] = &write_first<std::uint64_t>;
  o.write_bytes[Mode::update] = &write_first_bytes;
  return o;
}

}  // namespace loam::itm
