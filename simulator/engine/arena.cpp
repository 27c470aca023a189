#include "simulator/engine/arena.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/kernel.hpp"

#include <bit>
#include <new>

#include <sys/mman.h>

namespace loam::simulator {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

std::uintptr_t next = 0, end = 0, unmapped = kArenaStart;

// Before each block of operator new: which list it returns to.
struct alignas(16) Header {
  unsigned size_class;
  unsigned before;  // bytes from the start of what was taken to this header
};
struct Free {
  Free* next;
};
Free* free_blocks[64];

void* take_block(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = bytes + sizeof(Header) + (alignment > sizeof(Header) ? alignment : 0);
  const auto size_class = static_cast<unsigned>(std::bit_width(whole - 1));
  char* start;
  if (free_blocks[size_class] != nullptr) {
    start = reinterpret_cast<char*>(free_blocks[size_class]);
    free_blocks[size_class] = free_blocks[size_class]->next;
  } else {
    start = static_cast<char*>(take(std::size_t{1} << size_class));
  }
  auto at = reinterpret_cast<std::uintptr_t>(start) + sizeof(Header);
  if (alignment > sizeof(Header)) at = (at + alignment - 1) & ~(alignment - 1);
  auto* const header = reinterpret_cast<Header*>(at) - 1;
  header->size_class = size_class;
  header->before = static_cast<unsigned>(reinterpret_cast<char*>(header) - start);
  return header + 1;
}

void give_back(void* block) noexcept {
  if (block == nullptr) return;
  auto* const header = static_cast<Header*>(block) - 1;
  auto& list = free_blocks[header->size_class];
  auto* const start = reinterpret_cast<Free*>(reinterpret_cast<char*>(header) - header->before);
  start->next = list;
  list = start;
}

}  // namespace

void* map_at(std::uintptr_t address, std::size_t bytes) noexcept {
  const long found = kernel(SYS_mmap, static_cast<long>(address), static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (found != static_cast<long>(address))
    fail("address {} is taken or refused ({} bytes, kernel says {}); run without a limit on address space",
         reinterpret_cast<void*>(address), bytes, found);
  return reinterpret_cast<void*>(address);
}

void* take(std::size_t bytes) noexcept {
  bytes = (bytes + kLineBytes - 1) & ~(kLineBytes - 1);
  if (bytes > end - next) {
    const std::size_t chunk = bytes > kChunkBytes ? (bytes + 4095) & ~std::size_t{4095} : kChunkBytes;
    map_at(unmapped, chunk);
    if (unmapped != end) next = unmapped;
    unmapped += chunk;
    end = unmapped;
  }
  void* const found = reinterpret_cast<void*>(next);
  next += bytes;
  return found;
}

}  // namespace loam::simulator

void* operator new(std::size_t bytes) { return loam::simulator::take_block(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return loam::simulator::take_block(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes) { return loam::simulator::take_block(bytes, 0); }
void operator delete(void* block) noexcept { loam::simulator::give_back(block); }
void operator delete[](void* block) noexcept { loam::simulator::give_back(block); }
void operator delete(void* block, std::size_t) noexcept { loam::simulator::give_back(block); }
void operator delete[](void* block, std::size_t) noexcept { loam::simulator::give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { loam::simulator::give_back(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { loam::simulator::give_back(block); }
