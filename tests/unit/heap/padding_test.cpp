// Padding of every length, at every place in a word: what is written, what is left alone, what is noticed.
#include "runtime/heap/padding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace loam::heap {
namespace {

constexpr std::size_t kFront = 24, kBytes = 80;  // the program's bytes in front, at least eight

constexpr std::size_t kRoomMax = kPaddingMax + 8;

// Where padding is, in so much room behind the program's bytes.
bool is_in(std::size_t i, std::size_t room) { return i >= kFront && i < kFront + std::min(room, kPaddingMax); }

TEST(Padding, ItsBytesAreWrittenAndNoOthers) {
  for (std::size_t room = 0; room <= kRoomMax; ++room) {
    std::array<std::byte, kBytes> bytes;
    bytes.fill(std::byte{0x11});
    pad(&bytes[kFront], room);
    for (std::size_t i = 0; i < kBytes; ++i)
      EXPECT_EQ(bytes[i], is_in(i, room) ? std::byte{0xb5} : std::byte{0x11}) << room << " " << i;
  }
}

TEST(Padding, OfANewBlockTheProgramsBytesMayGo) {
  for (std::size_t room = 0; room <= kRoomMax; ++room) {
    std::array<std::byte, kBytes> bytes;
    bytes.fill(std::byte{0x11});
    pad_new(&bytes[kFront], room);
    for (std::size_t i = 0; i < kBytes; ++i)
      if (i < kFront - 8 || i >= kFront) {
        EXPECT_EQ(bytes[i], is_in(i, room) ? std::byte{0xb5} : std::byte{0x11}) << room << " " << i;
      }
  }
}

TEST(Padding, EachOfItsBytesIsLookedAtAndNoOther) {
  for (std::size_t room = 0; room <= kRoomMax; ++room)
    for (std::size_t changed = 0; changed < kBytes; ++changed) {
      std::array<std::byte, kBytes> bytes{};
      pad(&bytes[kFront], room);
      bytes[changed] ^= std::byte{0x40};
      EXPECT_EQ(is_padded(&bytes[kFront], room), !is_in(changed, room)) << room << " " << changed;
    }
}

TEST(Zero, EveryWordIsLookedAtAndNoOther) {
  for (std::size_t count = 2; count <= 40; count += 2)
    for (std::size_t changed = 0; changed < 48; ++changed) {
      std::array<std::uint64_t, 48> words{};
      words[changed] = 1;
      EXPECT_EQ(is_zero(words.data(), count), changed >= count) << count << " " << changed;
    }
}

TEST(Padding, ZeroClearsItsBytesAndNoOthers) {
  for (std::size_t length = 16; length <= kZeroedMax; length += 16) {
    std::array<std::byte, kZeroedMax + 2 * kFront> bytes;
    bytes.fill(std::byte{0x11});
    zero(&bytes[kFront], length);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      EXPECT_EQ(bytes[i], i >= kFront && i < kFront + length ? std::byte{0} : std::byte{0x11}) << length << " " << i;
  }
}

}  // namespace
}  // namespace loam::heap
