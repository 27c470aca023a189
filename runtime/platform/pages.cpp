#include "runtime/platform/pages.hpp"

#include "runtime/base/check.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace loam::platform {
namespace {

// Behind each mapping: keeps it an entry of its own in the kernel's account, and stops a run over its end.
inline std::size_t guard_bytes() noexcept { return page_bytes(); }

std::atomic<std::int64_t> requests_until_failure{-1};

inline std::size_t round_to_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) & ~(page_bytes() - 1);
}

[[maybe_unused]] bool are_pages(const void* start, std::size_t bytes) noexcept {
  return ((reinterpret_cast<std::uintptr_t>(start) | bytes) & (page_bytes() - 1)) == 0;
}

bool refused_by_test() noexcept {
  // relaxed: a test sets it before the threads it starts; nothing else is ordered by it.
  if (requests_until_failure.load(std::memory_order_relaxed) < 0) [[likely]]
    return false;
  return requests_until_failure.fetch_sub(1, std::memory_order_relaxed) == 0;
}

void* map(void* start, std::size_t bytes, int more_flags, MapOptions options) noexcept {
  if (refused_by_test()) return nullptr;
  const std::size_t rounded = round_to_pages(bytes);
  void* const found = mmap(start, rounded + guard_bytes(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | (options.is_promised ? 0 : MAP_NORESERVE) | more_flags, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  if (start != nullptr && found != start) {  // a kernel that does not know the flag took the address for a hint
    munmap(found, rounded + guard_bytes());
    errno = EEXIST;
    return nullptr;
  }
  // The kernel joins neighbouring mappings of one kind; resident_bytes() could not tell them apart then.
  mprotect(static_cast<char*>(found) + rounded, guard_bytes(), PROT_NONE);
  // Advice only: a kernel without these options is slower or dumps more, and still right.
  if (!options.huge_pages) madvise(found, rounded, MADV_NOHUGEPAGE);
  if (!options.core_dump) madvise(found, rounded, MADV_DONTDUMP);
  return found;
}

}  // namespace

void* map_lazy(std::size_t bytes, MapOptions options) noexcept { return map(nullptr, bytes, 0, options); }

MapResult map_lazy_at(void* start, std::size_t bytes, MapOptions options) noexcept {
  errno = ENOMEM;
  if (map(start, bytes, MAP_FIXED_NOREPLACE, options) != nullptr) return MapResult::done;
  return errno == EEXIST ? MapResult::taken : MapResult::refused;
}

void* map_lazy_or_die(std::size_t bytes, const char* what, MapOptions options) noexcept {
  void* const start = map_lazy(bytes, options);
  LOAM_CHECK(start != nullptr, "{}: the system refused {} bytes of address space (errno {}); raise `ulimit -v`", what,
             bytes, errno);
  return start;
}

void unmap(void* start, std::size_t bytes) noexcept { munmap(start, round_to_pages(bytes) + guard_bytes()); }

bool move_pages(void* from, std::size_t bytes, void* to) noexcept {
  LOAM_ASSERT(are_pages(from, bytes) && are_pages(to, 0), "moves {} bytes, which are no whole pages", bytes);
  // The old addresses are kept, since another thread might map something there before they are unmapped together with
  // what lies beside them.
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == to;
}

void renew(void* start, std::size_t bytes, MapOptions options) noexcept {
  LOAM_ASSERT(are_pages(start, bytes), "renews {} bytes, which are no whole pages", bytes);
  void* const found =
      mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  LOAM_CHECK(found == start, "the system refused {} bytes of memory in place of old ones (errno {})", bytes, errno);
  if (!options.huge_pages) madvise(start, bytes, MADV_NOHUGEPAGE);
}

bool protect(void* start, std::size_t bytes, bool accessible) noexcept {
  LOAM_ASSERT(are_pages(start, bytes), "protects {} bytes, which are no whole pages", bytes);
  return mprotect(start, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

void purge(void* start, std::size_t bytes) noexcept {
  const auto first = round_to_pages(reinterpret_cast<std::uintptr_t>(start));
  const auto end = (reinterpret_cast<std::uintptr_t>(start) + bytes) & ~(page_bytes() - 1);
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

void zero(void* start, std::size_t bytes) noexcept {
  // An emulator of user programs may answer for each page of its host: more answers than there are pages here.
  constexpr std::size_t kAnswers = 512;
  constexpr std::size_t kRun = 4;  // to purge so many pages takes as long as to back them
  const std::size_t page = page_bytes();
  auto* at = static_cast<char*>(start);
  char* const end = at + bytes;
  const std::size_t head =
      std::min(bytes, round_to_pages(reinterpret_cast<std::uintptr_t>(at)) - reinterpret_cast<std::uintptr_t>(at));
  std::memset(at, 0, head);
  at += head;
  while (static_cast<std::size_t>(end - at) >= page) {
    const std::size_t pages = std::min<std::size_t>((end - at) / page, kAnswers * kPageBytes / page);
    unsigned char resident[kAnswers];
    if (mincore(at, pages * page, resident) != 0) break;
    for (std::size_t first = 0, next = 0; first < pages; first = next) {
      const bool backed = (resident[first] & 1) != 0;
      while (next < pages && ((resident[next] & 1) != 0) == backed) ++next;
      // What is swapped out counts as not resident; purging drops that as well.
      if (backed || next - first < kRun)
        std::memset(at + first * page, 0, (next - first) * page);
      else
        purge(at + first * page, (next - first) * page);
    }
    at += pages * page;
  }
  std::memset(at, 0, static_cast<std::size_t>(end - at));
}

void advise_huge_pages(void* start, std::size_t bytes, bool wanted) noexcept {
  constexpr std::uintptr_t kHugeBytes = std::uintptr_t{2} << 20;
  const auto first = (reinterpret_cast<std::uintptr_t>(start) + kHugeBytes - 1) & ~(kHugeBytes - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(start) + bytes) & ~(kHugeBytes - 1);
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

std::size_t address_space_limit() noexcept {
  rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : ~std::size_t{0};
}

std::size_t resident_bytes(const void* start, std::size_t bytes) noexcept {
  // /proc/self/smaps lists "start-end ..." headers followed by "Rss: N kB". Read by hand: standard I/O would call the
  // allocator under test.
  const int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const auto low = reinterpret_cast<std::uintptr_t>(start), high = low + bytes;
  std::size_t total = 0;
  bool inside = false;
  char buffer[8192];
  std::size_t held = 0;
  for (;;) {
    const ssize_t got = read(file, buffer + held, sizeof buffer - held);
    if (got <= 0) break;
    held += static_cast<std::size_t>(got);
    char* line = buffer;
    char* const end = buffer + held;
    for (char* stop; (stop = std::find(line, end, '\n')) != end; line = stop + 1) {
      std::uintptr_t from = 0, to = 0;
      const auto dash = std::from_chars(line, stop, from, 16);
      if (dash.ptr != line && dash.ptr != stop && *dash.ptr == '-') {
        const auto space = std::from_chars(dash.ptr + 1, stop, to, 16);
        if (space.ptr != stop && *space.ptr == ' ') inside = from < high && to > low;
      } else if (inside && stop - line > 4 && line[0] == 'R' && line[1] == 's' && line[2] == 's' && line[3] == ':') {
        const char* digit = std::find_if(line + 4, stop, [](char c) { return c != ' '; });
        std::size_t kib = 0;
        std::from_chars(digit, stop, kib);
        total += kib * 1024;
      }
    }
    held = static_cast<std::size_t>(end - line);
    if (held == sizeof buffer) held = 0;  // a line longer than the buffer is no line of ours
    std::copy(line, line + held, buffer);
  }
  close(file);
  return total;
}

void fail_map_after(std::int64_t requests) noexcept {
  requests_until_failure.store(requests, std::memory_order_relaxed);
}

}  // namespace loam::platform
