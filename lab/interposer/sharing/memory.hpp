// Reads of the process's own memory that may fail: code is unloaded, and stacks go, while the monitor looks at them.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace loam::interposer::sharing {

// Whether all of it could be read.
inline bool read_memory(std::uintptr_t from, void* into, std::size_t bytes) noexcept {
  const iovec local{into, bytes}, remote{reinterpret_cast<void*>(from), bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

template <typename Value>
bool read_value(std::uintptr_t from, Value& into) noexcept {
  return read_memory(from, &into, sizeof into);
}

// Code, read in pieces: an instruction is at most 15 bytes long.
class Code {
 public:
  static constexpr std::size_t kInstruction = 15;

  // What was read.
  void forget() noexcept { length_ = 0; }

  // The bytes at an address, `bytes` of them; nullptr where nothing can be read.
  const std::uint8_t* at(std::uintptr_t address, std::size_t& bytes) noexcept {
    if (address - first_ >= length_ || first_ + length_ - address < kInstruction) {
      first_ = address & ~std::uintptr_t{kPiece / 4 - 1};
      length_ = kPiece;
      // A page that cannot be read may follow: the rest of the page before it will do.
      if (!read_memory(first_, piece_, length_)) length_ = 4096 - first_ % 4096 < kPiece ? 4096 - first_ % 4096 : 0;
      if (length_ < kPiece && (length_ == 0 || !read_memory(first_, piece_, length_))) length_ = 0;
    }
    if (address - first_ >= length_) return nullptr;
    bytes = first_ + length_ - address;
    return piece_ + (address - first_);
  }

 private:
  static constexpr std::size_t kPiece = 512;
  std::uintptr_t first_ = 0;
  std::size_t length_ = 0;
  std::uint8_t piece_[kPiece];
};

}  // namespace loam::interposer::sharing
