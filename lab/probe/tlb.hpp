// tlb: a model of a processor's translation buffers for data: two levels, pages of 4 KiB and of 2 MiB.
//   First level: entries of their own for each size of page. Second level: one for both. Each level is made of sets; in a
//   set the page that was not used for longest leaves. What the second level gives goes into the first; what neither has
//   is a walk of the page tables, and goes into both.
//   Unlike processors: they only come near "not used for longest", load pages ahead, and run several threads on a core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace loam::tlb {

inline constexpr unsigned kSmallBits = 12, kLargeBits = 21;

struct Shape {
  std::uint32_t entries = 0, ways = 1;

  std::uint32_t sets() const noexcept { return entries / ways; }
  // The number of sets is a power of two: the low bits of a page's number choose its set.
  bool possible() const noexcept {
    return ways != 0 && entries != 0 && entries % ways == 0 && (sets() & (sets() - 1)) == 0;
  }
};

// One level. A set holds its pages in the order of their last use, the latest first.
class Level {
 public:
  explicit Level(Shape shape) : ways_(shape.ways), mask_(shape.sets() - 1), keys_(shape.entries, kNone) {}

  // Whether the page was there; afterwards it is, and is its set's latest.  key: tells pages of two sizes apart
  bool use(std::uint64_t page, std::uint64_t key) {
    std::uint64_t* const set = keys_.data() + (page & mask_) * ways_;
    if (set[0] == key) return true;
    std::uint64_t* const end = set + ways_;
    std::uint64_t* found = std::find(set + 1, end, key);
    const bool hit = found != end;
    if (!hit) --found;  // the one that leaves
    std::move_backward(set, found, found + 1);
    set[0] = key;
    return hit;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t ways_, mask_;
  std::vector<std::uint64_t> keys_;
};

struct Shapes {
  Shape first_small, first_large, second;
};

class Model {
 public:
  explicit Model(const Shapes& shapes)
      : first_{Level(shapes.first_small), Level(shapes.first_large)}, second_(shapes.second) {}

  // An access to `bytes` bytes, all of whose pages have one size: a translation for each page that it touches.
  void access(std::uint64_t address, std::uint64_t bytes, bool large) {
    const unsigned bits = large ? kLargeBits : kSmallBits;
    const std::uint64_t last = (address + std::max<std::uint64_t>(bytes, 1) - 1) >> bits;
    for (std::uint64_t page = address >> bits; page <= last; ++page) translate(page, large);
  }

  std::uint64_t translations() const noexcept { return translations_; }
  std::uint64_t first_misses() const noexcept { return first_misses_; }
  std::uint64_t walks() const noexcept { return walks_; }
  // Different pages: as many walks are needed by any buffer.
  std::uint64_t pages() const noexcept { return seen_.size(); }

 private:
  void translate(std::uint64_t page, bool large) {
    const std::uint64_t key = page << 1 | static_cast<std::uint64_t>(large);
    ++translations_;
    if (first_[large].use(page, key)) return;
    ++first_misses_;
    if (second_.use(page, key)) return;
    ++walks_;
    seen_.insert(key);
  }

  Level first_[2], second_;
  std::uint64_t translations_ = 0, first_misses_ = 0, walks_ = 0;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace loam::tlb
