#include "simulator/engine/explore.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/kernel.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/settings.hpp"

#include <new>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loam::simulator {
namespace {

// What a program prints on standard output, of which a search may have many.
struct Output {
  std::size_t bytes = 0;
  std::uint64_t times = 0;
  char text[4096];
};
constexpr std::size_t kOutputsMax = 64;
// Between the main stack and the arena (arena.hpp): whether executions are searched or one is repeated, the program's own
// mappings and its arguments lie where they do.
constexpr long kExploredStart = 0x6080'0000'0000, kOutputsStart = 0x6090'0000'0000, kPrefixesStart = 0x60A0'0000'0000;
// For prefixes. The kernel gives the pages when they are first used.
constexpr std::size_t kPrefixesBytes = std::size_t{1} << 32;
// Failed executions are few characters of schedule: departures, and what was free beside them.
constexpr std::size_t kScheduleBytes = 700;

// Zeroed pages at exactly this address.
void* map(long address, std::size_t bytes, int kind) {
  const long found = kernel(SYS_mmap, address, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                            kind | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (found != address) fail("LOAM_SIM_CHECK=exhaustive: the kernel gives no memory ({})", found);
  return reinterpret_cast<void*>(found);
}

class Explorer {
 public:
  Explorer()
      : explored_(new (map(kExploredStart, sizeof(Explored), MAP_SHARED)) Explored()),
        prefixes_(prefix_room(), settings.executions_max) {
    outputs_ = static_cast<Output*>(map(kOutputsStart, kOutputsMax * sizeof(Output), MAP_PRIVATE));
    printed_ = static_cast<int>(kernel(SYS_memfd_create, word_of("output"), 0));
    if (printed_ < 0) fail("LOAM_SIM_CHECK=exhaustive: the kernel gives no file in memory ({})", printed_);
  }

  // Returns in children alone.
  Explored& run() {
    begin();
    do {
      if (all_ == settings.executions_max || prefixes_.full()) stop("stopped");
      explored_->grew = false;
      if (is_child()) return *explored_;
    } while (goes_on());
    stop(explored_->search.whole() ? "whole" : "bounded");
  }

 private:
  // Only the process that searches has these pages.
  static std::span<Choice> prefix_room() {
    void* const start = map(kPrefixesStart, kPrefixesBytes, MAP_PRIVATE | MAP_NORESERVE);
    kernel(SYS_madvise, kPrefixesStart, kPrefixesBytes, MADV_DONTFORK);
    return {static_cast<Choice*>(start), kPrefixesBytes / sizeof(Choice)};
  }

  void begin() {
    executions_ = 0;
    kinds_ = 0;
    prefixes_.clear();
    explored_->search.begin(settings.bound);
  }

  // Whether there is another execution.
  bool goes_on() {
    if (!explored_->grew) return explored_->search.next(prefixes_);
    begin();  // X1
    return true;
  }

  // One execution: the parent returns false when it is over and has not failed.
  bool is_child() {
    kernel(SYS_ftruncate, printed_, 0);
    kernel(SYS_lseek, printed_, 0, SEEK_SET);
    ++all_;
    const pid_t child = LOAM_REAL(fork)();
    if (child < 0) fail("LOAM_SIM_CHECK=exhaustive: fork failed; the system allows no more processes");
    if (child == 0) {
      kernel(SYS_dup2, printed_, STDOUT_FILENO);
      return true;
    }
    int status = 0;
    while (kernel(SYS_wait4, child, word_of(&status), 0, 0) != child) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) failed(status);
    ++executions_;
    note_output();
    return false;
  }

  void note_output() {
    Output found;
    const long bytes = kernel(SYS_pread64, printed_, word_of(found.text), sizeof found.text, 0);
    found.bytes = bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
    for (Output& known : std::span(outputs_, kinds_))
      if (std::string_view(known.text, known.bytes) == std::string_view(found.text, found.bytes)) {
        ++known.times;
        return;
      }
    if (kinds_ == kOutputsMax) return;
    found.times = 1;
    outputs_[kinds_++] = found;
  }

  // The child has said what happened, unless a signal ended it.
  [[noreturn]] void failed(int status) {
    char text[kScheduleBytes], buffer[512];
    for (long at = 0, bytes = 0; (bytes = kernel(SYS_pread64, printed_, word_of(buffer), sizeof buffer, at)) > 0;
         at += bytes)
      kernel(SYS_write, STDOUT_FILENO, word_of(buffer), bytes);
    if (WIFSIGNALED(status))
      say("a signal ended the program ({}); repeat with LOAM_SIM_CHECK=exhaustive LOAM_SIM_SCHEDULE=\"{}\"",
          WTERMSIG(status), explored_->search.text(text));
    say("found in execution {}, with {} departures", all_, explored_->search.departures());
    for (;;) kernel(SYS_exit_group, WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed);
  }

  [[noreturn]] void stop(std::string_view why) {
    if (why == "whole")
      say("explored {} executions: every one of this program", executions_);
    else if (why == "bounded")
      say("explored {} executions: every one with at most {} departures (LOAM_SIM_BOUND)", executions_, settings.bound);
    else
      say("stopped after {} executions ({}): every one with fewer than {} departures, and some more", all_,
          prefixes_.full() ? "no room to note more of them" : "LOAM_SIM_EXECUTIONS_MAX", explored_->search.level());
    if (all_ != executions_ && why != "stopped")
      say("{} more ran before it was known which atomics threads share", all_ - executions_);
    for (const Output& one : std::span(outputs_, kinds_)) {
      std::string_view text(one.text, one.bytes);
      kernel(SYS_write, STDOUT_FILENO, word_of(text.data()), static_cast<long>(text.size()));
      while (text.ends_with('\n')) text.remove_suffix(1);
      say("{} times it printed: {}", one.times, text);
    }
    if (kinds_ == kOutputsMax) say("it may have printed other texts; the first {} were kept", kOutputsMax);
    for (;;) kernel(SYS_exit_group, 0);
  }

  Explored* const explored_;
  Prefixes prefixes_;
  Output* outputs_ = nullptr;
  int printed_ = -1;
  std::size_t kinds_ = 0;
  std::uint64_t executions_ = 0, all_ = 0;  // since the search began anew (X1); in all
};

}  // namespace

Explored& explore() {
  if (settings.schedule == nullptr) return Explorer().run();
  Explored& one = *new (map(kExploredStart, sizeof(Explored), MAP_PRIVATE)) Explored();
  if (!one.search.follow(settings.schedule))
    fail("LOAM_SIM_SCHEDULE={}: must be PLACE:WAY,PLACE:WAY,... with places that grow, as a failure prints it",
         settings.schedule);
  return one;
}

}  // namespace loam::simulator
