// record: writes what a program asks of its allocator into a trace (trace.hpp), from which replay.cpp asks again.
//   Source   LOAM_TRACE names the file; each process but the first to open it appends its number.
//   Guarantees  what was written is in the kernel's hands at once: a kill loses at most the event in flight of each thread.
//   When not a forked child that does not execute a program: it is not recorded.
//   Cost     two to four bytes an event, a store into the shadow; a look at the disk every 64 KiB.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "forward.hpp"
#include "operators.hpp"
#include "shadow.hpp"
#include "trace.hpp"

namespace loam::interposer {
namespace {

//   bits 63..50: thread, from 1    bits 49..0: number of the block
inline constexpr unsigned kNumberBits = 50;
inline constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << kNumberBits) - 1, kThreadMax = (1 << 14) - 1;
inline constexpr std::size_t kPage = 4096;
static_assert(sizeof(trace::Header) <= kPage);

struct Writer {
  std::uint64_t thread;
  std::uint64_t blocks;    // allocated so far
  std::uint64_t sequence;  // of the next chunk
  trace::Chunk* chunk;
  Writer* older;
};

Shadow shadow;
trace::Header* header;
int file = -1;
std::atomic<Writer*> newest{nullptr};

void seal(trace::Chunk& chunk) noexcept {
  chunk.sum.store(trace::sum_of(chunk.bytes, chunk.used.load(std::memory_order_relaxed)), std::memory_order_relaxed);
}

trace::Chunk* new_chunk(Writer& writer) noexcept {
  const std::uint64_t number = header->chunks.fetch_add(1, std::memory_order_relaxed);
  const auto place = static_cast<off_t>(kPage + number * trace::kChunkBytes);
  // A hole that the disk has no room for would end the program when it is written to.
  if (posix_fallocate(file, place, trace::kChunkBytes) != 0) return nullptr;
  void* made = mmap(nullptr, trace::kChunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, place);
  if (made == MAP_FAILED) return nullptr;
  auto* chunk = static_cast<trace::Chunk*>(made);
  chunk->thread = writer.thread;
  chunk->sequence = writer.sequence++;
  return chunk;
}

[[gnu::noinline]] Writer* first_call() noexcept {
  if (header == nullptr) return nullptr;
  const std::uint64_t number = header->threads.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number > kThreadMax) return nullptr;
  void* made = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  auto* writer = static_cast<Writer*>(made);
  writer->thread = number;
  Writer* older = newest.load(std::memory_order_relaxed);
  do writer->older = older;
  // release: pairs with the acquire load in finish() (record.A), or a half-made writer could be read.
  while (!newest.compare_exchange_weak(older, writer, std::memory_order_release, std::memory_order_relaxed));
  here.self = writer;
  return writer;
}

// Writes an event of one or two numbers; returns false where there is no room on the disk.
bool write_event(Writer& writer, std::uint64_t first, const std::uint64_t* second = nullptr) noexcept {
  trace::Chunk* chunk = writer.chunk;
  if (chunk == nullptr || chunk->used.load(std::memory_order_relaxed) + trace::kEventBytesMax > sizeof chunk->bytes) {
    if (chunk != nullptr) {
      seal(*chunk);
      munmap(chunk, trace::kChunkBytes);
    }
    writer.chunk = chunk = new_chunk(writer);
    if (chunk == nullptr) {
      header->refused.fetch_add(1, std::memory_order_relaxed);
      header = nullptr;  // the trace ends here
      return false;
    }
  }
  const std::uint32_t used = chunk->used.load(std::memory_order_relaxed);
  unsigned char* end = trace::put(chunk->bytes + used, first);
  if (second != nullptr) end = trace::put(end, *second);
  // release: T1. Whoever reads the file sees the bytes before their length.
  chunk->used.store(static_cast<std::uint32_t>(end - chunk->bytes), std::memory_order_release);
  return true;
}

std::uint64_t tagged(std::uint64_t value, trace::Kind kind) noexcept {
  return value << 2 | static_cast<std::uint64_t>(kind);
}

// A forked child would write into its parent's chunks.
void in_child() noexcept {
  header = nullptr;
  here.self = nullptr;
}

[[gnu::destructor]] void finish() {
  if (header == nullptr) return;
  const Inside unseen;
  // acquire: record.A. Threads that still run may write on; their chunk's sum then does not hold, and `used` does.
  for (Writer* writer = newest.load(std::memory_order_acquire); writer != nullptr; writer = writer->older)
    if (writer->chunk != nullptr) seal(*writer->chunk);
  header->ended.store(1, std::memory_order_relaxed);
  header = nullptr;
}

}  // namespace

void begin() noexcept {
  const char* wanted = std::getenv("LOAM_TRACE");
  if (wanted == nullptr || std::strlen(wanted) > 4000) return;
  file = open(wanted, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    char own[4096];
    std::snprintf(own, sizeof own, "%s.%d", wanted, getpid());
    file = open(own, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  // Out of the way of programs that close or number descriptors.
  const int high = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 900);
  if (high >= 0) close(file), file = high;
  if (file < 0 || posix_fallocate(file, 0, kPage) != 0) return;
  void* made = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (made == MAP_FAILED) return;
  auto* begun = static_cast<trace::Header*>(made);
  begun->magic = trace::kMagic;
  begun->version = trace::kVersion;
  begun->chunk_bytes = trace::kChunkBytes;
  pthread_atfork(nullptr, nullptr, in_child);
  header = begun;
}

namespace {

void write_allocated(void* block, std::size_t bytes, bool resized) noexcept {
  const Inside unseen;
  auto* writer = static_cast<Writer*>(here.self);
  if (writer == nullptr && (writer = first_call()) == nullptr) return;
  if (header == nullptr || !write_event(*writer, tagged(bytes, resized ? trace::Kind::resize : trace::Kind::alloc)))
    return;
  Shadow::Word* word = shadow.word(block, true);
  // relaxed: who frees the block got it from this thread, in an order that the program made.
  if (word != nullptr)
    word->store(writer->thread << kNumberBits | (writer->blocks & kNumberMask), std::memory_order_relaxed);
  ++writer->blocks;
}

}  // namespace

inline bool passes(std::size_t) noexcept { return false; }

inline void* allocated(void* block, std::size_t bytes, bool resized) noexcept {
  write_allocated(block, bytes, resized);
  return block;
}

inline bool gone_quickly(void*) noexcept { return false; }

[[gnu::always_inline]] inline void entered(void*) noexcept {}

void freeing(void* block) noexcept {
  if (block == nullptr || here.depth > 0 || is_early(block)) return;
  const Inside unseen;
  auto* writer = static_cast<Writer*>(here.self);
  if (writer == nullptr && (writer = first_call()) == nullptr) return;
  if (header == nullptr) return;
  Shadow::Word* word = shadow.word(block, false);
  const std::uint64_t known = word == nullptr ? 0 : word->load(std::memory_order_relaxed);  // relaxed: as above
  if (known == 0) {
    header->unknown.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  word->store(0, std::memory_order_relaxed);
  const std::uint64_t number = known & kNumberMask;
  if (known >> kNumberBits == writer->thread)
    write_event(*writer, tagged(writer->blocks - number, trace::Kind::free));
  else
    write_event(*writer, tagged(known >> kNumberBits, trace::Kind::foreign), &number);
}

}  // namespace loam::interposer
