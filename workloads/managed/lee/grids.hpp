// Grids of two layers: as arrays of arrays of arrays, or as one array in row-major order; in the managed heap, where
// accesses are transactional, or plain, for what a thread has to itself.
#pragma once

#include "runtime/gc/gc.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loam::workloads::managed::lee {

using Number = std::uint32_t;

class RowMajorGrid {
 public:
  using Root = gc::ValueArray<Number>;
  RowMajorGrid(gc::Mutator& mutator, int size, Root* root = nullptr) : size_(size), cells_(mutator, root) {}

  template <class Access>
  void make(Access& tx) {
    cells_ = tx.template create_array<Root>(static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_) * 2);
  }
  template <class Access>
  Number get(Access& tx, int x, int y, int z) {
    return tx.read_at(cells_, at(x, y, z));
  }
  template <class Access>
  void set(Access& tx, int x, int y, int z, Number number) {
    tx.write_at(cells_, at(x, y, z), number);
  }
  Root* root() const noexcept { return cells_.get(); }

 private:
  std::size_t at(int x, int y, int z) const noexcept { return static_cast<std::size_t>((x * size_ + y) * 2 + z); }
  const int size_;
  gc::Local<Root> cells_;
};

class NestedGrid {
 public:
  using Layers = gc::ValueArray<Number>;
  using Column = gc::RefArray<Layers>;
  using Root = gc::RefArray<Column>;
  NestedGrid(gc::Mutator& mutator, int size, Root* root = nullptr)
      : size_(static_cast<std::size_t>(size)), columns_(mutator, root), column_(mutator), layers_(mutator) {}

  template <class Access>
  void make(Access& tx) {
    columns_ = tx.template create_array<Root>(size_);
    for (std::size_t x = 0; x < size_; ++x) {
      column_ = tx.template create_array<Column>(size_);
      tx.write_at(columns_, x, column_);
      for (std::size_t y = 0; y < size_; ++y) {
        layers_ = tx.template create_array<Layers>(2);
        tx.write_at(column_, y, layers_);
      }
    }
  }
  template <class Access>
  Number get(Access& tx, int x, int y, int z) {
    lead(tx, x, y);
    return tx.read_at(layers_, static_cast<std::size_t>(z));
  }
  template <class Access>
  void set(Access& tx, int x, int y, int z, Number number) {
    lead(tx, x, y);
    tx.write_at(layers_, static_cast<std::size_t>(z), number);
  }
  Root* root() const noexcept { return columns_.get(); }

 private:
  template <class Access>
  void lead(Access& tx, int x, int y) {
    column_ = tx.read_at(columns_, static_cast<std::size_t>(x));
    layers_ = tx.read_at(column_, static_cast<std::size_t>(y));
  }
  const std::size_t size_;
  gc::Local<Root> columns_;
  gc::Local<Column> column_;
  gc::Local<Layers> layers_;
};

// Outside of the heap and of transactions.
class PlainGrid {
 public:
  explicit PlainGrid(int size) : size_(size), cells_(static_cast<std::size_t>(size * size) * 2) {}
  template <class Access>
  void make(Access&) {}
  template <class Access>
  Number get(Access&, int x, int y, int z) const {
    return cells_[at(x, y, z)];
  }
  template <class Access>
  void set(Access&, int x, int y, int z, Number number) {
    cells_[at(x, y, z)] = number;
  }

 private:
  std::size_t at(int x, int y, int z) const noexcept { return static_cast<std::size_t>((x * size_ + y) * 2 + z); }
  const int size_;
  std::vector<Number> cells_;
};

}  // namespace loam::workloads::managed::lee
