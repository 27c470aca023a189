// Padding of every length, at every place in a word: what is written, what is left alone, what is noticed.
#include "runtime/heap/padding.hpp"

#include <gtest/gtest.h>

#include <array>

namespace loam::heap {
namespace {

constexpr std::size_t kFront = 24, kBytes = 80;  // the program's bytes in front, at least eight

TEST(Padding, ItsBytesAreWrittenAndNoOthers) {
  for (std::size_t length = 0; length <= kPaddingMax; ++length) {
    std::array<std::byte, kBytes> bytes;
    bytes.fill(std::byte{0x11});
    pad(&bytes[kFront], length);
    for (std::size_t i = 0; i < kBytes; ++i)
      EXPECT_EQ(bytes[i], i >= kFront && i < kFront + length ? std::byte{0xb5} : std::byte{0x11}) << length << " " << i;
  }
}

TEST(Padding, EachOfItsBytesIsLookedAtAndNoOther) {
  for (std::size_t length = 0; length <= kPaddingMax; ++length)
    for (std::size_t changed = 0; changed < kBytes; ++changed) {
      std::array<std::byte, kBytes> bytes{};
      pad(&bytes[kFront], length);
      bytes[changed] ^= std::byte{0x40};
      EXPECT_EQ(is_padded(&bytes[kFront], length), changed < kFront || changed >= kFront + length)
          << length << " " << changed;
    }
}

TEST(Zero, EveryWordIsLookedAtAndNoOther) {
  for (std::size_t count = 0; count <= 40; count += 2)
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
