// Another collector in the place of ours: what it is asked for, and when.
#include "runtime/gc/backend.hpp"
#include "runtime/gc/settings.hpp"
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::Transactions;
using gc::TxSettings;

struct Block {
  void* start;
  bool has_references;
};

// It frees nothing; with `forgets` a collection makes room all the same.
struct Told {
  std::size_t limit = 0, served = 0;
  unsigned collections = 0;
  bool forgets = false;
  std::set<void*> roots;
  std::vector<Block> blocks;
  std::set<const void*> dead;  // what it says of them
  std::set<const void*> kept;  // in the last collection, for logs
};
Told told;
std::mutex allocating;
std::atomic<int> threads{0};

void open(std::size_t memory_bytes) { told.limit = memory_bytes; }
void* allocate(std::size_t bytes, bool has_references) {
  const std::lock_guard lock(allocating);
  if (told.served + bytes > told.limit) return nullptr;
  told.served += bytes;
  return told.blocks.emplace_back(Block{std::calloc(1, bytes), has_references}).start;
}
void collect(const gc::Marking&) { ++told.collections; }
void add_root(void* first, void*) { told.roots.insert(first); }
void remove_root(void* first, void*) { told.roots.erase(first); }
void attach() { ++threads; }
void detach() { --threads; }
void count(gc::Statistics& counts) { counts.full += told.collections; }

// Collects when it is asked.
void collect_asked(const gc::Marking& marking) {
  ++told.collections;
  told.kept.clear();
  if (told.forgets) told.served = 0;
  marking.strong(marking.heap);
  marking.weak(marking.heap);
}
void keep(gc::Object* object) { told.kept.insert(object); }
bool is_live(const gc::Object* object) { return !told.dead.contains(object); }
void set_limit(std::size_t bytes) { told.limit = bytes; }
std::size_t in_use() { return told.served; }

const gc::Backend kRecording{open, allocate, collect, add_root, remove_root, attach, detach, count};
const gc::Backend kAsked{open,   allocate, collect_asked, add_root, remove_root, attach,
                         detach, count,    keep,          is_live,  set_limit,   in_use};

constexpr std::size_t kMemory = std::size_t{1} << 20;

class Backend : public testing::Test {
 protected:
  Backend() { told = {}; }
  ~Backend() override {
    for (const Block& block : told.blocks) std::free(block.start);
  }
  const gc::Settings settings_{.memory_bytes = kMemory, .backend = &kRecording};
  const gc::Settings asked_{.memory_bytes = kMemory, .backend = &kAsked};
};

TEST_F(Backend, ObjectsComeFromItAndItKnowsGlobals) {
  Heap heap(settings_);
  EXPECT_EQ(told.limit, kMemory);
  {
    Mutator mutator(heap);
    Local<Cell> first(mutator, make_list(mutator, 5, 3));
    EXPECT_EQ(told.blocks.size(), 3u);
    Global<Cell> kept(heap);
    kept.set(first.get());
    EXPECT_EQ(told.roots, std::set<void*>{&kept.slot()});
    Cell* const before = first.get();
    mutator.collect();
    EXPECT_EQ(told.collections, 1u);
    EXPECT_EQ(first.get(), before);
    EXPECT_EQ(numbers_of(mutator, kept.get()), (std::vector<std::uint64_t>{5, 6, 7}));
  }
  EXPECT_TRUE(told.roots.empty());
  EXPECT_EQ(heap.statistics().full, 1u);
  EXPECT_EQ(heap.statistics().allocated_bytes, 3 * sizeof(Cell));
}

TEST_F(Backend, ItIsToldWhatHasNoReferences) {
  Heap heap(settings_);
  Mutator mutator(heap);
  mutator.allocate_array<gc::ValueArray<std::uint64_t>>(10);
  mutator.allocate_array<gc::RefArray<Cell>>(10);
  mutator.allocate<Cell>();
  ASSERT_EQ(told.blocks.size(), 3u);
  EXPECT_FALSE(told.blocks[0].has_references);
  EXPECT_TRUE(told.blocks[1].has_references);
  EXPECT_TRUE(told.blocks[2].has_references);
}

TEST_F(Backend, ItsLimitIsAnErrorThatTheProgramCanHandle) {
  Heap heap(settings_);
  Mutator mutator(heap);
  EXPECT_THROW(for (;;) mutator.allocate_array<gc::ValueArray<std::uint64_t>>(1000), gc::OutOfMemory);
  EXPECT_EQ(told.collections, 0u) << "it collects when it likes";
}

TEST_F(Backend, OneThatIsAskedCollectsWhenItsMemoryIsUsedUp) {
  Heap heap(asked_);
  Mutator mutator(heap);
  using Words = gc::ValueArray<std::uint64_t>;
  EXPECT_THROW(for (;;) mutator.allocate_array<Words>(1000), gc::OutOfMemory);
  EXPECT_GT(told.collections, 0u);
  told.forgets = true;
  const unsigned before = told.collections;
  for (unsigned i = 0; i < 1000; ++i) mutator.allocate_array<Words>(1000);  // 8 MB
  EXPECT_GE(told.collections - before, 7u);
  EXPECT_LE(told.collections - before, 9u);
}

TEST_F(Backend, ThreadsAttachAndDetach) {
  Heap heap(settings_);
  Mutator mutator(heap);
  EXPECT_EQ(threads, 1);
  std::thread([&] {
    Mutator own(heap);
    EXPECT_EQ(threads, 2);
  }).join();
  EXPECT_EQ(threads, 1);
}

TxSettings plain(Placement placement) {
  TxSettings settings;
  settings.placement = placement;
  settings.chunk_bytes = 256;
  settings.hash = false;
  settings.compaction = gc::Compaction::off;
  return settings;
}

TEST_F(Backend, LogsKeepOldValuesAndForgetWhatIsDead) {
  for (const Placement placement : {Placement::heap, Placement::dedicated, Placement::arena}) {
    told.dead.clear();
    told.collections = 0;
    Heap heap(asked_);
    Transactions all(heap, plain(placement));
    Mutator mutator(heap);
    Transaction tx(all, mutator);
    Local<Cell> holder(mutator, make_cell(mutator, 1)), old(mutator, make_cell(mutator, 2)),
        dying(mutator, make_cell(mutator, 3));
    mutator.write(holder, &Cell::next, old.get());
    EXPECT_THROW(atomically(tx,
                            [&](Transaction& t) {
                              for (unsigned i = 0; i < 100; ++i) t.read(holder, &Cell::number);
                              t.read(dying, &Cell::number);
                              t.write(dying, &Cell::number, 9);
                              t.write(holder, &Cell::next, nullptr);
                              EXPECT_EQ(t.entries(), 101u + 2 + 2);
                              told.dead.insert(dying.get());
                              mutator.collect();
                              EXPECT_EQ(told.collections, 1u);
                              EXPECT_TRUE(told.kept.contains(old.get()));
                              EXPECT_FALSE(told.kept.contains(holder.get())) << "entries are weak";
                              EXPECT_EQ(t.entries(), 100u + 1 + 1) << "the dead object's three are gone";
                              EXPECT_TRUE(t.validate());
                              throw std::runtime_error("no");
                            }),
                 std::runtime_error);
    EXPECT_EQ(mutator.read(holder, &Cell::next), old.get());
    EXPECT_EQ(tx.statistics().long_reads, 101u);
    // Chunks in its memory: it need not look into them, and keeps them for the logs.
    std::size_t chunks = 0;
    for (const Block& block : told.blocks) chunks += !block.has_references && told.kept.contains(block.start) ? 1 : 0;
    if (placement == Placement::heap)
      EXPECT_GT(chunks, 5u);
    else
      EXPECT_EQ(chunks, 0u);
  }
}

TEST_F(Backend, LogsOutsideOfItsMemoryLeaveItLess) {
  Heap heap(asked_);
  Transactions all(heap, plain(Placement::dedicated));
  Mutator mutator(heap);
  Transaction tx(all, mutator);
  Local<Cell> cell(mutator, make_cell(mutator, 1));
  atomically(tx, [&](Transaction& t) {
    for (unsigned i = 0; i < 10000; ++i) t.read(cell, &Cell::number);
  });
  EXPECT_GE(heap.log_bytes(), 10000 * sizeof(gc::ReadEntry));
  EXPECT_EQ(told.limit, kMemory - heap.log_bytes() - heap.log_bytes() / 8);
  EXPECT_THROW(atomically(tx,
                          [&](Transaction& t) {
                            for (;;) t.read(cell, &Cell::number);
                          }),
               gc::OutOfMemory);
  EXPECT_LE(heap.log_bytes() + told.served, kMemory);
}

// The backend keeps all memory that it has taken. Logs may still grow by an eighth over the largest size before.
TEST_F(Backend, LogsMayBecomeLongerWhenItHasTakenAllItMay) {
  Heap heap(asked_);
  Transactions all(heap, plain(Placement::dedicated));
  Mutator mutator(heap);
  Transaction tx(all, mutator);
  Local<Cell> cell(mutator, make_cell(mutator, 1));
  const auto reads = [&](unsigned count) {
    atomically(tx, [&](Transaction& t) {
      for (unsigned i = 0; i < count; ++i) t.read(cell, &Cell::number);
    });
  };
  reads(10000);
  EXPECT_THROW(for (;;) make_cell(mutator, 2), gc::OutOfMemory);
  EXPECT_GT(told.served + sizeof(Cell), told.limit);
  for (unsigned i = 0; i < 600; ++i) reads(1);  // free chunks are returned meanwhile
  EXPECT_THROW(for (;;) make_cell(mutator, 2), gc::OutOfMemory);
  reads(11000);
  EXPECT_LE(heap.log_bytes() + told.served, kMemory);
}

TEST_F(Backend, ThreadsRunTransactionsOnIt) {
  gc::Settings settings = asked_;
  settings.memory_bytes = std::size_t{64} << 20;
  settings.collect_every = 3;
  Heap heap(settings);
  Transactions all(heap, plain(Placement::heap));
  Mutator mutator(heap);
  Global<Cell> shared(heap);
  shared.set(make_cell(mutator, 0));
  constexpr unsigned kTimes = 500;
  const auto work = [&](Mutator& own) {
    Transaction tx(all, own);
    Local<Cell> cell(own, shared.get());
    for (unsigned i = 0; i < kTimes; ++i)
      atomically(tx, [&](Transaction& t) {
        t.write(cell, &Cell::number, t.read(cell, &Cell::number) + 1);
        t.create<Cell>();
      });
  };
  std::thread other([&] {
    Mutator own(heap);
    work(own);
  });
  work(mutator);
  {
    Mutator::Native native(mutator);
    other.join();
  }
  EXPECT_EQ(shared.get()->number.slot().load(), 2 * kTimes);
  EXPECT_GE(told.collections, 2 * kTimes / 3);
}

TEST_F(Backend, OneThatCollectsWhenItLikesRefusesTransactions) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Heap heap(settings_);
  EXPECT_DEATH(Transactions(heap, TxSettings{}), "this backend collects when it likes");
  Heap asked(asked_);
  TxSettings nursery = plain(Placement::arena);
  nursery.nursery = true;
  EXPECT_DEATH(Transactions(asked, nursery), "TxSettings::nursery: a backend takes no memory back");
}

}  // namespace
}  // namespace loam::tests
