// ManagedOperations: bytes as a sequence of operations on the managed heap, checked against a model.
//   The first two bytes choose settings of heap and logs. Each further byte says what, those behind it which: every input is
//   a sequence. One thread makes, links and drops cells, arrays and weak references, collects, and runs transactions,
//   nested up to kNesting deep, of which some are left by an exception.
//   Checked: what roots reach is what the model says, cell by cell, after each transaction and at the end, also what a
//   transaction has undone; a weak reference follows its cell, and is null once a full collection has found the cell
//   dead; in the end, with all roots gone, nothing lives. The heap verifies itself around each collection.
#pragma once

#include "tests/harness/managed.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace loam::tests {

class ManagedOperations {
 public:
  explicit ManagedOperations(std::span<const std::uint8_t> input) noexcept : input_(input) {}

  // nullptr, or what did not hold.
  const char* run() {
    const unsigned settings = take();
    gc::Heap heap(heap_settings(settings));
    {
      gc::Transactions all(heap, tx_settings(settings / 4, take()));
      gc::Mutator mutator(heap);
      gc::Transaction tx(all, mutator);
      const Use use{heap, mutator, tx};
      {
        Roots roots(mutator);
        operate(use, roots, 0);
        compare(roots);
      }
      mutator.collect();
    }
    gc::Mutator last(heap);
    last.collect();
    expect(heap.live_bytes() == 0, "something lives although nothing refers to it");
    return wrong_;
  }

 private:
  static constexpr unsigned kRoots = 6, kArrays = 2, kWeak = 2, kNesting = 3, kLargeMax = 30;
  static constexpr std::size_t kSmallLength = 5, kLargeLength = 2200;  // the latter is a large object
  static constexpr int kNull = -1;

  struct Node {
    std::uint64_t number;
    int next = kNull, other = kNull;
  };
  struct Array {
    bool exists = false;
    std::vector<int> cells;
  };
  struct Model {
    std::vector<Node> nodes;
    std::array<int, kRoots> roots;
    std::array<Array, kArrays> arrays;
    std::array<int, kWeak> weak;  // kNull: there is none

    Model() {
      roots.fill(kNull);
      weak.fill(kNull);
    }
  };
  struct Roots {
    std::array<gc::Local<Cell>, kRoots> cells;
    std::array<gc::Local<gc::RefArray<Cell>>, kArrays> arrays;
    std::array<gc::Local<gc::WeakReference>, kWeak> weak;

    explicit Roots(gc::Mutator& m)
        : cells{gc::Local<Cell>(m), gc::Local<Cell>(m), gc::Local<Cell>(m),
                gc::Local<Cell>(m), gc::Local<Cell>(m), gc::Local<Cell>(m)},
          arrays{gc::Local<gc::RefArray<Cell>>(m), gc::Local<gc::RefArray<Cell>>(m)},
          weak{gc::Local<gc::WeakReference>(m), gc::Local<gc::WeakReference>(m)} {}
    void take(const Roots& from) {
      for (unsigned i = 0; i < kRoots; ++i) cells[i] = from.cells[i];
      for (unsigned i = 0; i < kArrays; ++i) arrays[i] = from.arrays[i];
      for (unsigned i = 0; i < kWeak; ++i) weak[i] = from.weak[i];
    }
  };
  struct Use {
    gc::Heap& heap;
    gc::Mutator& mutator;
    gc::Transaction& tx;
  };
  struct Left {};  // the exception that leaves a transaction

  static gc::Settings heap_settings(unsigned byte) {
    constexpr unsigned kEvery[] = {0, 1, 3, 7};
    gc::Settings settings = small_heap(kEvery[byte % 4], byte >= 128);
    settings.memory_bytes = std::size_t{4} << 20;
    return settings;
  }
  static gc::TxSettings tx_settings(unsigned bits, unsigned more) {
    constexpr gc::Placement kPlacements[] = {gc::Placement::heap, gc::Placement::dedicated, gc::Placement::arena,
                                             gc::Placement::arena};
    return {.placement = kPlacements[bits % 4],
            .chunk_bytes = 256,
            .lock_free_chunks = more / 4 % 2 != 0,
            .short_reads = bits / 4 % 2 == 0,
            .locals = more % 2 != 0,
            .opaque = more / 2 % 2 == 0,
            .nursery = bits % 4 == 3,
            .compaction = bits / 8 % 2 == 0 ? gc::Compaction::full : gc::Compaction::every,
            .collect_at_enlistments = bits / 16 % 2 != 0};
  }

  unsigned take() noexcept {
    if (input_.empty()) return 0;
    const unsigned byte = input_.front();
    input_ = input_.subspan(1);
    return byte;
  }
  void expect(bool holds, const char* what) noexcept {
    if (!holds && wrong_ == nullptr) wrong_ = what;
  }

  // Until the input, or the transaction, is over. depth: of nested transactions
  void operate(const Use& use, Roots& roots, unsigned depth) {
    while (!input_.empty() && wrong_ == nullptr) {
      const unsigned what = take() % 16;
      if (depth != 0 && what == 15) return;
      if (depth != 0 && what == 14) throw Left{};
      if (what >= 12) {
        if (depth < kNesting) transact(use, roots, depth);
      } else if (what >= 8) {
        apart(use, roots, what, depth);
      } else {
        on_cells(use, roots, what, depth != 0);
      }
    }
  }

  void transact(const Use& use, Roots& roots, unsigned depth) {
    const Model before = model_;
    Roots kept(use.mutator);
    kept.take(roots);
    try {
      gc::atomically(use.tx, [&](gc::Transaction&) { operate(use, roots, depth + 1); });
    } catch (const Left&) {
      model_ = before;
      roots.take(kept);
    }
    compare(roots);
  }

  // What needs neither a log nor a barrier: arrays, weak references, collections.
  void apart(const Use& use, Roots& roots, unsigned what, unsigned depth) {
    const unsigned which = take();
    const unsigned array = which % kArrays, weak = which % kWeak, root = which / 4 % kRoots;
    if (what == 8) {
      const bool is_large = which >= 128 && large_++ < kLargeMax;
      const std::size_t length = is_large ? kLargeLength : kSmallLength;
      roots.arrays[array] = use.mutator.allocate_array<gc::RefArray<Cell>>(length);
      model_.arrays[array] = {true, std::vector<int>(length, kNull)};
    } else if (what == 9) {
      roots.weak[weak] = nullptr;
      model_.weak[weak] = kNull;
      if (model_.roots[root] == kNull) return;
      roots.weak[weak] = use.mutator.allocate_weak(roots.cells[root]);
      model_.weak[weak] = model_.roots[root];
    } else if (what == 10) {
      const bool full = which % 2 == 0;
      use.mutator.collect(full);
      // In a transaction what it would undo keeps cells, too.
      if (full && depth == 0) compare(roots, true);
    } else {
      roots.arrays[array] = nullptr;
      model_.arrays[array] = {};
    }
  }

  void on_cells(const Use& use, Roots& roots, unsigned what, bool in_transaction) {
    const unsigned which = take();
    const unsigned to = which % kRoots, from = which / kRoots % kRoots;
    gc::Local<Cell>&target = roots.cells[to], &source = roots.cells[from];
    int& of_target = model_.roots[to];
    const int of_source = model_.roots[from];
    if (what == 0) {
      target = in_transaction ? use.tx.create<Cell>() : use.mutator.allocate<Cell>();
      target->number.init(++made_);
      of_target = static_cast<int>(model_.nodes.size());
      model_.nodes.push_back({made_});
    } else if (what == 1) {
      target = source;
      of_target = of_source;
    } else if (what == 2) {
      target = nullptr;
      of_target = kNull;
    } else if (what == 3 || what == 4) {
      if (of_target == kNull) return;
      const auto member = what == 3 ? &Cell::next : &Cell::other;
      if (in_transaction)
        use.tx.write(target, member, source);
      else
        use.mutator.write(target, member, source.get());
      node(of_target).*(what == 3 ? &Node::next : &Node::other) = of_source;
    } else if (what == 5) {
      if (of_source == kNull) return;
      target = in_transaction ? use.tx.read(source, &Cell::next) : use.mutator.read(source, &Cell::next);
      of_target = node(of_source).next;
    } else if (what == 6) {
      if (of_target == kNull) return;
      if (in_transaction)
        use.tx.write(target, &Cell::number, ++made_);
      else
        use.mutator.write(target, &Cell::number, ++made_);
      node(of_target).number = made_;
    } else {
      into_array(use, roots, which, in_transaction);
    }
  }

  void into_array(const Use& use, Roots& roots, unsigned which, bool in_transaction) {
    const unsigned array = which % kArrays, root = which / kArrays % kRoots;
    if (!model_.arrays[array].exists) return;
    std::vector<int>& cells = model_.arrays[array].cells;
    const std::size_t at = take() % 2 == 0 ? cells.size() - 1 : which % kSmallLength;
    if (in_transaction)
      use.tx.write_at(roots.arrays[array], at, roots.cells[root]);
    else
      use.mutator.write_at(roots.arrays[array], at, roots.cells[root].get());
    cells[at] = model_.roots[root];
  }

  Node& node(int index) { return model_.nodes[static_cast<std::size_t>(index)]; }

  // Walks heap and model side by side. No object moves meanwhile. collected: just now, so what is dead was found
  void compare(const Roots& roots, bool collected = false) {
    objects_.assign(model_.nodes.size(), nullptr);
    found_.clear();
    for (unsigned i = 0; i < kRoots; ++i) meet(model_.roots[i], roots.cells[i].get());
    for (unsigned i = 0; i < kArrays; ++i) {
      const Array& array = model_.arrays[i];
      expect(array.exists == static_cast<bool>(roots.arrays[i]), "an array is there, or is not");
      if (!array.exists || wrong_ != nullptr) continue;
      expect(roots.arrays[i]->length() == array.cells.size(), "an array has another length");
      for (std::size_t at = 0; at < array.cells.size(); ++at)
        meet(array.cells[at], static_cast<Cell*>(roots.arrays[i]->at<gc::Ref<Cell>>(at).slot().load()));
    }
    while (!found_.empty() && wrong_ == nullptr) {
      const int index = found_.back();
      found_.pop_back();
      Cell* const cell = objects_[static_cast<std::size_t>(index)];
      expect(cell->number.slot().load() == node(index).number, "a cell has another number");
      meet(node(index).next, static_cast<Cell*>(cell->next.slot().load()));
      meet(node(index).other, static_cast<Cell*>(cell->other.slot().load()));
    }
    for (unsigned i = 0; i < kWeak; ++i) {
      if (model_.weak[i] == kNull) continue;
      Cell* const cell = objects_[static_cast<std::size_t>(model_.weak[i])];
      if (cell != nullptr)
        expect(roots.weak[i]->target() == cell, "a weak reference has lost its cell");
      else if (collected)
        expect(roots.weak[i]->target() == nullptr, "a weak reference to a dead cell stays");
    }
  }

  // A reference of the heap beside that of the model: the same node is always the same cell.
  void meet(int index, Cell* cell) {
    expect((index == kNull) == (cell == nullptr), "a reference is null, or is not");
    if (index == kNull || wrong_ != nullptr) return;
    Cell*& known = objects_[static_cast<std::size_t>(index)];
    expect(known == nullptr || known == cell, "a cell is there twice");
    if (known == nullptr) found_.push_back(index);
    known = cell;
  }

  std::span<const std::uint8_t> input_;
  Model model_;
  std::vector<Cell*> objects_;
  std::vector<int> found_;
  std::uint64_t made_ = 0;
  unsigned large_ = 0;
  const char* wrong_ = nullptr;
};

}  // namespace loam::tests
