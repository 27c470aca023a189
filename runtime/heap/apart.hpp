// Apart: a heap in which blocks of some callers have cache lines of their own, for LOAM_MALLOC_APART=FILE.
//   Example   Two threads count in two 8-byte blocks of one line, so each count waits for the line. Apart, each block has a
//             pair of lines, because processors fetch lines in pairs (platform/cache_line.hpp).
//   How       A block apart is of a natural size class (size_classes.hpp), of 128 bytes at least. Plain requests never get
//             one of these, so the class also says which blocks are apart. All other blocks come from the heap behind.
//   Callers   The functions here do not know who called malloc. So an allocation is put off: it returns nullptr, and the
//             entry point, which knows its caller and has come to its path for failures, calls serve(). A process without
//             such sites runs no instruction more.
//   Cost      each call searches the site in a table; a block of n bytes takes the next power of two from 128 on.
//   When not  blocks of more than kApartMax bytes are plain, as their classes fill whole lines anyway: when one is made
//             shorter, the call that does it decides. Blocks that aligned_alloc made of a natural class stay in such a class
//             when they are resized.
//   A1 a request that was put off is served by the same call of an entry point, before any other of its thread.
#pragma once

#include "runtime/heap/fault.hpp"
#include "runtime/heap/page_map.hpp"
#include "runtime/platform/cache_line.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace loam::heap {

// Inner: a Heap that nothing else allocates from.
template <class Inner>
class Apart {
  using Classes = typename Inner::Classes;

 public:
  static constexpr std::size_t kApartMax = std::size_t{16} << 10;
  static_assert(Classes::class_aligned(platform::kApartBytes, kApartMax) == Classes::kClasses - 1);

  // ---- what Heap calls

  static void* allocate(std::size_t bytes) noexcept { return put_off({Kind::plain, nullptr, 1, bytes}); }
  static void* allocate_zeroed(std::size_t bytes) noexcept { return put_off({Kind::plain, nullptr, 1, bytes}); }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return put_off({Kind::aligned, nullptr, alignment, bytes});
  }
  static void* reallocate(void* block, std::size_t bytes) noexcept { return put_off({Kind::resized, block, 1, bytes}); }

  static void deallocate(void* block, PageMap::Word) noexcept { Inner::deallocate(block); }
  static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    if (!is_apart(word)) return Inner::deallocate_sized(block, bytes);
    if (!is_class_apart(word, bytes)) Inner::fault(Fault::wrong_size, block);
    Inner::deallocate(block);
  }
  static std::size_t usable_bytes(const void* block) noexcept { return Inner::usable_bytes(block); }

  static void thread_exit(bool last) noexcept { Inner::thread_exit(last); }
  static auto* own() noexcept { return Inner::own(); }
  static bool trim() noexcept { return Inner::trim(); }
  static void check_what_waits() noexcept {}
  static void mend_in_child() noexcept { put_off_ = {}; }
  static const char* verify() noexcept { return nullptr; }

  // ---- what an entry point calls that got nullptr

  // The block that the thread's last call asked for. is_listed(): whether the entry point's caller is a site whose blocks
  // are apart. nullptr: no memory, or nothing was put off
  template <class IsListed>
  static void* serve(IsListed is_listed) noexcept {
    const Request asked = std::exchange(put_off_, {});
    switch (asked.kind) {
      case Kind::none:
        return nullptr;
      case Kind::plain:
        return is_listed() ? take(asked.bytes) : Inner::allocate(asked.bytes);
      case Kind::aligned:
        return Inner::allocate_aligned(is_listed() ? std::max(asked.alignment, platform::kApartBytes) : asked.alignment,
                                       asked.bytes);
      case Kind::resized:
        return resize(asked.block, asked.bytes, is_listed);
    }
    return nullptr;
  }
  // The same, zeroed.
  template <class IsListed>
  static void* serve_zeroed(IsListed is_listed) noexcept {
    const Request asked = std::exchange(put_off_, {});
    if (asked.kind == Kind::none) return nullptr;
    if (!is_listed() || asked.bytes > kApartMax) return Inner::allocate_zeroed(asked.bytes);
    void* const block = take(asked.bytes);
    if (block != nullptr) std::memset(block, 0, asked.bytes);
    return block;
  }

  // Whether a block in a unit with this word is apart.
  static bool is_apart(PageMap::Word word) noexcept {
    return Inner::is_slab(word) && Classes::is_natural(Inner::ThreadHeap::class_of(word));
  }

 private:
  enum class Kind : std::uint8_t { none, plain, aligned, resized };
  struct Request {
    Kind kind = Kind::none;
    void* block = nullptr;
    std::size_t alignment = 1, bytes = 0;
  };

  static void* put_off(const Request& request) noexcept {
    put_off_ = request;  // A1
    return nullptr;
  }

  static void* take(std::size_t bytes) noexcept {
    return bytes <= kApartMax ? Inner::allocate_aligned(platform::kApartBytes, bytes) : Inner::allocate(bytes);
  }

  // Whether blocks of so many bytes that are apart lie in units with this word.
  static bool is_class_apart(PageMap::Word word, std::size_t bytes) noexcept {
    return bytes <= kApartMax &&
           Inner::ThreadHeap::class_of(word) == Classes::class_aligned(platform::kApartBytes, bytes);
  }

  // As Heap::reallocate. A block that is apart stays so, whoever makes it longer.
  template <class IsListed>
  static void* resize(void* block, std::size_t bytes, IsListed is_listed) noexcept {
    const PageMap::Word word = Inner::word_of(block);
    const bool was_apart = is_apart(word);
    if (!was_apart && (bytes > kApartMax || !is_listed())) return Inner::reallocate(block, bytes);
    if (was_apart && is_class_apart(word, bytes)) return block;
    const std::size_t had = Inner::usable_bytes(block);
    void* const moved = take(bytes);
    if (moved == nullptr) return bytes <= had ? block : nullptr;
    std::memcpy(moved, block, std::min(had, bytes));
    Inner::deallocate(block);
    return moved;
  }

  static inline constinit thread_local Request put_off_{};
};

// One of two heaps behind the guards: Second if Switch::second() says so, which never changes in a process.
template <class First, class Second, class Switch>
struct Either {
  static void* allocate(std::size_t bytes) noexcept {
    return Switch::second() ? Second::allocate(bytes) : First::allocate(bytes);
  }
  static void* allocate_zeroed(std::size_t bytes) noexcept {
    return Switch::second() ? Second::allocate_zeroed(bytes) : First::allocate_zeroed(bytes);
  }
  static void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return Switch::second() ? Second::allocate_aligned(alignment, bytes) : First::allocate_aligned(alignment, bytes);
  }
  static void* reallocate(void* block, std::size_t bytes) noexcept {
    return Switch::second() ? Second::reallocate(block, bytes) : First::reallocate(block, bytes);
  }
  static void deallocate(void* block, PageMap::Word word) noexcept {
    Switch::second() ? Second::deallocate(block, word) : First::deallocate(block, word);
  }
  static void deallocate_sized(void* block, std::size_t bytes) noexcept {
    Switch::second() ? Second::deallocate_sized(block, bytes) : First::deallocate_sized(block, bytes);
  }
  static std::size_t usable_bytes(const void* block) noexcept {
    return Switch::second() ? Second::usable_bytes(block) : First::usable_bytes(block);
  }
  static void thread_exit(bool last) noexcept {
    Switch::second() ? Second::thread_exit(last) : First::thread_exit(last);
  }
  static auto* own() noexcept { return Switch::second() ? Second::own() : First::own(); }
  static bool trim() noexcept { return Switch::second() ? Second::trim() : First::trim(); }
  static void check_what_waits() noexcept { Switch::second() ? Second::check_what_waits() : First::check_what_waits(); }
  static void mend_in_child() noexcept { Switch::second() ? Second::mend_in_child() : First::mend_in_child(); }
  static const char* verify() noexcept { return Switch::second() ? Second::verify() : First::verify(); }
};

}  // namespace loam::heap
