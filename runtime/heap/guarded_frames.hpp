// What a block of a guarded heap consists of, and whether a pointer is one (guarded.hpp).
//   Place    of a slab, or a span: the front (fronts.hpp), the program's bytes, padding, the seal (seals.hpp), and a guard
//            page if it has one.
//   Checks   frame_at() and checked_bytes() end the program where a pointer is no block that it holds, or where a block was
//            written beyond.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/heap/fault.hpp"
#include "runtime/heap/fronts.hpp"
#include "runtime/heap/geometry.hpp"
#include "runtime/heap/padding.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/heap/seals.hpp"

#include <cstring>

namespace loam::heap {

// Inner: the Heap that the places come from.
template <class Inner>
class GuardedFrames {
 protected:
  static constexpr std::size_t kSealBytes = sizeof(std::uint64_t), kFrameBytes = fronts::kBytes + kSealBytes;
  // What a guard page takes of a block, wherever the block ends in its last page.
  static std::size_t guard_bytes() noexcept { return 2 * platform::page_bytes(); }
  // Usable bytes from which on every block has one; of the shorter long ones one in so many places.
  static constexpr std::size_t kAlwaysGuarded = std::size_t{256} << 10;
  static constexpr unsigned kOneIn = 16;

  // Where a block lies: its place begins in front of it, or, of a long aligned block, with it.
  struct Frame {
    std::byte* start;      // of the place
    std::size_t usable;    // bytes of the place
    std::size_t room;      // from the block to the seal
    std::size_t distance;  // of the block from the start
    bool has_page = false;
  };
  static Frame short_frame(std::byte* block, std::size_t usable, std::size_t distance = fronts::kBytes) noexcept {
    return {block - distance, usable, usable - distance - kSealBytes, distance};
  }
  // Of the long block that begins so far behind the start of its span.
  static Frame long_frame(std::byte* start, std::size_t distance) noexcept {
    const std::size_t usable = Inner::usable_bytes(start);
    // For shorter blocks their address decides, so the answer stays the same while the block exists.
    const bool has_page = usable >= kAlwaysGuarded || base::mix(address_of(start) ^ seals_.secret()) % kOneIn == 0;
    return {start, usable, guarded_bytes(start, usable) - kSealBytes - distance, distance, has_page};
  }
  // The bytes of a long block's place in front of its page.
  static std::size_t guarded_bytes(const std::byte* start, std::size_t usable) noexcept {
    return usable - (address_of(start) + usable) % platform::page_bytes() - platform::page_bytes();
  }
  static std::size_t free_bytes_of(void* start) noexcept {
    return long_frame(static_cast<std::byte*>(start), 0).room + kSealBytes;
  }

  // The block at a pointer that the program passes. Ends the program if it holds none there.
  static Frame frame_at(const void* block) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    if (Inner::is_slab(word)) return short_frame_at(block, word);
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(block));
    if (word != 0 && Inner::is_block(block)) return long_frame(begin, 0);
    if (word == 0 || !is_held_long(begin)) [[unlikely]]
      end_for(block);
    return long_frame(begin - fronts::kBytes, fronts::kBytes);
  }
  // The same in a slab, whose word this is: what is looked at is in it too.
  static Frame short_frame_at(const void* block, PageMap::Word word) noexcept {
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(block));
    const std::byte* const front = begin - fronts::kBytes;
    if ((address_of(front) ^ address_of(block)) >= kUnitBytes && Inner::word_of(front) != word) [[unlikely]]
      end_for(block);
    if (!fronts::is_there(begin, seals_.mark_of(block))) [[unlikely]]
      return aligned_frame_at(begin, word);
    return short_frame(begin, Inner::class_bytes(word));
  }
  [[gnu::cold, gnu::noinline]] static Frame aligned_frame_at(std::byte* block, PageMap::Word word) noexcept {
    const std::size_t distance = fronts::distance(block, seals_.mark_of(block));
    if (distance == 0) end_for(block);
    return short_frame(block, Inner::class_bytes(word), distance);
  }
  // A block whose unit has a word that is not a slab's.
  static bool is_held_long(const std::byte* block) noexcept {
    const std::byte* const start = block - fronts::kBytes;
    return Inner::covers(start) && Inner::is_block(start) && fronts::is_there(block, seals_.mark_of(block));
  }

  // returns false: the system refused, and the page stays as it was
  [[gnu::cold, gnu::noinline]] static bool guard(const Frame& frame, bool open) noexcept {
    return Inner::Pages::protect(frame.start + frame.distance + frame.room + kSealBytes, platform::page_bytes(), open);
  }

  static void put_seal(std::byte* block, std::size_t bytes, std::size_t room) noexcept {
    const std::uint64_t seal = seals_.of(block, bytes);
    std::memcpy(block + room, &seal, sizeof seal);
  }
  // Padding and seal behind `bytes`, which stay as they are.
  static void close(std::byte* block, std::size_t bytes, std::size_t room) noexcept {
    pad(block + bytes, room - bytes);
    platform::compiler_barrier();  // who finds the seal finds the padding
    put_seal(block, bytes, room);
  }

  // The requested size. Ends the program if it does not hold the block, or has written behind it.
  static std::size_t checked_bytes(const void* block, const Frame& frame) noexcept {
    const auto* const begin = static_cast<const std::byte*>(block);
    std::uint64_t seal;
    std::memcpy(&seal, begin + frame.room, sizeof seal);
    const std::size_t bytes = seals_.opened(seal, block);
    if (bytes > frame.room || !is_padded(begin + bytes, frame.room - bytes)) [[unlikely]]
      end_for(block);
    return bytes;
  }

  // Ends the program for a pointer at which it holds no block, or a block that it has written beyond.
  [[noreturn, gnu::cold, gnu::noinline]] static void end_for(const void* block) noexcept {
    const auto* const begin = static_cast<const std::byte*>(block);
    const void* const place = begin - fronts::kBytes;
    const bool has_place = Inner::covers(block) && Inner::covers(place) && Inner::is_block(place);
    Inner::fault(!Inner::covers(block)                                 ? Fault::foreign
                 : !has_place && !is_aligned(begin)                    ? Fault::interior
                 : has_place && is_free(place)                         ? Fault::double_free
                 : fronts::distance(begin, seals_.mark_of(block)) == 0 ? Fault::write_before_start
                                                                       : Fault::write_past_end,
                 block);
  }
  // Whether an aligned block is held there, as far as one can see.
  static bool is_aligned(const std::byte* block) noexcept {
    if (Inner::is_block(block)) return !Inner::is_slab(Inner::word_of(block));
    return fronts::distance(block, seals_.mark_of(block)) != 0;
  }
  // Whether the contents of a place are those of a free one: zero, except for the words of the heap's lists.
  static bool is_free(const void* place) noexcept {
    const auto* const words = static_cast<const std::uint64_t*>(place);
    const PageMap::Word word = Inner::word_of(place);
    const std::size_t bytes =
        Inner::is_slab(word) ? Inner::class_bytes(word) : free_bytes_of(const_cast<void*>(place)) / 16 * 16;
    const std::size_t rest = bytes / sizeof *words - 2;
    return (Inner::is_marked(place) || is_zero(words, 2)) && (rest == 0 || is_zero(words + 2, rest));
  }

  static inline constinit Seals seals_{};
};

}  // namespace loam::heap
