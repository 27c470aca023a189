// A design from factors: what each factor changes, what each preset of allocators/design/ must show, and verify() of every
// preset after threads have freed one another's blocks.
#include "runtime/heap/design/design.hpp"

#include "tests/harness/design_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace loam::heap::design {
namespace {

constexpr unsigned kProcessors = 4;

// The settings of a preset's file, as LOAM_DESIGN has them.
std::string factors_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text, line;
  bool inside = false;
  while (std::getline(in, line)) {
    if (line == "[settings]") inside = true;
    const std::size_t equals = line.find(" = ");
    if (!inside || equals == std::string::npos) continue;
    std::string value = line.substr(equals + 3);
    std::erase(value, '"');
    text += (text.empty() ? "" : ",") + line.substr(0, equals) + "=" + value;
  }
  return text;
}
std::string preset(const std::string& name) {
  return factors_of(std::filesystem::path(LOAM_DESIGN_PRESETS) / (name + ".toml"));
}

// A design with some threads' fronts, all called from one thread. Its memory stays mapped.
class Made {
 public:
  explicit Made(const std::string& text, unsigned threads = 2) {
    char message[400];
    const std::string_view wrong = apply(text, factors, message);
    EXPECT_EQ(wrong, "") << text;
    EXPECT_TRUE(design.start(factors, kProcessors));
    for (unsigned i = 0; i < threads; ++i) fronts.push_back(design.begin_thread());
  }
  std::uintptr_t take(unsigned thread, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(design.allocate(*fronts[thread], bytes));
  }
  void give(unsigned thread, std::uintptr_t block) { design.release(*fronts[thread], reinterpret_cast<void*>(block)); }
  Heap* owner(std::uintptr_t block) { return design.owner_of(reinterpret_cast<FreeBlock*>(block)); }

  Factors factors;
  Design& design = kept<Design>();
  std::vector<Front*> fronts;
};

// Eight blocks of 16 bytes for each of two threads in turn, as the guide's golden values are taken.
struct Pairs {
  std::vector<std::uintptr_t> first, second;
  unsigned shared = 0, aliased = 0;
};
Pairs pairs_of(Made& made) {
  Pairs found;
  for (int i = 0; i < 8; ++i) {
    found.first.push_back(made.take(0, 16));
    found.second.push_back(made.take(1, 16));
  }
  for (const std::uintptr_t a : found.first)
    for (const std::uintptr_t b : found.second) {
      if (a >> 5 == b >> 5)
        ++found.shared;
      else if (((a >> 5) & 0xfffff) == ((b >> 5) & 0xfffff))
        ++found.aliased;
    }
  return found;
}

std::vector<std::size_t> strides_of(Made& made) {
  std::vector<std::size_t> found;
  for (const std::size_t bytes : {1, 8, 16, 17, 48, 100}) {
    // The third and the fourth: a slab has begun.
    std::vector<std::uintptr_t> blocks;
    for (int i = 0; i < 64; ++i) blocks.push_back(made.take(0, bytes));
    std::sort(blocks.begin(), blocks.end());
    std::size_t least = SIZE_MAX;
    for (int i = 1; i < 64; ++i) least = std::min<std::size_t>(least, blocks[i] - blocks[i - 1]);
    found.push_back(least);
  }
  return found;
}
using Strides = std::vector<std::size_t>;

// Of heaps that one thread holds, as another thread finds them.
class Held {
 public:
  explicit Held(std::initializer_list<Heap*> heaps) : heaps_(heaps) {
    for (Heap* const heap : heaps_) heap->lock.lock();
  }
  ~Held() {
    for (Heap* const heap : heaps_) heap->lock.unlock();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::vector<Heap*> heaps_;
};

TEST(Ptmalloc, Blocks32BytesApartAndArenasMultiplesOf64MiBApart) {
  for (const char* const name : {"ptmalloc", "ptmalloc-cached"}) {
    Made made(preset(name));
    EXPECT_EQ(strides_of(made), (Strides{32, 32, 32, 32, 64, 112})) << name;
    EXPECT_EQ(made.take(0, 16) % 16, 0U);
  }
  Made made(preset("ptmalloc"), 3);
  const auto first = [&](unsigned thread, std::initializer_list<Heap*> locked) {
    const Held held(locked);
    return made.take(thread, 16);
  };
  const std::uintptr_t a = made.take(0, 16);
  const std::uintptr_t b = first(1, {made.owner(a)});
  const std::uintptr_t c = first(2, {made.owner(a), made.owner(b)});
  EXPECT_EQ((c - b) % (std::size_t{64} << 20), 0U);
  // The first one lies at the program break, which is at no multiple.
  EXPECT_EQ((a - b) % (std::size_t{64} << 20), std::size_t{16} << 20);
  unsigned aliased = 0, with_first = 0;
  std::vector<std::uintptr_t> firsts{a}, seconds{b}, thirds{c};
  for (int i = 1; i < 8; ++i) {
    firsts.push_back(made.take(0, 16));
    seconds.push_back(made.take(1, 16));
    thirds.push_back(made.take(2, 16));
  }
  const auto record = [](std::uintptr_t block) { return (block >> 5) & 0xfffff; };
  for (const auto one : seconds) {
    for (const auto other : thirds) aliased += record(one) == record(other);
    for (const auto other : firsts) with_first += record(one) == record(other);
  }
  EXPECT_EQ(aliased, 8U);
  EXPECT_EQ(with_first, 0U);
}

TEST(Ptmalloc, AnArenaIsLeftOnlyWhenItsLockIsHeld) {
  Made made(preset("ptmalloc"));
  EXPECT_EQ(made.owner(made.take(0, 16)), made.owner(made.take(1, 16)));
}

TEST(Ptmalloc, AnotherArenaIsMadeOnlyWhereAllAreLocked) {
  Made made(preset("ptmalloc"), 3);
  const auto taken = [&](unsigned thread, std::initializer_list<Heap*> locked) {
    const Held held(locked);
    return made.owner(made.take(thread, 16));
  };
  Heap* const first = taken(0, {});
  Heap* const second = taken(1, {first});
  EXPECT_NE(first, second);
  EXPECT_EQ(taken(2, {first}), second);  // an active one that is free
  EXPECT_EQ(taken(2, {second}), first);  // also one before its own
  Heap* const third = taken(2, {first, second});
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
  EXPECT_EQ(made.owner(made.take(2, 16)), third);  // which it has from then on
}

TEST(Ptmalloc, AFreedBlockGoesToItsArenaWithoutCacheAndToTheThreadWithOne) {
  for (const bool cached : {false, true}) {
    Made made(preset(cached ? "ptmalloc-cached" : "ptmalloc"));
    const std::uintptr_t block = made.take(0, 100);
    made.give(1, block);
    EXPECT_EQ(made.fronts[1]->caches[Sizes::index_of(112)].count, cached ? 1U : 0U);
    EXPECT_EQ(made.take(cached ? 1 : 0, 100), block);
  }
}

TEST(Hoard, SuperblocksOf64KiBInPowersOfTwo) {
  Made made(preset("hoard"));
  EXPECT_EQ(strides_of(made), (Strides{16, 16, 16, 32, 64, 128}));
  const std::uintptr_t block = made.take(0, 24);
  Slab* const slab = made.design.slab_of(reinterpret_cast<FreeBlock*>(block));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab) % 65536, 0U);
  EXPECT_LT(block - reinterpret_cast<std::uintptr_t>(slab), 65536U);
  Made other(preset("hoard"));
  const Pairs pairs = pairs_of(other);
  EXPECT_EQ(pairs.shared + pairs.aliased, 0U);
}

TEST(Hoard, ABlockThatAnotherThreadFreesIsHandedOutByItsOwner) {
  Made made(preset("hoard") + ",cache=0");
  const std::uintptr_t block = made.take(0, 48);
  made.give(1, block);
  EXPECT_NE(made.take(1, 48), block);
  EXPECT_EQ(made.take(0, 48), block);
}

TEST(Hoard, AThreadCachesNoBlockOfAnotherHeap) {
  Made made(preset("hoard"));
  const std::uintptr_t block = made.take(0, 48);
  made.give(1, block);
  EXPECT_EQ(made.fronts[1]->caches[Sizes::index_of(64)].count, 0U);
  EXPECT_NE(made.take(1, 48), block);
}

TEST(Hoard, ASuperblockMovesExactlyWhereBothInequalitiesHold) {
  // With 12 % the first one decides, with 50 % the second.
  for (const std::uint64_t emptiness : {12, 50}) {
    Made made(preset("hoard") + ",cache=0,emptiness=" + std::to_string(emptiness));
    Heap& heap = *made.fronts[0]->heap;
    std::vector<std::uintptr_t> blocks;
    while (heap.slab_bytes < 8 * 65536) blocks.push_back(made.take(0, 4096));
    ASSERT_EQ(heap.moved, 0U);
    while (heap.moved == 0 && !blocks.empty()) {
      const std::uint64_t used = heap.used_bytes - 4096, all = heap.slab_bytes;
      const bool holds = used + 2 * 65536 < all && used * 100 < all * (100 - emptiness);
      made.give(0, blocks.back());
      blocks.pop_back();
      EXPECT_EQ(heap.moved, holds ? 1U : 0U) << used << " of " << all << " used";
    }
    EXPECT_EQ(heap.moved, 1U);
    made.design.verify();
  }
}

TEST(Hoard, UpTo256BytesTakeNoLockButToRefill) {
  Made made(preset("hoard"));
  const std::uintptr_t block = made.take(0, 256);
  const std::uint64_t sections = made.fronts[0]->heap->lock.counts().sections;
  for (int i = 0; i < 1000; ++i) {
    made.give(0, block);
    ASSERT_EQ(made.take(0, 256), block);
  }
  EXPECT_EQ(made.fronts[0]->heap->lock.counts().sections, sections);
  const std::uintptr_t longer = made.take(0, 257);
  made.give(0, longer);
  EXPECT_EQ(made.fronts[0]->heap->lock.counts().sections, sections + 2);
}

TEST(Supermalloc, ChunksOf2MiBTheFullestFirst) {
  Made made(preset("supermalloc"));
  EXPECT_EQ(strides_of(made), (Strides{8, 8, 16, 32, 48, 112}));
  Made one(preset("supermalloc") + ",cache=0,slab=65536,heaps=one");
  std::vector<std::uintptr_t> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(one.take(0, 16000));  // three slabs of four
  one.give(0, blocks[0]);
  for (int i = 4; i < 7; ++i) one.give(0, blocks[i]);
  one.give(0, blocks[8]);
  one.give(0, blocks[9]);
  // Of slabs with one, three and two free blocks, the first is the fullest; then the one with two.
  EXPECT_EQ(one.take(0, 16000), blocks[0]);
  const std::uintptr_t next = one.take(0, 16000);
  EXPECT_TRUE(next == blocks[8] || next == blocks[9]);
}

TEST(Supermalloc, SectionsAreTransactionsWhereThereAreAnyAndCounted) {
  Made made(preset("supermalloc") + ",heaps=one");
  for (int i = 0; i < 100; ++i) made.take(0, 16);
  const auto counts = made.fronts[0]->heap->lock.counts();
  EXPECT_EQ(counts.sections, 20U);  // 5 blocks each
  // Not all: a page that is touched for the first time ends a transaction, and the lock is taken.
  EXPECT_EQ(counts.elided >= 10, platform::has_transactions()) << counts.elided;
}

TEST(Supermalloc, AThreadThatMovesSeesTheOtherProcessorsHeap) {
  Made made(preset("supermalloc") + ",cache=0");
  const std::uintptr_t block = made.take(0, 16);
  made.give(0, block);
  // Whatever processor this is, the heap is the processor's and not the thread's: the other thread gets the block.
  EXPECT_EQ(made.take(1, 16), block);
}

TEST(Scalloc, SpansAre2MiBApartAndOnly16KiBServe) {
  Made made(preset("scalloc"));
  std::set<std::uintptr_t> spans;
  for (int i = 0; i < 300; ++i) {
    const std::uintptr_t block = made.take(0, 100);
    spans.insert(block >> 21);
    ASSERT_LT(block & ((1U << 21) - 1), 16384U);
  }
  EXPECT_EQ(spans.size(), (300 + 144) / 145U);
}

TEST(Scalloc, ARemoteFreeGoesToTheOwnersListOrToTheFreeingThread) {
  Made own(preset("scalloc"));
  const std::uintptr_t block = own.take(0, 48);
  own.give(1, block);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own.design.slab_of(reinterpret_cast<FreeBlock*>(block))->remote.load()),
            block);
  EXPECT_NE(own.take(1, 48), block);
  Made buffer(preset("scalloc-001"));
  const std::uintptr_t other = buffer.take(0, 48);
  buffer.give(1, other);
  EXPECT_EQ(buffer.take(1, 48), other);
}

TEST(Scalloc, EmptySpansAreTakenNewestFirstOnTheirProcessor) {
  Factors factors;
  char message[400];
  ASSERT_EQ(apply(preset("scalloc"), factors, message), "");
  Store& store = kept<Store>();
  ASSERT_TRUE(store.start(factors, kProcessors));
  Slab* slabs[3];
  for (Slab*& slab : slabs) slab = store.new_slab(store.carve(store.unit()));
  store.put(slabs[0], 1);
  store.put(slabs[1], 1);
  store.put(slabs[2], 2);
  EXPECT_EQ(store.take(1), slabs[1]);
  EXPECT_EQ(store.take(1), slabs[0]);
  EXPECT_EQ(store.take(1), slabs[2]);  // another processor's, before a new one
  EXPECT_EQ(store.take(1), nullptr);
}

TEST(Tbb, ThePrivateListIsUsedUpBeforeThePublicOneIsRead) {
  Made made(preset("tbb"));
  std::vector<std::uintptr_t> blocks;
  const std::size_t capacity = (16384 - 128) / 1024;
  for (std::size_t i = 0; i < capacity; ++i) blocks.push_back(made.take(0, 1024));
  made.give(1, blocks[3]);
  made.give(0, blocks[5]);
  EXPECT_EQ(made.take(0, 1024), blocks[5]);
  EXPECT_EQ(made.take(0, 1024), blocks[3]);
}

TEST(Tbb, BlocksOf16KiBAreCutFromTheirEnds) {
  Made made(preset("tbb"));
  const std::uintptr_t block = made.take(0, 16);
  EXPECT_EQ(block % 16384, 16384U - 16);
  EXPECT_EQ(made.take(0, 16), block - 16);
  EXPECT_EQ(strides_of(made), (Strides{8, 8, 16, 32, 48, 112}));
  const Pairs pairs = pairs_of(made);
  EXPECT_EQ(pairs.shared, 0U);
}

TEST(Tcmalloc, BatchesOfOneTwoThreeFromOneSpan) {
  Made made(preset("tcmalloc"));
  const Pairs pairs = pairs_of(made);
  std::vector<std::uintptr_t> first, second;
  for (const auto block : pairs.first) first.push_back((block - pairs.first[0]) / 16);
  for (const auto block : pairs.second) second.push_back((block - pairs.first[0]) / 16);
  EXPECT_EQ(first, (std::vector<std::uintptr_t>{0, 2, 3, 6, 7, 8, 12, 13}));
  EXPECT_EQ(second, (std::vector<std::uintptr_t>{1, 4, 5, 9, 10, 11, 16, 17}));
  // The guide counts 4: there the first block lies 16 bytes behind the begin of a stripe.
  Made shifted(preset("tcmalloc"));
  shifted.take(0, 16);
  shifted.fronts[0]->caches[1].batch = 0;
  EXPECT_EQ(pairs_of(shifted).shared, 4U);
  made.give(1, pairs.first[0]);
  EXPECT_EQ(made.take(1, 16), pairs.first[0]);
}

TEST(Jemalloc, ArenasInTurnTheLowestSlabFirstAndHalfOfAFullCacheGoesHome) {
  Made made(preset("jemalloc"), 17);
  EXPECT_EQ(made.fronts[0]->heap, made.fronts[16]->heap);  // four arenas per processor
  std::set<Heap*> different;
  for (unsigned i = 0; i < 16; ++i) different.insert(made.fronts[i]->heap);
  EXPECT_EQ(different.size(), 16U);
  const Pairs pairs = pairs_of(made);
  EXPECT_EQ((pairs.second[0] - pairs.first[0]) % (4U << 20), 0U);
  EXPECT_EQ(pairs.shared, 0U);
  EXPECT_EQ(strides_of(made), (Strides{8, 8, 16, 32, 48, 112}));

  Made flushed(preset("jemalloc") + ",cache=20,batch=1");
  std::vector<std::uintptr_t> blocks;
  for (int i = 0; i < 21; ++i) blocks.push_back(flushed.take(0, 64));
  for (const auto block : blocks) flushed.give(1, block);
  EXPECT_EQ(flushed.fronts[1]->caches[Sizes::index_of(64)].count, 10U);

  Made lowest(preset("jemalloc") + ",cache=0");
  blocks.clear();
  for (int i = 0; i < 12; ++i) blocks.push_back(lowest.take(0, 4096));  // three slabs of four
  lowest.give(0, blocks[1]);
  lowest.give(0, blocks[9]);
  EXPECT_EQ(lowest.take(0, 4096), blocks[1]);
}

TEST(EveryPreset, HoldsWhatThreadsWroteAndVerifies) {
  for (const auto& entry : std::filesystem::directory_iterator(LOAM_DESIGN_PRESETS))
    hand_round(factors_of(entry.path()), 6000);
}

}  // namespace
}  // namespace loam::heap::design
