// replay: asks the allocator of this process for what a trace says, on the recorded threads or on one.
//     loam-replay FILE [--threads recorded|1]
//   Each thread plays its events in their order; a block of another thread is freed once it is there, so who frees what
//   is as recorded.  On one thread the recorded ones take turns, kTurn events each, or until one has to wait.
//   Memory is touched as programs touch it: the first byte of each page, and the last byte.
//   Own memory (the trace, who has which block) comes from the operating system, and goes back once it was played.
//   Errors   status 2: no trace, of another version, damaged; status 3: malloc refused.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "trace.hpp"

namespace {

using namespace loam::interposer;

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kTurn = 256;
constexpr std::size_t kBlocksPerPage = kPage / sizeof(void*);

struct Block {
  std::atomic<char*> at;
};

struct Player {
  trace::Chunk** chunks;
  std::size_t chunks_n, chunk;
  std::uint32_t offset;
  Block* blocks;
  std::atomic<std::uint32_t>* held;  // by page of `blocks`: those of its blocks that are not freed yet
  std::uint64_t blocks_n;
  std::atomic<std::uint64_t> next;
  char* resizing;  // what the event before freed, where the next one resizes it
  std::uint64_t events, foreign, refused;
};

Player* players;
std::size_t players_n;
std::atomic<bool> broken{false};
// Stands for a block that malloc refused: its free is in the trace all the same, and frees nothing.
char none;

template <typename Entry>
Entry* pages(std::size_t n) {
  void* made = mmap(nullptr, std::max<std::size_t>(1, n * sizeof(Entry)), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) std::fprintf(stderr, "replay: no memory for its own tables\n"), std::exit(2);
  return static_cast<Entry*>(made);
}

void touch(char* block, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPage) block[at] = 1;
  if (bytes > 0) block[bytes - 1] = 1;
}

// A block of a player was freed: a page of its table that nobody needs any more goes back.
void forget(Player& owner, std::uint64_t number) {
  const std::size_t page = number / kBlocksPerPage;
  // acq_rel: the last one to free a block of the page comes after all others (replay.B).
  if (owner.held[page].fetch_sub(1, std::memory_order_acq_rel) == 1 &&
      owner.next.load(std::memory_order_relaxed) >= (page + 1) * kBlocksPerPage)
    madvise(owner.blocks + page * kBlocksPerPage, kPage, MADV_DONTNEED);
}

struct Event {
  trace::Kind kind;
  std::uint64_t value, number;
};

// The next event of a thread, without taking it; returns false at the end, or where the bytes end within one.
bool peek(const Player& player, std::size_t& chunk, std::uint32_t& offset, Event& event) {
  chunk = player.chunk, offset = player.offset;
  while (chunk < player.chunks_n && offset >= player.chunks[chunk]->used.load(std::memory_order_relaxed))
    ++chunk, offset = 0;
  if (chunk == player.chunks_n) return false;
  const unsigned char* at = player.chunks[chunk]->bytes + offset;
  const unsigned char* end = player.chunks[chunk]->bytes + player.chunks[chunk]->used.load(std::memory_order_relaxed);
  std::uint64_t first = 0;
  if (!trace::get(at, end, first)) return false;
  event = {static_cast<trace::Kind>(first & 3), first >> 2, 0};
  if (event.kind == trace::Kind::foreign && !trace::get(at, end, event.number)) return false;
  offset = static_cast<std::uint32_t>(at - player.chunks[chunk]->bytes);
  return true;
}

// A chunk that was played goes back.
void move_to(Player& player, std::size_t chunk, std::uint32_t offset) {
  if (chunk != player.chunk) madvise(player.chunks[player.chunk], trace::kChunkBytes, MADV_DONTNEED);
  player.chunk = chunk, player.offset = offset;
}

enum class Step { done, waits, ended };

Step step(Player& player) {
  std::size_t chunk;
  std::uint32_t offset;
  Event event;
  if (!peek(player, chunk, offset, event)) return Step::ended;
  const bool makes = event.kind == trace::Kind::alloc || event.kind == trace::Kind::resize;
  if (!makes) {
    Player* owner = &player;
    std::uint64_t number = player.next.load(std::memory_order_relaxed) - event.value;
    if (event.kind == trace::Kind::foreign) {
      if (event.value == 0 || event.value > players_n || event.number >= players[event.value - 1].blocks_n) {
        broken.store(true);
        return Step::ended;
      }
      owner = &players[event.value - 1], number = event.number;
    }
    if (number >= owner->blocks_n) {
      broken.store(true);
      return Step::ended;
    }
    // acq_rel: pairs with the release store below (replay.A): the block's bytes are there before another thread frees it.
    char* block = owner->blocks[number].at.exchange(nullptr, std::memory_order_acq_rel);
    if (block == nullptr) return Step::waits;
    forget(*owner, number);
    player.foreign += owner != &player;
    move_to(player, chunk, offset);
    std::size_t after_chunk;
    std::uint32_t after;
    Event following;
    if (block == &none) block = nullptr;
    if (peek(player, after_chunk, after, following) && following.kind == trace::Kind::resize)
      player.resizing = block;
    else
      std::free(block);
  } else {
    move_to(player, chunk, offset);
    char* old = event.kind == trace::Kind::resize ? player.resizing : nullptr;
    player.resizing = nullptr;
    auto* block = static_cast<char*>(old != nullptr ? std::realloc(old, event.value) : std::malloc(event.value));
    if (block == nullptr && event.value > 0) ++player.refused;
    if (block != nullptr) touch(block, event.value);
    const std::uint64_t number = player.next.load(std::memory_order_relaxed);
    player.held[number / kBlocksPerPage].fetch_add(1, std::memory_order_relaxed);
    // relaxed: only its own thread counts on it; others read it for a page of which every block is there (replay.B).
    player.next.store(number + 1, std::memory_order_relaxed);
    player.blocks[number].at.store(block != nullptr ? block : &none, std::memory_order_release);  // replay.A
  }
  ++player.events;
  return Step::done;
}

void* play(void* given) {
  auto& player = *static_cast<Player*>(given);
  std::uint64_t waited = 0;
  for (Step outcome; (outcome = step(player)) != Step::ended && !broken.load(std::memory_order_relaxed);) {
    if (outcome == Step::done) {
      waited = 0;
    } else if (++waited > 100'000'000) {
      broken.store(true);  // its owner never made the block
    } else {
      sched_yield();
    }
  }
  return nullptr;
}

void play_on_one() {
  for (bool moved = true, waits = false; moved; waits = false) {
    moved = false;
    for (std::size_t at = 0; at < players_n; ++at) {
      Step outcome = Step::done;
      for (std::uint64_t turn = 0; turn < kTurn && (outcome = step(players[at])) == Step::done; ++turn) moved = true;
      waits |= outcome == Step::waits;
    }
    if (waits && !moved) broken.store(true);  // for a block that is not made, or was freed before
  }
}

int refuse(const char* file, const char* why) {
  std::fprintf(stderr, "replay: %s: %s\n", file, why);
  return 2;
}

// Counts the events of a chunk that allocate; ~0 where its bytes are damaged.
std::uint64_t allocations(const trace::Chunk& chunk) {
  const std::uint32_t used = chunk.used.load(std::memory_order_relaxed),
                      sum = chunk.sum.load(std::memory_order_relaxed);
  if (used > sizeof chunk.bytes || (sum != 0 && sum != trace::sum_of(chunk.bytes, used))) return ~std::uint64_t{0};
  const unsigned char *at = chunk.bytes, *end = at + used;
  std::uint64_t n = 0, value = 0;
  while (trace::get(at, end, value)) {
    const auto kind = static_cast<trace::Kind>(value & 3);
    n += kind == trace::Kind::alloc || kind == trace::Kind::resize;
    if (kind == trace::Kind::foreign && !trace::get(at, end, value)) break;
  }
  return n;
}

}  // namespace

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  const bool alone = argc > 3 && std::strcmp(argv[2], "--threads") == 0 && std::strcmp(argv[3], "1") == 0;
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) return refuse(name, "cannot be read");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < kPage) return refuse(name, "is no trace, or was cut before its first chunk");
  auto* base = static_cast<char*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0));
  if (base == MAP_FAILED) return refuse(name, "cannot be mapped");
  const auto& header = *reinterpret_cast<const trace::Header*>(base);
  if (header.magic != trace::kMagic) return refuse(name, "is no trace of loam");
  if (header.version != trace::kVersion || header.chunk_bytes != trace::kChunkBytes)
    return refuse(name, "is of another version; record it again");
  players_n = header.threads.load();
  const std::size_t chunks = (bytes - kPage) / trace::kChunkBytes;
  if (players_n > (std::size_t{1} << 14) || chunks == 0) return refuse(name, "holds no events");
  players = pages<Player>(players_n);
  const auto chunk_at = [base](std::size_t at) {
    return reinterpret_cast<trace::Chunk*>(base + kPage + at * trace::kChunkBytes);
  };
  for (std::size_t at = 0; at < chunks; ++at) {
    const std::uint64_t thread = chunk_at(at)->thread;
    if (thread > players_n) return refuse(name, "is damaged: a chunk of a thread that does not exist");
    if (thread > 0) ++players[thread - 1].chunks_n;
  }
  for (std::size_t at = 0; at < players_n; ++at) players[at].chunks = pages<trace::Chunk*>(players[at].chunks_n);
  for (std::size_t at = 0; at < chunks; ++at) {
    trace::Chunk* chunk = chunk_at(at);
    if (chunk->thread == 0) continue;
    Player& player = players[chunk->thread - 1];
    if (chunk->sequence >= player.chunks_n || player.chunks[chunk->sequence] != nullptr)
      return refuse(name, "was cut: a chunk is missing");
    const std::uint64_t made = allocations(*chunk);
    if (made == ~std::uint64_t{0}) return refuse(name, "is damaged: the sum of a chunk is wrong");
    madvise(chunk, trace::kChunkBytes, MADV_DONTNEED);
    player.chunks[chunk->sequence] = chunk;
    player.blocks_n += made;
  }
  for (std::size_t at = 0; at < players_n; ++at) {
    Player& player = players[at];
    player.blocks = pages<Block>(player.blocks_n);
    player.held = pages<std::atomic<std::uint32_t>>(player.blocks_n / kBlocksPerPage + 1);
  }
  if (alone || players_n == 1) {
    play_on_one();
  } else {
    auto* threads = pages<pthread_t>(players_n);
    for (std::size_t at = 0; at < players_n; ++at) pthread_create(&threads[at], nullptr, play, &players[at]);
    for (std::size_t at = 0; at < players_n; ++at) pthread_join(threads[at], nullptr);
  }
  std::uint64_t events = 0, foreign = 0, refused = 0;
  for (std::size_t at = 0; at < players_n; ++at)
    events += players[at].events, foreign += players[at].foreign, refused += players[at].refused;
  if (broken.load()) return refuse(name, "is damaged: a block is freed that nobody allocated");
  std::printf("%llu events of %zu threads, %llu frees by another thread\n", static_cast<unsigned long long>(events),
              players_n, static_cast<unsigned long long>(foreign));
  if (refused > 0)
    std::fprintf(stderr, "replay: malloc refused %llu blocks\n", static_cast<unsigned long long>(refused));
  return refused > 0 ? 3 : 0;
}
