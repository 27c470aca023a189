// Memory straight from the operating system: for records, logs and descriptors, which must not come from the allocator
// that is under study (its placement would change) nor from a user's heap.
//   map = reserve addresses; back = get memory, here at first touch; purge = give the memory back, keep the addresses.
#pragma once

#include "runtime/platform/machine.hpp"

#include <cstddef>
#include <cstdint>

namespace loam::platform {

// The smallest page of any kernel. Those of this one are page_bytes() long, a multiple: what it protects, moves or takes
// back is measured in these.
inline constexpr std::size_t kPageBytes = 4096;

// Addresses at which map_lazy_at() finds much room in any process: between where the kernel puts programs linked at
// fixed addresses and where it puts the others, libraries and stacks; within what valgrind, or the sanitizer of this
// build, leaves to a program.
inline constexpr std::uintptr_t kRoomyFrom =
#ifdef LOAM_ASAN
    std::uintptr_t{20} << 40;
inline constexpr std::uintptr_t kRoomyTo = std::uintptr_t{24} << 40;
#elif defined(LOAM_TSAN)
    std::uintptr_t{64} << 30;
inline constexpr std::uintptr_t kRoomyTo = std::uintptr_t{256} << 30;
#else
    std::uintptr_t{64} << 30;
inline constexpr std::uintptr_t kRoomyTo = std::uintptr_t{8} << 40;
#endif

struct MapOptions {
  bool huge_pages = true;  // false: never huge pages, so that a sparse range is backed 4 KiB at a time
  bool core_dump = true;   // false: left out of core dumps
  // true: memory that a program has asked for, not a reservation of ours. The kernel decides by its own rule whether it
  // may be promised: by default it refuses more than the machine's memory and swap (vm.overcommit_memory).
  bool is_promised = false;
};

// Reserves `bytes` (rounded up to pages), zeroed and readable and writable, backed at first touch.
// returns nullptr where the kernel refuses (RLIMIT_AS, overcommit, thread sanitizer, valgrind): the caller asks for less
void* map_lazy(std::size_t bytes, MapOptions options = {}) noexcept;

// As map_lazy, at exactly `start`, a multiple of a page.
// taken: something else lies there.   refused: no memory, or a limit of the process.
enum class MapResult { done, taken, refused };
MapResult map_lazy_at(void* start, std::size_t bytes, MapOptions options = {}) noexcept;

// As map_lazy, for what the runtime cannot do without: ends the program with a message naming `what`.
void* map_lazy_or_die(std::size_t bytes, const char* what, MapOptions options = {}) noexcept;

void unmap(void* start, std::size_t bytes) noexcept;

// Advises the kernel for or against huge pages within the whole huge pages, 2 MiB, of a mapped range.
void advise_huge_pages(void* start, std::size_t bytes, bool wanted) noexcept;

// Moves the memory behind whole pages to `to`, mapped as they are, without copying it; the old addresses stay mapped
// and read as zero. returns false where the kernel cannot (before Linux 5.7, valgrind): nothing has moved then, and
// `to` may be unmapped
bool move_pages(void* from, std::size_t bytes, void* to) noexcept;

// Replaces mapped whole pages by new ones: nothing is behind them, they read as zero, and the kernel joins them with
// their neighbours again, from which move_pages() had set them apart. `huge_pages` as in map_lazy.
void renew(void* start, std::size_t bytes, MapOptions options) noexcept;

// Makes whole pages inaccessible, or accessible again.
// returns false where the kernel refuses (the process has too many mappings): they stay as they were
bool protect(void* start, std::size_t bytes, bool accessible) noexcept;

// Gives back the memory of whole pages inside [start, start + bytes); they read as zero afterwards.
void purge(void* start, std::size_t bytes) noexcept;

// Makes [start, start + bytes) zero. Longer runs of pages that are not backed stay so: to write there would back them.
void zero(void* start, std::size_t bytes) noexcept;

// Bytes of addresses that the process may map in all (RLIMIT_AS); ~0: no limit.
std::size_t address_space_limit() noexcept;

// Bytes of [start, start + bytes) that are resident. Walks the kernel's own account of the process; slow, not for hot
// code. returns 0 where it cannot be read
std::size_t resident_bytes(const void* start, std::size_t bytes) noexcept;

// Test hook: the n-th following map_lazy or map_lazy_at (0 = the next) is refused, once. Negative: never.
void fail_map_after(std::int64_t requests) noexcept;

}  // namespace loam::platform
