// profile: what a program asks of its allocator, counted in front of it.
//   Counts   blocks and bytes by size class and thread, lifetimes, blocks freed by another thread, and over time what is
//            live, what the allocator gave for it, the pages that hold it and the pages that are resident.
//   Source   LOAM_PROFILE names the file; each process appends its number to it.
//   Two libraries   with LOAM_SAMPLED one byte in LOAM_PROFILE_SAMPLE is looked at, and figures are estimates; without it
//            every block is.  Apart, so that neither asks at each call which of the two it is.
//   Cost     docs/internals/profile.md
//   When not a process that ends by _exit or a signal: it says nothing.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "counts.hpp"
#include "folder.hpp"
#include "forward.hpp"
#include "marks.hpp"
#include "operators.hpp"
#include "saying.hpp"
#include "shadow.hpp"

namespace loam::interposer {
namespace {

inline constexpr std::size_t kSnapshots = 1024;
inline constexpr std::uint32_t kTick = 1024;  // calls between looks at the clock; samples are few, each looks
inline constexpr std::uint64_t kPeriodNs = 5'000'000, kCostShare = 50;

struct Snapshot {
  std::uint64_t t_ns, requested, usable, occupied, resident;
};

Shadow shadow;
Marks marks;  // of the samples
std::atomic<Thread*> newest{nullptr};
std::atomic<std::uint64_t> threads{0};
std::int64_t mean = kMean;
char path[4096];
constinit Folder folder;
std::uint64_t began_ns, resident_at_start;
std::atomic<std::uint64_t> next_look_ns{0};
std::atomic<bool> looking{false};
Snapshot snapshots[kSnapshots];
std::size_t taken;
std::uint64_t period_ns = kPeriodNs, walked_usable, occupied_bytes;
Snapshot peak;

std::uint64_t now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t resident_bytes() noexcept {
  char text[128];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* second = std::strchr(text, ' ');
  return second == nullptr ? 0 : std::strtoull(second, nullptr, 10) * 4096;
}

// What here.until is set to.
std::uint64_t interval() noexcept {
  here.random ^= here.random << 13, here.random ^= here.random >> 7, here.random ^= here.random << 17;
  return -(1 + here.random % static_cast<std::uint64_t>(2 * mean));
}

[[gnu::noinline]] Thread* first_call() noexcept {
  void* made = mmap(nullptr, sizeof(Thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  auto* thread = static_cast<Thread*>(made);
  thread->number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  thread->who = in_word(thread->number);
  thread->until_tick = 1;
  here.random = 0x9E3779B97F4A7C15 * thread->number;
  if (kSampled) here.until = interval();
  Thread* older = newest.load(std::memory_order_relaxed);
  do thread->older = older;
  // release: pairs with the acquire load in totals() (profile.A), or a half-made thread could be read.
  while (!newest.compare_exchange_weak(older, thread, std::memory_order_release, std::memory_order_relaxed));
  here.self = thread;
  return thread;
}

// How many blocks a sample stands for.
std::uint64_t weight(std::uint64_t bytes) noexcept {
  const std::uint64_t per = bytes == 0 ? 1 : bytes;
  return per >= static_cast<std::uint64_t>(mean) ? 1 : static_cast<std::uint64_t>(mean) / per;
}

Snapshot totals() noexcept {
  Totals all;
  // acquire: pairs with the release in first_call (profile.A).
  for (Thread* t = newest.load(std::memory_order_acquire); t != nullptr; t = t->older) all.add(*t);
  return {0, all.requested - std::min(all.requested, all.requested_freed),
          all.usable - std::min(all.usable, all.usable_freed), 0, 0};
}

// Bytes of the pages in which a live block lies, wholly or in part.
std::uint64_t occupied() noexcept {
  std::uint64_t pages = 0, last = 0;
  shadow.each_block([&](std::uintptr_t at, std::uint64_t word) {
    if ((word >> kStampBits & kThreadMax) == 0) return;  // stands beside the word of a long block
    const std::uint64_t bytes = std::max<std::uint64_t>(1, word >> kBytesShift);
    const std::uint64_t first = std::max<std::uint64_t>(at >> 12, last), end = ((at + bytes - 1) >> 12) + 1;
    if (end > first) pages += end - first, last = end;
  });
  return pages * 4096;
}

void look() noexcept {
  const std::uint64_t start = now_ns();
  Snapshot seen = totals();
  seen.t_ns = start - began_ns;
  if (!kSampled) {
    const std::uint64_t resident = resident_bytes(), own = shadow.resident_bytes() + resident_at_start;
    seen.resident = resident - std::min(resident, own);
    if (seen.usable > walked_usable + walked_usable / 10) walked_usable = seen.usable, occupied_bytes = occupied();
    seen.occupied = occupied_bytes;
  }
  if (seen.usable >= peak.usable) peak = seen;
  if (taken == kSnapshots) {
    for (std::size_t at = 0; at < kSnapshots / 2; ++at) snapshots[at] = snapshots[2 * at];
    taken = kSnapshots / 2;
    period_ns *= 2;
  }
  snapshots[taken++] = seen;
  const std::uint64_t end = now_ns();
  next_look_ns.store(end + std::max(period_ns, (end - start) * kCostShare), std::memory_order_relaxed);
}

[[gnu::noinline]] void tick(Thread& thread) noexcept {
  thread.until_tick = kTick;
  if (path[0] == '\0') return;  // nobody reads it
  if (now_ns() < next_look_ns.load(std::memory_order_relaxed)) return;
  // acquire and release: pairs with itself in other threads (profile.B), which read and write the snapshots in turn.
  if (looking.exchange(true, std::memory_order_acquire)) return;
  look();
  looking.store(false, std::memory_order_release);
}

// What a forked child inherits is live in it, but its parent asked for it: calls count once.
void in_child() noexcept {
  Lock::forget();
  for (Thread* t = newest.load(std::memory_order_relaxed); t != nullptr; t = t->older) {
    spread(*t);  // what is live stays, however it was counted
    const auto forget = [](Count& count) { count.value.store(0, std::memory_order_relaxed); };
    std::for_each(std::begin(t->blocks), std::end(t->blocks), forget);
    std::for_each(std::begin(t->bytes), std::end(t->bytes), forget);
    std::for_each(std::begin(t->lifetimes), std::end(t->lifetimes), forget);
    std::for_each(std::begin(t->freed_of), std::end(t->freed_of), forget);
    forget(t->remote), forget(t->unknown);
  }
  // relaxed: no other thread lives in the child.
  looking.store(false, std::memory_order_relaxed);
}

unsigned long long ull(std::uint64_t value) noexcept { return value; }

[[gnu::destructor]] void report() {
  if (path[0] == '\0' || !ready) return;
  const Inside unseen;
  if (!looking.exchange(true, std::memory_order_acquire)) look();  // profile.B: nobody looks any more
  char name[sizeof path + 16];
  std::snprintf(name, sizeof name, "%s.%d", path, getpid());
  const int file = folder.create(name);
  if (file >= 0) {
    const char* allocator = file_of(reinterpret_cast<void*>(next.malloc));
    say(file, "{\"version\":1,\"pid\":%d,\"ppid\":%d,\"mean\":%lld,\"allocator\":\"%.300s\"", getpid(), getppid(),
        static_cast<long long>(mean), allocator == nullptr ? "" : allocator);
    say(file, ",\"class_bytes\":[");
    for (std::size_t at = 0; at < kClasses; ++at) say(file, at == 0 ? "%zu" : ",%zu", class_bytes(at));
    say(file, "],\"stamp_bytes\":%llu,\"threads\":[", 1ULL << kStampBytesBits);
    // acquire: profile.A
    for (Thread* t = newest.load(std::memory_order_acquire); t != nullptr; t = t->older) {
      spread(*t);
      say(file, "{\"number\":%llu", ull(t->number));
      say_counts(file, "blocks", t->blocks, kClasses);
      say_counts(file, "bytes", t->bytes, kClasses);
      say_counts(file, "lifetimes", t->lifetimes, kLifetimes);
      say_counts(file, "freed_of", t->freed_of, kOwners);
      say(file, ",\"requested\":%llu,\"requested_freed\":%llu,\"usable\":%llu,\"usable_freed\":%llu",
          ull(t->requested.get()), ull(t->requested_freed.get()), ull(t->usable.get()), ull(t->usable_freed.get()));
      say(file, ",\"remote\":%llu,\"unknown\":%llu}%s", ull(t->remote.get()), ull(t->unknown.get()),
          t->older == nullptr ? "" : ",");
    }
    const auto point = [file](const Snapshot& s) {
      say(file, "[%llu,%llu,%llu,%llu,%llu]", ull(s.t_ns), ull(s.requested), ull(s.usable), ull(s.occupied),
          ull(s.resident));
    };
    say(file, "],\"peak\":");
    point(peak);
    say(file, ",\"snapshots\":[");
    for (std::size_t at = 0; at < taken; ++at) {
      if (at > 0) say(file, ",");
      point(snapshots[at]);
    }
    say(file, "]}\n");
    close(file);
  }
}

}  // namespace

void begin() noexcept {
  const char* wanted = std::getenv("LOAM_PROFILE");
  if (wanted != nullptr && std::strlen(wanted) < sizeof path) folder.keep(std::strcpy(path, wanted));
  const char* sample = std::getenv("LOAM_PROFILE_SAMPLE");
  if (kSampled && sample != nullptr && std::strtoll(sample, nullptr, 10) > 0) mean = std::strtoll(sample, nullptr, 10);
  if (kSampled) marks.add_all(early, early_used);
  began_ns = now_ns();
  resident_at_start = resident_bytes();
  pthread_atfork(nullptr, nullptr, in_child);
}

namespace {

std::uint64_t word_of(const Thread& thread, std::uint64_t bytes) noexcept {
  return bytes << kBytesShift | thread.who | (thread.clock >> kStampBytesBits & kStampMask);
}

Thread* of_this_thread() noexcept {
  auto* thread = static_cast<Thread*>(here.self);
  return thread != nullptr ? thread : first_call();
}

// Counts what a word tells of a block that goes, beside its size.
[[gnu::always_inline]] inline void count_life(Thread& thread, std::uint64_t known, std::uint64_t n) noexcept {
  if (((known ^ thread.who) & kThreadMax << kStampBits) != 0) [[unlikely]] {
    thread.remote.add(n);
    thread.freed_of[std::min<std::uint64_t>(known >> kStampBits & kThreadMax, kOwners - 1)].add(n);
    return;
  }
  const std::uint64_t age = ((thread.clock >> kStampBytesBits) - known) & kStampMask;
  thread.lifetimes[lifetime_of(age)].add(n);
}

// ---- every block is looked at

// A block that is too long for a count of its own.  What the allocator gave stands beside its word, where no other block
// can have one: the allocator is not asked again when the block goes.
[[gnu::always_inline]] inline std::uint64_t count_long(Thread& thread, Shadow::Word* word, void* block,
                                                       std::size_t bytes) noexcept {
  const std::uint64_t kept = std::min<std::uint64_t>(bytes, kBytesMax);
  const std::uint64_t usable = std::min<std::uint64_t>(inside([=] { return usable_bytes(block); }), kBytesMax);
  const std::size_t number = class_of(bytes);
  thread.blocks[number].add(1);
  thread.bytes[number].add(kept);
  thread.requested.add(kept);
  thread.usable.add(usable);
  // relaxed: as in count_slowly()
  if (word != nullptr) word[1].store(usable << kBytesShift, std::memory_order_relaxed);
  return kept;
}

// One that count() leaves, because something about it is new or it is long.
[[gnu::noinline]] void* count_slowly(void* block, std::size_t bytes) noexcept {
  Thread* const thread = of_this_thread();
  if (thread == nullptr) return block;
  thread->clock += bytes;
  Shadow::Word* const word = shadow.word(block, true);
  if (bytes <= kSmall) {
    if (thread->small[bytes].get() == 0) ask_usable(block, bytes);
    thread->small[bytes].add(1);
  } else {
    bytes = count_long(*thread, word, block, bytes);
  }
  // relaxed: who frees the block got it from this thread, in an order that the program made.
  if (word != nullptr) word->store(word_of(*thread, bytes), std::memory_order_relaxed);
  if (--thread->until_tick == 0) tick(*thread);
  return block;
}

[[gnu::noinline]] void* ticked(Thread& thread, void* block) noexcept {
  tick(thread);
  return block;
}

[[gnu::always_inline]] inline void* count(void* block, std::size_t bytes) noexcept {
  auto* const thread = static_cast<Thread*>(here.self);
  if (thread == nullptr || bytes > kSmall) [[unlikely]]
    return count_slowly(block, bytes);
  const std::uint64_t before = thread->small[bytes].get();
  Shadow::Word* const word = shadow.word(block, false);
  if (before == 0 || word == nullptr) [[unlikely]]
    return count_slowly(block, bytes);
  thread->clock += bytes;
  thread->small[bytes].set(before + 1);
  word->store(word_of(*thread, bytes), std::memory_order_relaxed);  // relaxed: as in count_slowly()
  if (--thread->until_tick == 0) [[unlikely]]
    return ticked(*thread, block);
  return block;
}

[[gnu::always_inline]] inline void count_gone(Thread& thread, Shadow::Word* word, std::uint64_t known) noexcept {
  const std::uint64_t bytes = known >> kBytesShift;
  word->store(0, std::memory_order_relaxed);  // relaxed: as in count_slowly()
  if (bytes <= kSmall) [[likely]] {
    thread.small_freed[bytes].add(1);
  } else {
    thread.requested_freed.add(bytes);
    thread.usable_freed.add(word[1].load(std::memory_order_relaxed) >> kBytesShift);
    word[1].store(0, std::memory_order_relaxed);
  }
  count_life(thread, known, 1);
}

// ---- samples stand for others

[[gnu::noinline]] void* sample(void* block, std::size_t bytes) noexcept {
  const Inside unseen;
  if (here.self == nullptr) {
    if (first_call() == nullptr) return block;
    if (!due(bytes + 1)) return block;
  }
  Thread& thread = *static_cast<Thread*>(here.self);
  here.until = interval();
  const std::uint64_t kept = std::min<std::uint64_t>(bytes, kBytesMax), n = weight(kept);
  const std::size_t number = class_of(bytes);
  thread.blocks[number].add(n);
  thread.bytes[number].add(n * kept);
  thread.requested.add(n * kept);
  thread.usable.add(n * given(block, bytes));
  thread.clock = thread.requested.get();
  if (Shadow::Word* const word = shadow.word(block, true); word != nullptr) {
    const Lock lock;
    marks.add(block);
    word->store(word_of(thread, kept), std::memory_order_relaxed);  // relaxed: as in count_slowly()
  }
  tick(thread);
  return block;
}

[[gnu::noinline]] void sample_gone(Thread& thread, Shadow::Word* word, std::uint64_t known, void* block) noexcept {
  const Inside unseen;
  const std::uint64_t bytes = known >> kBytesShift, n = weight(bytes);
  {
    const Lock lock;
    word->store(0, std::memory_order_relaxed);  // relaxed: as in count_slowly()
    marks.remove(block);
  }
  thread.requested_freed.add(n * bytes);
  thread.usable_freed.add(n * given(block, bytes));
  count_life(thread, known, n);
}

}  // namespace

[[gnu::always_inline]] inline bool passes(std::size_t bytes) noexcept { return kSampled && !due(bytes + 1); }

[[gnu::always_inline]] inline void* allocated(void* block, std::size_t bytes, bool) noexcept {
  return kSampled ? sample(block, bytes) : count(block, bytes);
}

[[gnu::always_inline]] inline bool gone_quickly(void* block) noexcept {
  if (kSampled) return !marks.may_have(block);
  Shadow::Word* const word = shadow.word(block, false);
  if (word == nullptr) [[unlikely]]
    return false;
  const std::uint64_t known = word->load(std::memory_order_relaxed);  // relaxed: as in count_slowly()
  auto* const thread = static_cast<Thread*>(here.self);
  if (known == 0 || thread == nullptr) [[unlikely]]
    return false;
  count_gone(*thread, word, known);
  return true;
}

[[gnu::always_inline]] inline void entered(void*) noexcept {}

void freeing(void* block) noexcept {
  if (block == nullptr || is_early(block)) return;
  Shadow::Word* const word = shadow.word(block, false);
  const std::uint64_t known =
      word == nullptr ? 0 : word->load(std::memory_order_relaxed);  // relaxed: as in count_slowly()
  Thread* const thread = of_this_thread();
  if (thread == nullptr) return;
  if (known == 0) {
    // The allocator's own blocks have no word, and one that is resized or handed on has lost it before.
    if (!kSampled && here.depth == 0) thread->unknown.add(1);
  } else if (kSampled) {
    sample_gone(*thread, word, known, block);
  } else {
    count_gone(*thread, word, known);
  }
}

}  // namespace loam::interposer
