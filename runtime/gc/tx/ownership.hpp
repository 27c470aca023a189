// The transactional word of an object.
//
//   bit 63 = 0   the object is free; bits 62..0: its version, the clock's value when it was last released
//   bit 63 = 1   it is owned;  bits 62..48: the owner's number;  bits 47..0: the address of the owner's update entry, or,
//                of an object that the owner made, how deeply nested the transaction was
//
//   So "free, and not newer than my snapshot" is one comparison, and "mine" another; neither reads another thread's
//   log. Invariant
//   W1 an owned word that leads to an entry leads to the entry of its object, in its owner's log.
#pragma once

#include <cstdint>

namespace loam::gc {

inline constexpr std::uint64_t kOwned = std::uint64_t{1} << 63;
inline constexpr unsigned kOwnerShift = 48;
inline constexpr std::uint64_t kEntryMask = (std::uint64_t{1} << kOwnerShift) - 1;
inline constexpr std::uint64_t kNoEntry = 4096;  // below: a depth, no address
inline constexpr unsigned kOwnersMax = 1U << (63 - kOwnerShift);

constexpr bool is_owned(std::uint64_t word) noexcept { return (word & kOwned) != 0; }
constexpr std::uint64_t owner_word(unsigned owner) noexcept { return kOwned | std::uint64_t{owner} << kOwnerShift; }
static_assert(owner_word(0) > kEntryMask, "an owned word must exceed every version");

}  // namespace loam::gc
