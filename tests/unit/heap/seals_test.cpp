// Seals: that each tells its length, and that no other number, place or process does.
#include "runtime/heap/seals.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace loam::heap {
namespace {

constexpr std::size_t kShortMax = (1u << 17) - 1;

// Never looked at: seals know addresses only.
const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }
const void* const kBlock = at(0x7f12'3456'7890);

struct Drawn : Seals {
  Drawn() { draw_secret_once(); }
};

TEST(Seals, TellTheirLength) {
  const Drawn seals;
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{24}, kShortMax, kShortMax + 1, std::size_t{1} << 46})
    EXPECT_EQ(seals.opened(seals.of(kBlock, bytes), kBlock), bytes);
}

TEST(Seals, AnyChangedBitOfAShortBlocksBreaksIt) {
  const Drawn seals;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{24}, std::size_t{1000}, kShortMax})
    for (unsigned bit = 0; bit < 64; ++bit)
      EXPECT_GT(seals.opened(seals.of(kBlock, bytes) ^ std::uint64_t{1} << bit, kBlock), kShortMax)
          << bytes << " " << bit;
}

TEST(Seals, AnyOtherByteBehindTheProgramsBreaksIt) {
  const Drawn seals;
  for (const std::size_t bytes : {0u, 8u, 24u, 1000u})
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint64_t seal = seals.of(kBlock, bytes), changed = (seal & ~std::uint64_t{0xff}) | byte;
      EXPECT_EQ(seals.opened(changed, kBlock) == bytes, byte == (bytes & 0xff));
      EXPECT_EQ(seals.opened(changed, kBlock) > kShortMax, byte != (bytes & 0xff)) << "the length's, in plain";
    }
}

TEST(Seals, OfABlockFitNoOtherOne) {
  const Drawn seals;
  for (std::uintptr_t other = 16; other < std::uintptr_t{1} << 46; other *= 2)
    for (const std::size_t bytes : {0u, 24u})
      EXPECT_GT(seals.opened(seals.of(kBlock, bytes), at(address_of(kBlock) ^ other)), kShortMax) << other;
}

TEST(Seals, AreSecret) {
  const Drawn seals, others;
  EXPECT_GT(others.opened(seals.of(kBlock, 24), kBlock), kShortMax);
  EXPECT_GT(seals.opened(0, kBlock), kShortMax) << "what is zeroed holds no seal";
}

TEST(Seals, TheSecretIsDrawnOnce) {
  Seals seals;
  EXPECT_EQ(seals.secret(), 0u);
  seals.draw_secret_once();
  const std::uint64_t drawn = seals.secret();
  EXPECT_NE(drawn, 0u);
  seals.draw_secret_once();
  EXPECT_EQ(seals.secret(), drawn);
}

}  // namespace
}  // namespace loam::heap
