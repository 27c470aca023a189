// What is known of each live block, one word for every 16 bytes of address space, found without a search or a lock.
//   A table of 2^17 pointers, one for each GiB of addresses, leads to a shadow of that GiB: 2^26 words, mapped when first
//   needed and backed where written.  A block's word is written by who allocates it and taken by who frees it; the
//   program's own hand-over of the block orders the two.
//   Cost     two loads and a store; half of the heap's size in memory.
//   When not addresses beyond 47 bits.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace loam::interposer {

inline constexpr unsigned kRegionBits = 30, kGranuleBits = 4;
inline constexpr std::size_t kRegions = std::size_t{1} << (47 - kRegionBits);
inline constexpr std::size_t kWords = std::size_t{1} << (kRegionBits - kGranuleBits);
inline constexpr std::size_t kWordsPerPage = 4096 / sizeof(std::uint64_t);
// One word more: a mode may use the word beside that of a long block, and the block may begin in the last granule.
inline constexpr std::size_t kMapped = (kWords + 1) * sizeof(std::uint64_t);

class Shadow {
 public:
  using Word = std::atomic<std::uint64_t>;

  // The word of a block's address; nullptr where there is none and `make` is false, or no memory.
  Word* word(const void* block, bool make) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::size_t region = address >> kRegionBits;
    if (region >= kRegions) return nullptr;
    // acquire: pairs with the exchange in map_region (shadow.A), or the words could be read before they are mapped.
    Word* words = regions_[region].load(std::memory_order_acquire);
    if (words == nullptr) [[unlikely]] {
      if (!make || (words = map_region(region)) == nullptr) return nullptr;
    }
    return words + ((address & ((std::uintptr_t{1} << kRegionBits) - 1)) >> kGranuleBits);
  }

  // Bytes of memory that the shadow itself holds.
  std::size_t resident_bytes() noexcept {
    std::size_t pages = 0;
    each_page([&pages](std::size_t, const Word*) { ++pages; });
    return pages * 4096;
  }

  // Calls with every word that is not 0, and the address that it is for.
  template <typename Visit>
  void each_block(Visit visit) noexcept {
    each_page([&visit](std::uintptr_t first, const Word* words) {
      for (std::size_t at = 0; at < kWordsPerPage; ++at) {
        // relaxed: a walk beside running threads is a sample; a block that comes or goes meanwhile may be missed.
        const std::uint64_t word = words[at].load(std::memory_order_relaxed);
        if (word != 0) visit(first + (at << kGranuleBits), word);
      }
    });
  }

 private:
  template <typename Visit>
  void each_page(Visit visit) noexcept {
    constexpr std::size_t kStep = 4096;  // pages asked about at once
    unsigned char resident[kStep];
    for (std::size_t region = 0; region < kRegions; ++region) {
      Word* words = regions_[region].load(std::memory_order_acquire);  // shadow.A
      if (words == nullptr) continue;
      for (std::size_t page = 0; page < kWords / kWordsPerPage; page += kStep) {
        if (mincore(words + page * kWordsPerPage, kStep * 4096, resident) != 0) continue;
        for (std::size_t at = 0; at < kStep; ++at)
          if (resident[at] & 1)
            visit((region << kRegionBits) + ((page + at) * kWordsPerPage << kGranuleBits),
                  words + (page + at) * kWordsPerPage);
      }
    }
  }

  [[gnu::noinline]] Word* map_region(std::size_t region) noexcept {
    void* made = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    madvise(made, kMapped, MADV_NOHUGEPAGE);
    madvise(made, kMapped, MADV_DONTDUMP);
    Word* expected = nullptr;
    // acq_rel: pairs with the acquire loads above (shadow.A): publishes the mapping, or takes over another thread's.
    if (regions_[region].compare_exchange_strong(expected, static_cast<Word*>(made), std::memory_order_acq_rel))
      return static_cast<Word*>(made);
    munmap(made, kMapped);
    return expected;
  }

  std::atomic<Word*> regions_[kRegions] = {};
};

}  // namespace loam::interposer
