// The thread that watches the others.
//   Loop     The clock of some thread runs out: its access is decoded (access.hpp); for a short window debug registers of all
//            other threads watch the word and three more words of its cache line; a trap means that another thread used the
//            line at the same time.  What was found goes to the log (log.hpp), and the lab makes figures of it.
//   Words    The word itself always, of the seven others three by chance: the log says which, so that shares can be scaled.
//   Kinds    Of an access that reads, writes by others count; of one that writes, reads count, too.
//   It allocates nothing and takes no lock of the program's.
//   Running  The log says how long the other threads ran in the window: where the machine has no processor for them, they
//            share nothing at that moment.
//   Cost     one sample per thread and period of its time; per watch, one window at most in which accesses to the line trap.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "access.hpp"
#include "blocks.hpp"
#include "events.hpp"
#include "log.hpp"
#include "maps.hpp"

namespace loam::interposer::sharing {

// How often a thread is sampled, by its own time, and how long a watch lasts.
struct Pace {
  // Not a multiple of any usual period, so that no part of a loop that a timer drives is met each time, or never.
  std::uint64_t period_ns = 9'970'000;
  std::uint64_t window_ns = 200'000;
};

class Monitor {
 public:
  static constexpr std::size_t kThreads = 256;
  static constexpr std::uint64_t kLookNs = 100'000'000;  // between looks for new threads, and at the mappings

  Monitor(Pace pace, Blocks& blocks, Sites& sites, Log& log, const std::atomic<std::uint64_t>& created) noexcept
      : pace_(pace), blocks_(blocks), sites_(sites), log_(log), created_(created) {}

  // Until the process ends.
  [[noreturn]] void run() noexcept {
    own_ = gettid();
    random_ = 0x9E3779B97F4A7C15 ^ static_cast<std::uint64_t>(own_) << 17 ^ now_ns();
    log_.say("begin %d %d %llu %llu\n", getpid(), getppid(), ull(pace_.period_ns), ull(pace_.window_ns));
    maps_.read(log_);
    for (;;) {
      look_for_threads();
      Sampled sampled;
      if (!wait(sampled)) continue;
      if (log_.full()) stop();
      watch(sampled);
    }
  }

  // relaxed, both: figures; nothing is ordered by them.
  std::uint64_t watches() const noexcept { return watches_.load(std::memory_order_relaxed); }
  std::uint64_t catches() const noexcept { return catches_.load(std::memory_order_relaxed); }

  // In a forked child, which has none of the threads.
  void forget() noexcept {
    for (std::size_t at = 0; at < count_; ++at) {
      threads_[at].clock.forget();
      for (Watchpoint& one : threads_[at].registers) one.event.forget();
    }
    count_ = 0;
    // Children of the same process must not all use what it has forgotten.
    looked_ns_ = mapped_ns_ = seen_created_ = 0;
    told_ = 0;
    for (std::uint64_t& word : said_) word = 0;
  }

 private:
  struct Watched {
    int thread = 0;
    Event clock;
    Watchpoint registers[kDebugRegisters];
    std::size_t usable = kDebugRegisters;  // fewer where the program, or a debugger, has some itself
    bool seen = false;
  };

  struct Sampled {
    std::size_t of = 0;
    Sample sample;
  };

  static unsigned long long ull(std::uint64_t value) noexcept { return value; }

  static std::uint64_t now_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
  }

  std::uint64_t chance(std::uint64_t below) noexcept {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return random_ % below;
  }

  // ---- threads

  void look_for_threads() noexcept {
    const std::uint64_t now = now_ns();
    // relaxed: a count that tells when to look; a look that comes too early is made again after kLookNs.
    const std::uint64_t created = created_.load(std::memory_order_relaxed);
    if (created == seen_created_ && now - looked_ns_ < kLookNs) return;
    seen_created_ = created, looked_ns_ = now;
    for (std::size_t at = 0; at < count_; ++at) threads_[at].seen = false;
    each_task([this](int thread) {
      for (std::size_t at = 0; at < count_; ++at)
        if (threads_[at].thread == thread) return static_cast<void>(threads_[at].seen = true);
      if (thread != own_) add(thread);
    });
    for (std::size_t at = count_; at-- > 0;)
      if (!threads_[at].seen) remove(at);
  }

  // Reads the folder itself: a stream of it would have to be allocated.
  template <typename Visit>
  static void each_task(Visit visit) noexcept {
    struct Entry {
      std::uint64_t inode, next;
      std::uint16_t bytes;
      std::uint8_t type;
      char name[1];
    };
    const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    alignas(Entry) char text[4096];
    for (long n; (n = syscall(SYS_getdents64, folder, text, sizeof text)) > 0;)
      for (long at = 0; at < n;) {
        const auto* entry = reinterpret_cast<const Entry*>(text + at);
        if (const int thread = std::atoi(entry->name); thread > 0) visit(thread);
        at += entry->bytes;
      }
    close(folder);
  }

  void add(int thread) noexcept {
    if (count_ == kThreads) return;
    Watched& made = threads_[count_];
    made = Watched{};
    made.thread = thread, made.seen = true;
    if (open_clock(made.clock, thread, pace_.period_ns)) {
      ++count_;
      log_.say("thread %d\n", thread);
    } else if (errno != ESRCH) {
      refused("clock", errno);
    }
  }

  void remove(std::size_t at) noexcept {
    threads_[at].clock.close();
    for (Watchpoint& one : threads_[at].registers) one.event.close();
    threads_[at] = threads_[--count_];
  }

  void refused(const char* what, int why) noexcept {
    if (++told_ <= 16) log_.say("refused %s %d\n", what, why);
  }

  // ---- samples

  // Waits for a sample; of several one by chance.
  bool wait(Sampled& into) noexcept {
    pollfd files[kThreads];
    for (std::size_t at = 0; at < count_; ++at) files[at] = {threads_[at].clock.file(), POLLIN, 0};
    const timespec limit{0, 20'000'000};
    if (ppoll(files, count_, &limit, nullptr) <= 0) return false;
    std::uint64_t samples = 0;
    for (std::size_t at = count_; at-- > 0;) {
      if (files[at].revents == 0) continue;
      Sample sample;
      if (threads_[at].clock.take(sample) != 0 && chance(++samples) == 0) into.of = at, into.sample = sample;
      if ((files[at].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) continue;
      // The thread has ended.  The last one takes its place, and the sample with it.
      if (samples != 0 && into.of == at) samples = 0;
      if (samples != 0 && into.of == count_ - 1) into.of = at;
      remove(at);
    }
    return samples != 0;
  }

  // ---- a watch

  struct Words {
    std::uintptr_t word[kDebugRegisters];
    std::size_t count;
  };

  // The word of an address, and others of its line by chance, so that each has the same.
  Words choose(std::uintptr_t address, std::size_t usable) noexcept {
    const std::uintptr_t line = address & ~std::uintptr_t{kLineBytes - 1}, own = address % kLineBytes / kWordBytes;
    Words chosen{{line + own * kWordBytes}, 1};
    std::uintptr_t others[kLineWords - 1];
    for (std::uintptr_t n = 0; n < kLineWords - 1; ++n) others[n] = (own + 1 + n) % kLineWords;
    for (std::size_t n = 0; chosen.count < usable; ++n) {
      const std::size_t pick = n + chance(kLineWords - 1 - n);
      const std::uintptr_t other = others[pick];
      others[pick] = others[n];
      chosen.word[chosen.count++] = line + other * kWordBytes;
    }
    return chosen;
  }

  void watch(const Sampled& sampled) noexcept {
    const int thread = threads_[sampled.of].thread;
    const Registers& registers = sampled.sample.registers;
    const Access access = registers.ip() == sampled.sample.ip ? decoder_.find(registers) : Access{};
    need(sampled.sample.ip);
    if (access.bytes == 0) return log_.say("unread %d %llx\n", thread, ull(sampled.sample.ip));
    std::size_t usable = kDebugRegisters, others = 0;
    for (std::size_t at = 0; at < count_; ++at)
      if (at != sampled.of && threads_[at].usable < usable) usable = threads_[at].usable;
    const Words words = choose(access.address, usable);
    for (std::size_t at = 0; at < count_ && usable != 0; ++at)
      if (at != sampled.of && arm(threads_[at], words, access.writes)) ++others;
    const std::uint64_t before = ran_ns(sampled.of);
    await_trap(sampled.of, words.count);
    const std::uint64_t ran = ran_ns(sampled.of) - before;
    for (std::size_t at = 0; at < count_; ++at)
      if (at != sampled.of)
        for (std::size_t n = 0; n < words.count; ++n) threads_[at].registers[n].disarm();
    unsigned mask = 0;
    for (std::size_t n = 0; n < words.count; ++n) mask |= 1U << words.word[n] % kLineBytes / kWordBytes;
    log_.say("watch %d %llx %llx %llx %zu %c %x %zu %llu\n", thread, ull(access.ip), ull(registers.sp()),
             ull(access.address), access.bytes, access.writes ? 'w' : 'r', mask, others, ull(ran));
    bool caught = false;
    for (std::size_t at = 0; at < count_; ++at)
      for (std::size_t n = 0; n < words.count && at != sampled.of; ++n)
        caught |= tell_trap(threads_[at], n, words.word[n]);
    if (caught) tell_block(access.address);
    watches_.fetch_add(1, std::memory_order_relaxed);
    catches_.fetch_add(caught ? 1 : 0, std::memory_order_relaxed);
  }

  // All other threads together.
  std::uint64_t ran_ns(std::size_t except) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < count_; ++at)
      if (at != except) sum += threads_[at].clock.count();
    return sum;
  }

  // Whether at least the word itself is watched in a thread.
  bool arm(Watched& one, const Words& words, bool reads) noexcept {
    for (std::size_t n = 0; n < words.count; ++n) {
      Watchpoint& watchpoint = one.registers[n];
      if (watchpoint.event.is_open()) drop(watchpoint.event);
      if (watchpoint.arm(one.thread, words.word[n], reads)) continue;
      if (errno == ESRCH) return false;
      one.usable = n;  // from the next watch on
      if (n == 0) refused("watchpoint", errno);
      return n != 0;
    }
    return true;
  }

  static void drop(Event& event) noexcept {
    Sample nothing;
    event.take(nothing);
  }

  // Until the first trap, or the end of the window.
  void await_trap(std::size_t except, std::size_t words) noexcept {
    std::size_t n = 0;
    for (std::size_t at = 0; at < count_; ++at)
      for (std::size_t word = 0; word < words && at != except; ++word)
        if (threads_[at].registers[word].event.is_open())
          trapping_[n++] = {threads_[at].registers[word].event.file(), POLLIN, 0};
    const timespec limit{static_cast<time_t>(pace_.window_ns / 1'000'000'000),
                         static_cast<long>(pace_.window_ns % 1'000'000'000)};
    ppoll(trapping_, n, &limit, nullptr);
  }

  bool tell_trap(Watched& one, std::size_t number, std::uintptr_t word) noexcept {
    Sample trap;
    if (!one.registers[number].event.is_open() || one.registers[number].event.take(trap) == 0) return false;
    need(trap.ip);
    log_.say("caught %d %llx %llx %llx\n", one.thread, ull(trap.ip), ull(trap.registers.sp()), ull(word));
    tell_block(word);
    return true;
  }

  void tell_block(std::uintptr_t address) noexcept {
    const Block block = blocks_.find(address);
    need(address);
    if (block.start == 0) return;
    tell_stack(block.site);
    log_.say("block %llx %llx %llu %llu %llu\n", ull(address), ull(block.start), ull(block.bytes), ull(block.thread),
             ull(block.site));
  }

  // Each stack once.
  void tell_stack(std::uint64_t site) noexcept {
    const Stack* stack = sites_.stack(site);
    if (stack == nullptr || (said_[site / 64] >> site % 64 & 1) != 0) return;
    said_[site / 64] |= std::uint64_t{1} << site % 64;
    char text[Log::kLineMax];
    int n = std::snprintf(text, sizeof text, "stack %llu", ull(site));
    for (std::size_t at = 0; at < stack->depth; ++at) {
      need(stack->callers[at]);
      n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), " %llx", ull(stack->callers[at]));
    }
    text[n++] = '\n';
    log_.add(text, static_cast<std::size_t>(n));
  }

  void need(std::uintptr_t address) noexcept {
    if (maps_.known(address)) return;
    const std::uint64_t now = now_ns();
    maps_.need(address, log_, now - mapped_ns_ >= kLookNs);
    if (now - mapped_ns_ >= kLookNs) mapped_ns_ = now;
  }

  // Nothing more can be written: the program goes on alone.
  [[noreturn]] void stop() noexcept {
    while (count_ != 0) remove(count_ - 1);
    for (;;) pause();
  }

  const Pace pace_;
  Blocks& blocks_;
  Sites& sites_;
  Log& log_;
  const std::atomic<std::uint64_t>& created_;
  Decoder decoder_;
  Maps maps_;
  Watched threads_[kThreads];
  std::size_t count_ = 0;
  pollfd trapping_[kThreads * kDebugRegisters];
  std::uint64_t said_[Sites::kStacks / 64 + 1] = {};
  std::uint64_t looked_ns_ = 0, mapped_ns_ = 0, seen_created_ = 0, random_ = 1, told_ = 0;
  int own_ = 0;
  std::atomic<std::uint64_t> watches_{0}, catches_{0};
};

}  // namespace loam::interposer::sharing
