// OsVector: an array that grows, in pages of the operating system: the collector's own lists never come from the
// process's allocator. Doubles by mapping anew and copying.
#pragma once

#include "runtime/platform/pages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace loam::gc {

template <class T>
class OsVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  OsVector() noexcept = default;
  OsVector(const OsVector&) = delete;
  OsVector& operator=(const OsVector&) = delete;
  ~OsVector() {
    if (items_ != nullptr) platform::unmap(items_, capacity_ * sizeof(T));
  }

  void push(const T& item) noexcept {
    if (count_ == capacity_) [[unlikely]]
      grow();
    items_[count_++] = item;
  }
  T pop() noexcept { return items_[--count_]; }
  void resize_down(std::size_t count) noexcept { count_ = count; }
  void drop_front(std::size_t count) noexcept {
    if (count == 0) return;
    count_ -= count;
    std::memmove(static_cast<void*>(items_), items_ + count, count_ * sizeof(T));
  }
  void clear() noexcept { count_ = 0; }
  void remove_unordered(std::size_t index) noexcept { items_[index] = items_[--count_]; }

  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  T& operator[](std::size_t index) noexcept { return items_[index]; }
  const T& operator[](std::size_t index) const noexcept { return items_[index]; }
  T& back() noexcept { return items_[count_ - 1]; }
  T* begin() noexcept { return items_; }
  T* end() noexcept { return items_ + count_; }

 private:
  void grow() noexcept {
    const std::size_t capacity = std::max(2 * capacity_, platform::kPageBytes / sizeof(T));
    auto* const items = static_cast<T*>(platform::map_lazy_or_die(capacity * sizeof(T), "a list of the collector"));
    if (items_ != nullptr) {
      std::memcpy(static_cast<void*>(items), items_, count_ * sizeof(T));
      platform::unmap(items_, capacity_ * sizeof(T));
    }
    items_ = items;
    capacity_ = capacity;
  }

  T* items_ = nullptr;
  std::size_t count_ = 0, capacity_ = 0;
};

}  // namespace loam::gc
