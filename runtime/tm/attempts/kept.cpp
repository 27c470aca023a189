#include "runtime/tm/attempts/kept.hpp"

#include "runtime/platform/machine.hpp"
#include "runtime/platform/stack.hpp"
#include "runtime/tm/attempts/lifecycle.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

namespace loam::tm::lifecycle {
namespace {

// What a handler that restores holds: some bytes of a variable, as they were.
struct Kept {
  std::byte* address;
  std::uint32_t bytes;
  bool in_frames;  // between the frames of the whole attempt's caller and those of a part's
  std::byte value[Handler::kArgumentBytes - 16];
};
static_assert(sizeof(Kept) <= Handler::kArgumentBytes);

std::uintptr_t address_of(const void* variable) noexcept { return reinterpret_cast<std::uintptr_t>(variable); }

const Kept& kept_of(const Handler& handler) noexcept {
  return *std::launder(reinterpret_cast<const Kept*>(handler.argument));
}

// If a place is kept twice in one part, the first call counts: it has the older value.
bool is_kept(const Descriptor& d, const std::byte* address, std::size_t bytes) noexcept {
  const Handler* const log = d.handlers.begin();
  const std::size_t first = d.part != nullptr ? d.part->mark.handlers : d.handler_first;
  return std::any_of(log + first, log + d.handler_end, [=](const Handler& handler) {
    if (handler.of != Handler::Of::restore) return false;
    const Kept& kept = kept_of(handler);
    return kept.address == address && kept.bytes >= bytes;
  });
}

// Whether the variable lies in a frame that is left when control goes to the checkpoint. The caller's frames lie at and
// above `here`.
bool ends_at(const platform::Checkpoint& checkpoint, const void* variable, std::uintptr_t here) noexcept {
  const std::uintptr_t end = platform::kept_stack(checkpoint), at = address_of(variable);
  return here <= at && at < end && platform::is_one_stack(here, end);
}

}  // namespace

void keep(Descriptor& d, void* start, std::size_t bytes) noexcept {
  const std::uintptr_t here = platform::stack_pointer();
  if (ends_at(d, start, here)) return;  // T7
  const bool in_frames = d.part != nullptr && ends_at(outermost(d), start, here);
  auto* at = static_cast<std::byte*>(start);
  for (std::byte* const end = at + bytes; at != end;) {
    const std::size_t some = std::min<std::size_t>(sizeof Kept::value, static_cast<std::size_t>(end - at));
    if (!is_kept(d, at, some)) {
      Handler handler{.call = nullptr, .of = Handler::Of::restore, .argument = {}};
      auto* const kept = ::new (static_cast<void*>(handler.argument))
          Kept{.address = at, .bytes = static_cast<std::uint32_t>(some), .in_frames = in_frames, .value = {}};
      std::memcpy(kept->value, at, some);
      add_handler(d, handler);
    }
    at += some;
  }
}

void restore_kept(const Descriptor& d, std::size_t first, const platform::Checkpoint& checkpoint) noexcept {
  const Handler* const log = d.handlers.begin();
  const std::uintptr_t end = platform::kept_stack(checkpoint);
  for (std::size_t i = d.handler_end; i > first; --i) {
    if (log[i - 1].of != Handler::Of::restore) continue;
    const Kept& kept = kept_of(log[i - 1]);
    if (kept.in_frames && address_of(kept.address) < end) continue;  // T7
    std::memcpy(kept.address, kept.value, kept.bytes);
  }
}

const platform::Checkpoint& outermost(const Descriptor& d) noexcept {
  const platform::Checkpoint* checkpoint = &d;
  for (const Part* part = d.part; part != nullptr; part = part->around) checkpoint = &part->outer;
  return *checkpoint;
}

}  // namespace loam::tm::lifecycle
