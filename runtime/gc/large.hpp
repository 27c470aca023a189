// LargeObjects: objects with pages of their own. They count as old, never move, and are swept by a full collection.
//   A lock guards the list; the collector needs none, because the world is stopped.
#pragma once

#include "runtime/gc/object.hpp"
#include "runtime/gc/os_vector.hpp"

#include <cstddef>

namespace loam::gc {

class LargeObjects {
 public:
  struct Entry {
    Object* object;
    std::size_t mapped_bytes;
  };

  // Zeroed, with its header. returns null where the system refuses
  Object* add(std::size_t bytes, const Descriptor& descriptor) noexcept;
  static std::size_t mapped_bytes_of(std::size_t bytes) noexcept;

  // For a full collection: marks an object by its own bit; gives a marked one that was not scanned yet; frees the rest.
  void mark(Object* object) noexcept;
  bool scan_one(Object*& object) noexcept;
  void sweep() noexcept;

  std::size_t mapped_bytes() const noexcept { return mapped_; }
  OsVector<Entry>& entries() noexcept { return entries_; }
  ~LargeObjects();

 private:
  OsVector<Entry> entries_;
  OsVector<Object*> gray_;
  std::size_t mapped_ = 0;
};

}  // namespace loam::gc
