// The fast paths of the managed heap, to be counted by test_gc_counts.py (steps.hpp says how).
#include "runtime/gc/checking.hpp"
#include "runtime/gc/gc.hpp"
#include "tests/golden/steps.hpp"

#include <optional>

namespace {

using namespace loam;
using namespace loam::golden;

// 32 bytes with its header.
struct Pair : gc::Object {
  gc::Ref<Pair> next;
  gc::Value<std::uint64_t> number;
  static gc::Descriptor describe() { return gc::describe<Pair>("pair", &Pair::next); }
};
static_assert(sizeof(Pair) == 32);

struct Fixture {
  explicit Fixture(bool hash) : all(heap, settings_of(hash)) {
    for (auto& pair : pairs) pair.emplace(mutator, mutator.allocate<Pair>());
  }
  static gc::TxSettings settings_of(bool hash) {
    gc::TxSettings settings;
    settings.hash = hash;
    return settings;
  }
  ~Fixture() {
    for (std::size_t i = pairs.size(); i-- != 0;) pairs[i].reset();
  }

  // A buffer for all allocations that are counted: of the fast path alone. (Zeroing is one instruction for each byte to
  // valgrind, and not to the processor.)
  gc::Heap heap{{.memory_bytes = std::size_t{512} << 20,
                 .nursery_bytes = std::size_t{128} << 20,
                 .buffer_bytes = std::size_t{32} << 20}};
  gc::Transactions all;
  gc::CheckingMutator mutator{heap};
  gc::Transaction tx{all, mutator};
  std::array<std::optional<gc::Local<Pair>>, kMore + 1> pairs;
};

void steps_of(bool hash) {
  Fixture f(hash);
  gc::Mutator& mutator = f.mutator;
  gc::CheckingMutator& checking = f.mutator;
  gc::Transaction& tx = f.tx;
  auto& pairs = f.pairs;
  if (hash) {
    compare<kFew, kMore>("allocation of 32 bytes",
                         [&](auto n) { straight<n>([&](auto) LOAM_STEP { opaque(mutator.allocate<Pair>()); }); });
    compare<kFew, kMore>("allocation of 32 bytes, after a check whether it is for a log",
                         [&](auto n) { straight<n>([&](auto) LOAM_STEP { opaque(checking.allocate<Pair>()); }); });
    compare<kFew, kMore>("write of a reference outside of transactions", [&](auto n) {
      straight<n>([&](auto i) LOAM_STEP { mutator.write(*pairs[i], &Pair::next, pairs[i + 1]->get()); });
    });
    compare<kFew, kMore>("safepoint", [&](auto n) { straight<n>([&](auto) LOAM_STEP { mutator.safepoint(); }); });
    compare<1, 2>("empty transaction", [&](auto n) {
      straight<n>([&](auto) LOAM_STEP { gc::atomically(tx, [](gc::Transaction&) LOAM_STEP {}); });
    });
    compare<kFew, kMore>("read enlistment, seen before", [&](auto n) {
      gc::atomically(tx, [&](gc::Transaction& t) LOAM_STEP {
        straight<kMore>([&](auto i) LOAM_STEP { t.enlist_read(*pairs[i]); });
        straight<n>([&](auto i) LOAM_STEP { t.enlist_read(*pairs[i]); });
      });
    });
    compare<kFew, kMore>("read enlistment and field, seen before", [&](auto n) {
      gc::atomically(tx, [&](gc::Transaction& t) LOAM_STEP {
        straight<kMore>([&](auto i) LOAM_STEP { t.enlist_read(*pairs[i]); });
        straight<n>([&](auto i) LOAM_STEP { opaque(t.read(*pairs[i], &Pair::number)); });
      });
    });
  }
  compare<kFew, kMore>(hash ? "read enlistment, logged" : "read enlistment, logged, without the filter", [&](auto n) {
    gc::atomically(
        tx, [&](gc::Transaction& t) LOAM_STEP { straight<n>([&](auto i) LOAM_STEP { t.enlist_read(*pairs[i]); }); });
  });
  if (!hash) return;
  compare<kFew, kMore>("first write of an object, with its commit", [&](auto n) {
    gc::atomically(tx, [&](gc::Transaction& t)
                           LOAM_STEP { straight<n>([&](auto i) LOAM_STEP { t.write(*pairs[i], &Pair::number, 1); }); });
  });
  compare<kFew, kMore>("write after write", [&](auto n) {
    gc::atomically(tx, [&](gc::Transaction& t) LOAM_STEP {
      t.write(*pairs[0], &Pair::number, 1);
      straight<n>([&](auto) LOAM_STEP { t.write(*pairs[0], &Pair::number, 1); });
    });
  });
}

}  // namespace

int main() {
  steps_of(true);
  steps_of(false);
  std::printf("compiler: GCC %s\n", __VERSION__);
}
