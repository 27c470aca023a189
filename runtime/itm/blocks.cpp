// blocks: memcpy, memmove and memset of transactions. That a side was read or written before makes no difference here.
#include "runtime/itm/access.hpp"
#include "runtime/itm/interface.hpp"

#include <algorithm>

namespace loam::itm {
namespace {

constexpr std::size_t kPieceBytes = 256;

template <bool kReads, bool kWrites>
void copy_piece(Thread& t, std::byte* to, const std::byte* from, std::size_t bytes, std::uintptr_t frame) {
  std::byte piece[kPieceBytes];
  const void* source = from;
  if constexpr (kReads) {
    read_object(t, piece, from, bytes, frame);
    source = piece;
  }
  if constexpr (kWrites)
    write_object(t, to, source, bytes, frame);
  else
    std::memcpy(to, source, bytes);
}

// Also correct if source and target overlap: it copies in the order in which no byte is overwritten before it was read.
// returns the target, as memcpy does: GCC goes on with what is returned
template <bool kReads, bool kWrites>
void* copy(void* to, const void* from, std::size_t bytes, std::uintptr_t frame) {
  Thread& t = *current;
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  const bool backwards = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from) < bytes;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t some = std::min(kPieceBytes, bytes - done);
    const std::size_t at = backwards ? bytes - done - some : done;
    copy_piece<kReads, kWrites>(t, target + at, source + at, some, frame);
    done += some;
  }
  return to;
}

void* set(void* to, int value, std::size_t bytes, std::uintptr_t frame) {
  std::byte piece[kPieceBytes];
  std::memset(piece, value, std::min(bytes, kPieceBytes));
  for (std::size_t done = 0; done < bytes; done += kPieceBytes)
    write_object(*current, static_cast<std::byte*>(to) + done, piece, std::min(kPieceBytes, bytes - done), frame);
  return to;
}

}  // namespace

#define LOAM_ITM_COPY_AS(function, sides, reads, writes)                                          \
  LOAM_ITM_EXPORTED void* _ITM_##function##sides(void* to, const void* from, std::size_t bytes) { \
    return copy<reads, writes>(to, from, bytes, own_frame());                                     \
  }
#define LOAM_ITM_COPY(sides, reads, writes)      \
  LOAM_ITM_COPY_AS(memcpy, sides, reads, writes) \
  LOAM_ITM_COPY_AS(memmove, sides, reads, writes)
LOAM_ITM_COPIES(LOAM_ITM_COPY)

#define LOAM_ITM_SET(name)                                                            \
  LOAM_ITM_EXPORTED void* _ITM_memset##name(void* to, int value, std::size_t bytes) { \
    return set(to, value, bytes, own_frame());                                        \
  }
LOAM_ITM_SETS(LOAM_ITM_SET)

}  // namespace loam::itm
