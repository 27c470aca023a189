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

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "access.hpp"
#include "blocks.hpp"
#include "callers.hpp"
#include "log.hpp"
#include "maps.hpp"
#include "threads.hpp"

namespace loam::interposer::sharing {

// How often a thread is sampled, by its own time, and how long a watch lasts.
struct Pace {
  // Not a multiple of any usual period, so that no part of a loop that a timer drives is met each time, or never.
  std::uint64_t period_ns = 9'970'000;
  std::uint64_t window_ns = 200'000;
};

class Monitor {
 public:
  static constexpr std::uint64_t kLookNs = 100'000'000;  // between looks for new threads, and at the mappings

  Monitor(Pace pace, Blocks& blocks, Sites& sites, Log& log, const std::atomic<std::uint64_t>& created) noexcept
      : pace_(pace), blocks_(blocks), sites_(sites), log_(log), created_(created) {}

  // Until the process ends.
  [[noreturn]] void run() noexcept {
    own_ = gettid();
    random_ = Random(now_ns() << 20 ^ static_cast<std::uint64_t>(own_));
    log_.say("begin %d %d %llu %llu\n", getpid(), getppid(), ull(pace_.period_ns), ull(pace_.window_ns));
    maps_.read(log_);
    for (;;) {
      look_for_threads();
      log_.publish();
      Sampled sampled;
      if (!wait(sampled)) continue;
      if (log_.full()) stop();
      watch(sampled);
    }
  }

  // relaxed, both: figures; nothing is ordered by them.
  std::uint64_t watches() const noexcept { return watches_.load(std::memory_order_relaxed); }
  std::uint64_t catches() const noexcept { return catches_.load(std::memory_order_relaxed); }

  // In a forked child.
  void forget() noexcept { threads_.forget(); }

 private:
  struct Sampled {
    std::size_t of = 0;
    Sample sample;
  };

  // Words of a line that are watched, the sampled one first.
  struct Words {
    std::uintptr_t word[kDebugRegisters];
    std::size_t count;
  };

  struct Trap {
    int thread;
    Sample sample;
  };

  static unsigned long long ull(std::uint64_t value) noexcept { return value; }

  static std::uint64_t now_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
  }

  static timespec time_of(std::uint64_t ns) noexcept {
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  }

  void look_for_threads() noexcept {
    const std::uint64_t now = now_ns();
    // relaxed: a count that tells when to look; a look that comes too early is made again after kLookNs.
    const std::uint64_t created = created_.load(std::memory_order_relaxed);
    if (created == seen_created_ && now - looked_ns_ < kLookNs) return;
    seen_created_ = created, looked_ns_ = now;
    threads_.look(own_, pace_.period_ns, random_, log_);
  }

  // Waits for a sample; of several one by chance.
  bool wait(Sampled& into) noexcept {
    for (std::size_t at = 0; at < threads_.watched(); ++at) files_[at] = {threads_[at].clock.file(), POLLIN, 0};
    const timespec limit = time_of(20'000'000);
    if (ppoll(files_, threads_.watched(), &limit, nullptr) <= 0) return false;
    std::uint64_t samples = 0;
    for (std::size_t at = threads_.watched(); at-- > 0;) {
      if (files_[at].revents == 0) continue;
      bool one = false;
      Sample last;
      threads_[at].ring.take([&](const Sample& sample) {
        if (sample.address == 0) last = sample, one = true;  // a trap that came after its watch is nobody's
      });
      if (one && random_.below(++samples) == 0) into.of = at, into.sample = last;
      if ((files_[at].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) continue;
      // The thread has ended: its sample goes with it.  The last one takes its place.
      if (samples != 0 && into.of == at) samples = 0;
      if (samples != 0 && into.of == threads_.watched() - 1) into.of = at;
      threads_.remove(at);
    }
    return samples != 0;
  }

  void watch(const Sampled& sampled) noexcept {
    const int thread = threads_[sampled.of].thread;
    const Registers& registers = sampled.sample.registers;
    const Access access = registers.ip() == sampled.sample.ip ? decoder_.find(registers) : Access{};
    if (access.bytes == 0) return log_.say("unread %d %llx\n", thread, ull(sampled.sample.ip));
    const Words words = choose(access.address, usable(sampled.of));
    std::size_t others = 0;
    for (std::size_t at = 0; at < threads_.watched(); ++at)
      if (at != sampled.of && arm_all(threads_[at], words, access.writes)) ++others;
    const std::uint64_t before = ran_ns(sampled.of);
    traps_ = 0;
    await_trap(sampled.of);
    const std::uint64_t ran = ran_ns(sampled.of) - before;
    for (std::size_t at = 0; at < threads_.watched(); ++at)
      if (at != sampled.of)
        for (Event& one : threads_[at].registers) disarm(one);
    for (std::size_t at = 0; at < threads_.watched(); ++at)
      if (at != sampled.of) take_traps(at);
    log_watch(thread, access, sampled.sample, words, others, ran);
  }

  // The fewest debug registers that any other thread has for us.
  std::size_t usable(std::size_t except) noexcept {
    std::size_t fewest = kDebugRegisters;
    for (std::size_t at = 0; at < threads_.watched(); ++at)
      if (at != except && threads_[at].usable != 0 && threads_[at].usable < fewest) fewest = threads_[at].usable;
    return fewest;
  }

  // The word of an address, and others of its line by chance, so that each has the same.
  Words choose(std::uintptr_t address, std::size_t count) noexcept {
    const std::uintptr_t line = address & ~std::uintptr_t{kLineBytes - 1}, own = address % kLineBytes / kWordBytes;
    Words chosen{{line + own * kWordBytes}, 1};
    std::uintptr_t others[kLineWords - 1];
    for (std::uintptr_t n = 0; n < kLineWords - 1; ++n) others[n] = (own + 1 + n) % kLineWords;
    for (std::size_t n = 0; chosen.count < count; ++n) {
      const std::size_t pick = n + random_.below(kLineWords - 1 - n);
      const std::uintptr_t other = others[pick];
      others[pick] = others[n];
      chosen.word[chosen.count++] = line + other * kWordBytes;
    }
    return chosen;
  }

  // Whether at least the word itself is watched in a thread.
  bool arm_all(Watched& one, const Words& words, bool reads) noexcept {
    if (one.usable == 0) return false;
    for (std::size_t n = 0; n < words.count; ++n) {
      log_.asking(true);
      const bool armed = arm(one.registers[n], one.clock, one.thread, words.word[n], reads);
      log_.asking(false);
      if (armed) continue;
      if (errno == ESRCH) return false;
      one.usable = n;  // from the next watch on
      if (n == 0) threads_.refused("watchpoint", errno, log_);
      return n != 0;
    }
    return true;
  }

  // All other threads together.
  std::uint64_t ran_ns(std::size_t except) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < threads_.watched(); ++at)
      if (at != except) sum += threads_[at].clock.count();
    return sum;
  }

  // Until the first trap, or the end of the window.
  void await_trap(std::size_t except) noexcept {
    std::size_t n = 0;
    for (std::size_t at = 0; at < threads_.watched(); ++at)
      if (at != except) of_file_[n] = at, files_[n++] = {threads_[at].clock.file(), POLLIN, 0};
    const std::uint64_t end = now_ns() + pace_.window_ns;
    for (std::uint64_t now = now_ns(); now < end && traps_ == 0; now = now_ns()) {
      const timespec left = time_of(end - now);
      if (ppoll(files_, n, &left, nullptr) <= 0) return;
      for (std::size_t file = 0; file < n; ++file) {
        if ((files_[file].revents & POLLIN) != 0) take_traps(of_file_[file]);
        if ((files_[file].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) files_[file].fd = -1;  // it has ended
      }
    }
  }

  // The first of each thread and word.
  void take_traps(std::size_t at) noexcept {
    Watched& one = threads_[at];
    one.ring.take([&](const Sample& sample) {
      if (sample.address == 0 || traps_ == kTraps) return;
      for (std::size_t n = 0; n < traps_; ++n)
        if (trap_[n].thread == one.thread && trap_[n].sample.address == sample.address) return;
      trap_[traps_++] = {one.thread, sample};
    });
  }

  void log_watch(int thread, const Access& access, const Sample& sample, const Words& words, std::size_t others,
                 std::uint64_t ran) noexcept {
    unsigned mask = 0;
    for (std::size_t n = 0; n < words.count; ++n) mask |= 1U << words.word[n] % kLineBytes / kWordBytes;
    log_.say("watch %d %llx %llx %llx %zu %c %x %zu %zu %llu\n", thread, ull(access.ip), ull(sample.registers.sp()),
             ull(access.address), access.bytes, access.writes ? 'w' : 'r', mask, others,
             threads_.all() - (threads_.all() != 0 ? 1 : 0), ull(ran));
    for (std::size_t n = 0; n < traps_; ++n) {
      const Sample& trap = trap_[n].sample;
      need(trap.ip);
      log_.say("caught %d %llx %llx %llx\n", trap_[n].thread, ull(trap.ip), ull(trap.registers.sp()),
               ull(trap.address));
      log_callers(trap.ip, trap);
      log_block(trap.address);
    }
    if (traps_ != 0) need(access.ip), log_callers(access.ip, sample), log_block(access.address);
    watches_.fetch_add(1, std::memory_order_relaxed);
    catches_.fetch_add(traps_ != 0 ? 1 : 0, std::memory_order_relaxed);
  }

  void log_callers(std::uintptr_t ip, const Sample& sample) noexcept {
    const Callers callers(sample.stack, sample.words, maps_);
    if (callers.count == 0) return;
    char text[Log::kLineMax];
    int n = std::snprintf(text, sizeof text, "callers %llx", ull(ip));
    for (std::size_t at = 0; at < callers.count; ++at)
      n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), " %llx", ull(callers.address[at]));
    text[n++] = '\n';
    log_.add(text, static_cast<std::size_t>(n));
  }

  void log_block(std::uintptr_t address) noexcept {
    const Block block = blocks_.find(address);
    need(address);
    if (block.start == 0) return;
    log_stack(block.site);
    log_.say("block %llx %llx %llu %llu %llu\n", ull(address), ull(block.start), ull(block.bytes), ull(block.thread),
             ull(block.site));
  }

  // Each stack once.
  void log_stack(std::uint64_t site) noexcept {
    const Stack* stack = sites_.stack(site);
    if (stack == nullptr || (logged_stacks_[site / 64] >> site % 64 & 1) != 0) return;
    logged_stacks_[site / 64] |= std::uint64_t{1} << site % 64;
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
    if (now - mapped_ns_ < kLookNs) return;
    mapped_ns_ = now;
    maps_.read(log_);
  }

  // Nothing more can be written: the program goes on alone.
  [[noreturn]] void stop() noexcept {
    log_.publish();
    while (threads_.watched() != 0) threads_.remove(threads_.watched() - 1);
    for (;;) pause();
  }

  static constexpr std::size_t kTraps = 64;

  const Pace pace_;
  Blocks& blocks_;
  Sites& sites_;
  Log& log_;
  const std::atomic<std::uint64_t>& created_;
  Decoder decoder_;
  Maps maps_;
  Threads threads_;
  Random random_{1};
  pollfd files_[Threads::kMost];
  std::size_t of_file_[Threads::kMost];
  Trap trap_[kTraps];
  std::size_t traps_ = 0;
  std::uint64_t logged_stacks_[Sites::kStacks / 64 + 1] = {};
  std::uint64_t looked_ns_ = 0, mapped_ns_ = 0, seen_created_ = 0;
  int own_ = 0;
  std::atomic<std::uint64_t> watches_{0}, catches_{0};
};

}  // namespace loam::interposer::sharing
