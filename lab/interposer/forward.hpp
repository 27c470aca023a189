// The functions by which a program gets and frees memory, each handed on to the allocator behind this library.
//   A mode (profile.cpp, record.cpp, sharing.cpp, stacks.cpp) includes this file once and defines the hooks: allocated() after a block was
//   made, freeing() before one goes, and gone_quickly(), its short form for most blocks.  Calls that the allocator makes
//   from inside its own functions are handed on unseen.
//   Cost     beside the hooks some ten instructions a call: tests/golden/interposer_paths.toml has them counted.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace loam::interposer {

// Whether a block of so many bytes is of no interest.  May be asked before it is made: malloc then has nothing to do after.
inline bool passes(std::size_t bytes) noexcept;
// resized: the block that went just before lives on in this one.  Returns the block, so that what is seldom done can be
// the last thing that malloc does, which then has nothing to keep meanwhile.
inline void* allocated(void* block, std::size_t bytes, bool resized) noexcept;
// block: may be nullptr, or one of `early`
void freeing(void* block) noexcept;
// Whether nothing more is to be done before the block goes to the allocator; else freeing() comes.
inline bool gone_quickly(void* block) noexcept;
// An operator of C++ was called, which may ask another function of this library for the block; caller: where it returns to
inline void entered(void* caller) noexcept;

// Bytes that the allocator gave for a block.
std::size_t usable_bytes(void* block) noexcept;

struct Next {
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  std::size_t (*usable)(void*);
};

// What the calls of a thread look at, in one place, so that one address is looked up for all of it.
struct Here {
  int depth;            // above 0: inside the allocator, or inside a hook that calls others
  void* self;           // of the mode: what it keeps of the thread
  std::uint64_t until;  // of a mode that samples: counts bytes up to 2^64, where the next sample is due
  std::uint64_t random;
};
inline constinit thread_local Here here{0, nullptr, ~std::uint64_t{0}, 0};  // the first block is looked at

// Counts bytes towards the next sample; whether it is due.  Upwards: the carry comes with the addition, without a comparison.
[[gnu::always_inline]] inline bool due(std::uint64_t bytes) noexcept {
  return __builtin_add_overflow(here.until, bytes, &here.until);
}

// Keeps calls unseen.
struct Inside {
  Inside() noexcept { ++here.depth; }
  ~Inside() { --here.depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Calls a function of the allocator, whose own calls are not seen.
template <typename Call>
auto inside(Call call) noexcept {
  const Inside unseen;
  return call();
}

inline bool ready, starting;

// What dlsym itself asks for while the functions are looked up; never given back.
alignas(16) inline char early[16 * 1024];
inline std::size_t early_used;

inline bool is_early(const void* block) noexcept {
  return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(early) < sizeof early;
}

inline void* take_early(std::size_t bytes) noexcept {
  bytes = (bytes + 15) / 16 * 16;
  if (bytes > sizeof early - early_used) return nullptr;
  void* block = early + early_used;
  early_used += bytes;
  return block;
}

// Until the functions behind are known, each name leads to one that looks them all up: no call has to ask whether they are.
// The first call comes before any other thread is there; dlsym's own calls get early memory.
namespace first {
inline bool started() noexcept;
inline void* malloc(std::size_t bytes) noexcept;
inline void free(void* block) noexcept;
inline void* calloc(std::size_t count, std::size_t bytes) noexcept;
inline void* realloc(void* block, std::size_t bytes) noexcept;
inline int posix_memalign(void** into, std::size_t alignment, std::size_t bytes) noexcept;
inline void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept;
inline void* memalign(std::size_t alignment, std::size_t bytes) noexcept;
inline std::size_t usable(void*) noexcept { return 0; }
}  // namespace first

inline constinit Next next{first::malloc,         first::free,          first::calloc,   first::realloc,
                           first::posix_memalign, first::aligned_alloc, first::memalign, first::usable};

// The name of the loaded file that holds an address, the same pointer for all of a file; nullptr for none.  dladdr would look
// for a symbol as well, through all that the file has.
inline const char* file_of(const void* address) noexcept {
  struct Wanted {
    std::uintptr_t address;
    const char* name;
  } wanted{reinterpret_cast<std::uintptr_t>(address), nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* given) {
        auto& sought = *static_cast<Wanted*>(given);
        for (int at = 0; at < file->dlpi_phnum; ++at) {
          const auto& part = file->dlpi_phdr[at];
          if (part.p_type == PT_LOAD && sought.address - file->dlpi_addr - part.p_vaddr < part.p_memsz) {
            sought.name = file->dlpi_name;
            return 1;
          }
        }
        return 0;
      },
      &wanted);
  return wanted.name;
}

void begin() noexcept;  // of the mode, once all functions are known

template <typename Function>
void look_up(Function& function, const char* name) noexcept {
  if (void* symbol = dlsym(RTLD_NEXT, name); symbol != nullptr) function = reinterpret_cast<Function>(symbol);
}

namespace first {

// Whether the functions behind are known; false within the look-up itself.
inline bool started() noexcept {
  if (ready) return true;
  if (starting) return false;
  starting = true;
  const Inside unseen;
  Next behind = next;
  look_up(behind.malloc, "malloc");
  look_up(behind.free, "free");
  look_up(behind.calloc, "calloc");
  look_up(behind.realloc, "realloc");
  look_up(behind.posix_memalign, "posix_memalign");
  look_up(behind.aligned_alloc, "aligned_alloc");
  look_up(behind.memalign, "memalign");
  look_up(behind.usable, "malloc_usable_size");
  next = behind;
  ready = true;
  begin();
  return true;
}

inline void* malloc(std::size_t bytes) noexcept { return started() ? next.malloc(bytes) : take_early(bytes); }

inline void free(void* block) noexcept {
  if (started()) next.free(block);
}

inline void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return started() ? next.calloc(count, bytes) : take_early(count * bytes);
}

inline void* realloc(void* block, std::size_t bytes) noexcept {
  return started() ? next.realloc(block, bytes) : take_early(bytes);
}

inline int posix_memalign(void** into, std::size_t alignment, std::size_t bytes) noexcept {
  return started() ? next.posix_memalign(into, alignment, bytes) : ENOMEM;
}

inline void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return started() ? next.aligned_alloc(alignment, bytes) : nullptr;
}

inline void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return started() ? next.memalign(alignment, bytes) : nullptr;
}

}  // namespace first

inline std::size_t usable_bytes(void* block) noexcept { return next.usable(block); }

// A block of interest that was just made, unless the allocator asked for it itself.
[[gnu::always_inline]] inline void* looked_at(void* block, std::size_t bytes, bool resized = false) noexcept {
  if (block == nullptr || here.depth != 0) [[unlikely]] {
    here.until = ~std::uint64_t{0};  // the next block is due instead
    return block;
  }
  return allocated(block, bytes, resized);
}

[[gnu::always_inline]] inline void* seen(void* block, std::size_t bytes, bool resized = false) noexcept {
  return passes(bytes) ? block : looked_at(block, bytes, resized);
}

// Apart, so that the short way needs no register of its own.
[[gnu::noinline]] inline void* make_and_look(std::size_t bytes) noexcept {
  return looked_at(next.malloc(bytes), bytes);
}

[[gnu::noinline]] inline void* clear_and_look(std::size_t count, std::size_t bytes) noexcept {
  return looked_at(inside([=] { return next.calloc(count, bytes); }), count * bytes);
}

// A block that moves is one that goes and one that comes; one that stays has another size.  gone: gone_quickly() was true,
// and the new size does not pass
[[gnu::noinline]] inline void* resize_slowly(void* block, std::size_t bytes, bool gone) noexcept {
  if (is_early(block)) {
    void* moved = make_and_look(bytes);
    const std::size_t old = static_cast<std::size_t>(early + sizeof early - static_cast<char*>(block));
    if (moved != nullptr) std::memcpy(moved, block, bytes < old ? bytes : old);
    return moved;
  }
  if (!gone) freeing(block);
  void* moved = inside([=] { return next.realloc(block, bytes); });
  if (moved == nullptr && bytes != 0 && block != nullptr)  // refused: it is as it was
    looked_at(block, usable_bytes(block), true);
  return gone ? looked_at(moved, bytes, block != nullptr) : seen(moved, bytes, block != nullptr);
}

[[gnu::noinline]] inline void release_slowly(void* block) noexcept {
  freeing(block);
  if (!is_early(block)) next.free(block);
}

[[gnu::always_inline]] inline void release(void* block) noexcept {
  if (gone_quickly(block)) [[likely]]
    return next.free(block);
  release_slowly(block);
}

}  // namespace loam::interposer

#define LOAM_EXPORT extern "C" __attribute__((visibility("default")))

namespace li = loam::interposer;

LOAM_EXPORT void* malloc(std::size_t bytes) {
  if (li::passes(bytes)) return li::next.malloc(bytes);
  return li::make_and_look(bytes);
}

LOAM_EXPORT void free(void* block) { li::release(block); }

LOAM_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  if (li::passes(count * bytes)) return li::next.calloc(count, bytes);
  return li::clear_and_look(count, bytes);
}

LOAM_EXPORT void* realloc(void* block, std::size_t bytes) {
  const bool gone = li::gone_quickly(block);
  if (gone && li::passes(bytes)) return li::next.realloc(block, bytes);
  return li::resize_slowly(block, bytes, gone);
}

LOAM_EXPORT int posix_memalign(void** into, std::size_t alignment, std::size_t bytes) {
  const int status = li::inside([=] { return li::next.posix_memalign(into, alignment, bytes); });
  if (status == 0) li::seen(*into, bytes);
  return status;
}

LOAM_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return li::seen(li::inside([=] { return li::next.aligned_alloc(alignment, bytes); }), bytes);
}

LOAM_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  return li::seen(li::inside([=] { return li::next.memalign(alignment, bytes); }), bytes);
}
