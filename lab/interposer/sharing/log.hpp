// What the sampler says, as lines in a file that is mapped: what was written is there even if the process is killed.
//   The file has a head and then the lines.  It gets all its room at the start, and its descriptor is closed then: a program
//   that closes descriptors, or counts them, meets none of it.
//   L1 `used` grows only after the bytes are there, and by whole watches: publish() is called between two.  So the file holds at
//      each moment what a reader can use, and a process may end in any way.
//   Only the monitor writes; the counters of the head are read by who reads the file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace loam::interposer::sharing {

struct LogHead {
  static constexpr std::uint64_t kMagic = 0x32524853'4D414F4CULL;  // "LOAMSHR", then a version
  std::uint64_t magic;
  std::atomic<std::uint64_t> used;     // bytes of lines that are published
  std::atomic<std::uint64_t> refused;  // lines that found no room
  std::atomic<std::uint64_t> ended;    // 1: the process ended well; 2: so, but its monitor had been killed before
  std::atomic<std::uint64_t> asking;   // 1: while the monitor asks the kernel for an event, which may kill it
};

class Log {
 public:
  static constexpr std::size_t kBytes = std::size_t{8} << 20, kLineMax = 1024;

  // Whether it is there: `path` with the process's number, and one more where the process was executed anew.
  bool open(const char* path) noexcept {
    int file = -1;
    for (int again = 0; file < 0 && again < 16; ++again) {
      char name[4096];
      std::snprintf(name, sizeof name, "%s.%d.%d", path, getpid(), again);
      file = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    if (file < 0) return false;
    // Room that the disk has not would end the program when it is written to.
    const bool room = posix_fallocate(file, 0, kBytes) == 0;
    void* pages = room ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    if (pages == MAP_FAILED) return false;
    madvise(pages, kBytes, MADV_DONTDUMP);
    head_ = static_cast<LogHead*>(pages);
    head_->magic = LogHead::kMagic;
    written_ = 0;
    return true;
  }

  // Forked children are not their parent.
  void forget() noexcept {
    if (head_ != nullptr) munmap(head_, kBytes);
    head_ = nullptr;
  }

  bool full() const noexcept { return head_ == nullptr || written_ + kLineMax > kBytes - sizeof(LogHead); }

  // A process that ends without exit handlers leaves it as it was: a monitor that was killed in the call is known by it.
  void asking(bool now) noexcept {
    // relaxed: a mark for who reads the file after the process.
    if (head_ != nullptr) head_->asking.store(now, std::memory_order_relaxed);
  }

  void ended(bool monitored) noexcept {
    // relaxed: a mark for who reads the file after the process.
    if (head_ != nullptr) head_->ended.store(monitored ? 1 : 2, std::memory_order_relaxed);
  }

  template <typename... Values>
  void say(const char* form, Values... values) noexcept {
    char text[kLineMax];
    const int n = std::snprintf(text, sizeof text, form, values...);
    if (n > 0) add(text, static_cast<std::size_t>(n) < sizeof text ? static_cast<std::size_t>(n) : sizeof text - 1);
  }

  void add(const char* text, std::size_t bytes) noexcept {
    if (head_ == nullptr) return;
    if (written_ + bytes > kBytes - sizeof(LogHead)) {
      head_->refused.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count
      return;
    }
    std::memcpy(reinterpret_cast<char*>(head_ + 1) + written_, text, bytes);
    written_ += bytes;
  }

  // What was said is whole: from now on it is in the file.
  void publish() noexcept {
    // release: L1; pairs with the read of the file by another process, or after the end of this one.
    if (head_ != nullptr) head_->used.store(written_, std::memory_order_release);
  }

 private:
  LogHead* head_ = nullptr;
  std::size_t written_ = 0;
};

}  // namespace loam::interposer::sharing
