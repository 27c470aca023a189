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

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "access.hpp"

namespace loam::interposer::sharing {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kDebugRegisters = 4, kWordBytes = 8, kLineBytes = 64, kLineWords = 8;

// All of the general registers; the segment registers tell nothing.
inline constexpr std::uint64_t kSampledRegisters =
    ((std::uint64_t{1} << kRegisters) - 1) &
    ~(std::uint64_t{1} << PERF_REG_X86_DS | std::uint64_t{1} << PERF_REG_X86_ES | std::uint64_t{1} << PERF_REG_X86_FS |
      std::uint64_t{1} << PERF_REG_X86_GS);

inline constexpr std::size_t kStackWords = 64;

// address: of the word that trapped; 0: the clock's.  stack: words from the stack pointer on, as many as there were
struct Sample {
  std::uint64_t ip = 0, address = 0;
  Registers registers{};
  std::size_t words = 0;
  std::uint64_t stack[kStackWords];
};

// One event of one thread.
class Event {
 public:
  // All events have samples of one form, so that those of a thread can share a ring.
  static void complete(perf_event_attr& attributes) noexcept {
    attributes.size = sizeof attributes;
    attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = kSampledRegisters;
    attributes.sample_stack_user = kStackWords * sizeof(std::uint64_t);
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    attributes.wakeup_events = 1;
  }

  // Whether it is there; errno says why not.
  bool open(perf_event_attr& attributes, int thread) noexcept {
    complete(attributes);
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
    return file_ >= 0;
  }

  void close() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

  bool is_open() const noexcept { return file_ >= 0; }
  int file() const noexcept { return file_; }
  bool control(unsigned long request, void* argument = nullptr) noexcept {
    return ioctl(file_, request, argument) == 0;
  }
  bool write_into(const Event& other) noexcept { return ioctl(file_, PERF_EVENT_IOC_SET_OUTPUT, other.file()) == 0; }

  // How far it has counted: of a clock, the nanoseconds that its thread has run.
  std::uint64_t count() const noexcept {
    std::uint64_t counted = 0;
    return ::read(file_, &counted, sizeof counted) == static_cast<ssize_t>(sizeof counted) ? counted : 0;
  }

 private:
  int file_ = -1;
};

// The samples of a thread.  Few pages: the kernel lets a user lock but some, and they are taken at once.
class Ring {
 public:
  bool map(const Event& event) noexcept {
    void* pages = mmap(nullptr, (1 + kPages) * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, event.file(), 0);
    if (pages == MAP_FAILED) return false;
    ring_ = static_cast<perf_event_mmap_page*>(pages);
    return true;
  }

  void unmap() noexcept {
    if (ring_ != nullptr) munmap(ring_, (1 + kPages) * kPage);
    ring_ = nullptr;
  }

  // In a forked child, which has not inherited it.
  void forget() noexcept { ring_ = nullptr; }

  // Takes all samples that are there.
  template <typename Visit>
  void take(Visit visit) noexcept {
    // acquire: pairs with the kernel's release of data_head: the records before it are whole.
    const std::uint64_t head = __atomic_load_n(&ring_->data_head, __ATOMIC_ACQUIRE);
    for (std::uint64_t tail = ring_->data_tail; tail < head;) {
      perf_event_header record;
      copy(tail, &record, sizeof record);
      if (record.size < sizeof record) break;
      Sample sample;
      if (record.type == PERF_RECORD_SAMPLE && read(tail + sizeof record, sample)) visit(sample);
      tail += record.size;
    }
    // release: pairs with the kernel's read of data_tail: it may write over what was copied.
    __atomic_store_n(&ring_->data_tail, head, __ATOMIC_RELEASE);
  }

 private:
  void copy(std::uint64_t from, void* into, std::size_t bytes) const noexcept {
    const char* data = reinterpret_cast<const char*>(ring_) + kPage;
    for (std::size_t at = 0; at < bytes; ++at) static_cast<char*>(into)[at] = data[(from + at) % (kPages * kPage)];
  }

  bool read(std::uint64_t at, Sample& into) const noexcept {
    std::uint64_t kind = 0;
    for (std::uint64_t* part : {&into.ip, &into.address, &kind}) copy(at, part, sizeof *part), at += sizeof *part;
    if (kind != PERF_SAMPLE_REGS_ABI_64) return false;
    for (std::size_t number = 0; number < kRegisters; ++number)
      if ((kSampledRegisters >> number & 1) != 0) copy(at, &into.registers.value[number], 8), at += 8;
    // Room for the words, then how many of its bytes were filled.
    std::uint64_t room = 0, filled = 0;
    copy(at, &room, sizeof room), at += sizeof room;
    if (room == 0 || room > sizeof into.stack) return true;
    copy(at, into.stack, room), copy(at + room, &filled, sizeof filled);
    into.words = filled / sizeof(std::uint64_t);
    return true;
  }

  static constexpr std::size_t kPages = 2;
  perf_event_mmap_page* ring_ = nullptr;
};

// Samples a thread each time that it has used the processor for so long.
inline bool open_clock(Event& event, int thread, std::uint64_t period_ns) noexcept {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  return event.open(attributes, thread);
}

// A debug register of a thread watches a word from now on; it is opened when it is first used.
//   clock: the thread's, into whose ring it writes; reads: reads of the word trap, too
//   returns: whether it watches; errno says why not
inline bool arm(Event& event, const Event& clock, int thread, std::uintptr_t word, bool reads) noexcept {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = reads ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W;
  attributes.bp_addr = word;
  attributes.bp_len = HW_BREAKPOINT_LEN_8;
  attributes.sample_period = 1;
  if (event.is_open()) {
    // The change enables it, too: each call may interrupt another processor, and the watched thread goes on meanwhile.
    Event::complete(attributes);
    if (event.control(PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attributes)) return true;
    const int why = errno;
    event.control(PERF_EVENT_IOC_DISABLE);  // it would watch what it did before
    errno = why;
    return false;
  }
  attributes.disabled = 1;
  if (!event.open(attributes, thread)) {
    return false;
  } else if (!event.write_into(clock)) {
    const int why = errno;
    event.close();
    errno = why;
    return false;
  }
  return event.control(PERF_EVENT_IOC_ENABLE);
}

inline void disarm(Event& event) noexcept {
  if (event.is_open()) event.control(PERF_EVENT_IOC_DISABLE);
}

}  // namespace loam::interposer::sharing
