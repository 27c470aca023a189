// The kernel's events: the clock that samples a thread, and the debug registers that watch a word in another one.
//   Both work without hardware counters, also in virtual machines, and need no right beyond perf_event_paranoid <= 2.
//   Armed by changing what an event watches: one with a limit on its traps could be used but once (PERF_EVENT_IOC_REFRESH).
#pragma once

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "access.hpp"

namespace loam::interposer::sharing {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kDebugRegisters = 4, kWordBytes = 8, kLineBytes = 64, kLineWords = 8;

// All of the general registers; the segment registers tell nothing.
inline constexpr std::uint64_t kSampledRegisters =
    ((std::uint64_t{1} << kRegisters) - 1) &
    ~(std::uint64_t{1} << PERF_REG_X86_DS | std::uint64_t{1} << PERF_REG_X86_ES | std::uint64_t{1} << PERF_REG_X86_FS |
      std::uint64_t{1} << PERF_REG_X86_GS);

// What is read of a record.
struct Sample {
  std::uint64_t ip = 0;
  Registers registers{};  // those of the event; 0 the others
};

// An event of one thread with its ring.
class Event {
 public:
  // Whether it is there; errno says why not.
  bool open(perf_event_attr& attributes, int thread, std::size_t pages) noexcept {
    attributes.size = sizeof attributes;
    attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    attributes.wakeup_events = 1;
    registers_ = attributes.sample_regs_user;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (file_ < 0) return false;
    bytes_ = pages * kPage;
    void* made = mmap(nullptr, kPage + bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (made == MAP_FAILED) {
      const int why = errno;
      ::close(file_);
      errno = why;
      file_ = -1;
      return false;
    }
    ring_ = static_cast<perf_event_mmap_page*>(made);
    return true;
  }

  void close() noexcept {
    if (file_ < 0) return;
    munmap(ring_, kPage + bytes_);
    ::close(file_);
    file_ = -1;
  }

  // In a forked child: the ring was not inherited, the descriptor was.
  void forget() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

  bool is_open() const noexcept { return file_ >= 0; }
  int file() const noexcept { return file_; }
  bool control(unsigned long request, void* argument = nullptr) noexcept {
    return ioctl(file_, request, argument) == 0;
  }

  // How far it has counted: of a clock, the nanoseconds that its thread has run.
  std::uint64_t count() const noexcept {
    std::uint64_t found = 0;
    return ::read(file_, &found, sizeof found) == static_cast<ssize_t>(sizeof found) ? found : 0;
  }

  // Takes all samples that are there.  returns: how many; the last one is in `last`
  std::size_t take(Sample& last) noexcept {
    std::size_t taken = 0;
    // acquire: pairs with the kernel's release of data_head: the records before it are whole.
    const std::uint64_t head = __atomic_load_n(&ring_->data_head, __ATOMIC_ACQUIRE);
    std::uint64_t tail = ring_->data_tail;
    while (tail < head) {
      perf_event_header record;
      copy(tail, &record, sizeof record);
      if (record.size < sizeof record) break;
      if (record.type == PERF_RECORD_SAMPLE && read(tail + sizeof record, last)) ++taken;
      tail += record.size;
    }
    // release: pairs with the kernel's read of data_tail: it may write over what was copied.
    __atomic_store_n(&ring_->data_tail, head, __ATOMIC_RELEASE);
    return taken;
  }

 private:
  void copy(std::uint64_t from, void* into, std::size_t bytes) const noexcept {
    const char* data = reinterpret_cast<const char*>(ring_) + kPage;
    for (std::size_t at = 0; at < bytes; ++at) static_cast<char*>(into)[at] = data[(from + at) % bytes_];
  }

  bool read(std::uint64_t at, Sample& into) const noexcept {
    std::uint64_t kind = 0;
    copy(at, &into.ip, sizeof into.ip), at += sizeof into.ip;
    copy(at, &kind, sizeof kind), at += sizeof kind;
    if (kind != PERF_SAMPLE_REGS_ABI_64) return false;
    for (std::size_t number = 0; number < kRegisters; ++number)
      if ((registers_ >> number & 1) != 0) copy(at, &into.registers.value[number], 8), at += 8;
    return true;
  }

  int file_ = -1;
  perf_event_mmap_page* ring_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t registers_ = 0;
};

// Samples a thread each time that it has used the processor for so long.
inline bool open_clock(Event& event, int thread, std::uint64_t period_ns) noexcept {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  attributes.sample_regs_user = kSampledRegisters;
  return event.open(attributes, thread, 8);
}

// A debug register of a thread: off, or at one word.
class Watchpoint {
 public:
  // reads: reads of the word trap, too.  Whether it watches; errno says why not.
  bool arm(int thread, std::uintptr_t word, bool reads) noexcept {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.bp_type = reads ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W;
    attributes.bp_addr = word;
    attributes.bp_len = HW_BREAKPOINT_LEN_8;
    attributes.sample_period = 1;
    attributes.sample_regs_user = std::uint64_t{1} << PERF_REG_X86_SP;
    if (!event.is_open()) {
      attributes.disabled = 1;
      if (!event.open(attributes, thread, 1)) return false;
      return event.control(PERF_EVENT_IOC_ENABLE);
    }
    // Events that are not as the kernel has them cannot be changed: the same fields as at the opening.
    attributes.size = sizeof attributes;
    attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    attributes.wakeup_events = 1;
    attributes.disabled = 1;
    return event.control(PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attributes) && event.control(PERF_EVENT_IOC_ENABLE);
  }

  void disarm() noexcept {
    if (event.is_open()) event.control(PERF_EVENT_IOC_DISABLE);
  }

  Event event;
};

}  // namespace loam::interposer::sharing
