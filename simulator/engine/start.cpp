// Starts a simulated process: switches address randomisation off, sets the usual limit of stacks, and runs main() on a
// stack at a fixed address with copies of its arguments. So the lengths of arguments and environment change no address.
#include "simulator/engine/start.hpp"

#include "simulator/engine/access.hpp"
#include "simulator/engine/arena.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/explore.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/fiber.hpp"
#include "simulator/engine/kernel.hpp"
#include "simulator/engine/random.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/statistics.hpp"
#include "simulator/engine/the_machine.hpp"
#include "simulator/engine/watchdog.hpp"
#include "simulator/hooks/exported.hpp"

#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <cstdlib>
#include <cstring>

extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                                 void (*fini)(), void (*loader_fini)(), void* stack_end);

namespace loam::simulator {
namespace {

constexpr rlim_t kStackLimit = 8 << 20;
// What a block of pages before the program's own may hold: moves all that is mapped later by whole pages.
constexpr std::uint64_t kOffsetPagesMax = 64;

bool vary = false;
bool begun = false;

// Begins again where randomisation can be switched off; not a second time where it cannot.
void fix_addresses(char** argv, char** environment) {
  const long found = kernel(SYS_personality, 0xffffffff);
  rlimit limit{};
  kernel(SYS_prlimit64, 0, RLIMIT_STACK, 0, word_of(&limit));
  const bool randomised = (found & ADDR_NO_RANDOMIZE) == 0, other_stacks = limit.rlim_cur != kStackLimit;
  if (!randomised && !other_stacks) return;
  limit.rlim_cur = kStackLimit;
  if (limit.rlim_max >= kStackLimit) kernel(SYS_prlimit64, 0, RLIMIT_STACK, word_of(&limit), 0);
  vary = randomised && kernel(SYS_personality, found | ADDR_NO_RANDOMIZE) < 0;
  if (vary) {
    say("this system does not let address randomisation be switched off; results vary a little between runs");
    return;
  }
  char path[4096];
  const long length = kernel(SYS_readlink, word_of("/proc/self/exe"), word_of(path), sizeof path - 1);
  if (length <= 0) fail("/proc/self/exe: cannot be read; mount /proc");
  path[length] = '\0';
  // The flag that a set-user-ID program would lose, or a filter forbids, is looked at once more by the new image.
  if (kernel(SYS_personality, 0xffffffff) & ADDR_NO_RANDOMIZE)
    kernel(SYS_execve, word_of(path), word_of(argv), word_of(environment));
}

// The heap of brk(2), which glibc's allocator uses, begins so far into a page; nobody has asked for its place yet.
void shift_heap() {
  const long found = kernel(SYS_brk, 0);
  kernel(SYS_brk, found + static_cast<long>(seeded_offset("heap")));
}

// Before all other constructors (-z initfirst), even libc's: an allocator begins in the second image alone.
[[gnu::constructor]] void start(int, char** argv, char** environment) {
  read_settings(environment);
  if (settings.machine == nullptr) return;
  fix_addresses(argv, environment);
  shift_heap();
}

int (*program)(int, char**, char**) = nullptr;
int argument_count = 0;
char** arguments = nullptr;
char** environment_words = nullptr;
Thread main_thread;

// Of the program's arguments, at an address that does not depend on the environment.
char** copied(char** words, int count) {
  auto** const copies = static_cast<char**>(take((static_cast<std::size_t>(count) + 1) * sizeof(char*)));
  for (int i = 0; i < count; ++i) {
    const std::size_t bytes = std::strlen(words[i]) + 1;
    copies[i] = static_cast<char*>(take(bytes));
    std::memcpy(copies[i], words[i], bytes);
  }
  copies[count] = nullptr;
  return copies;
}

void end_simulation() {
  write_statistics();
  now.thread = nullptr;
}

void run_program() { std::exit(program(argument_count, arguments, environment_words)); }

int begin(int count, char** words, char** environment) {
  if (settings.machine == nullptr) return program(count, words, environment);
  begun = true;
  const Machine& machine = the_machine();
  model = new Model(machine);
  if (settings.line_times_ns != 0) line_times = new LineTimes(settings.line_times_ns * machine.megahertz / 1000);
  if (counts_blocks()) {
    instruction_milli = machine.instruction_cycles_milli;
    loam_simulator_instructions = 0;
  } else {
    access_cycles = machine.access_cycles;
  }
  uses_transactions = machine.transactions != Transactions::none && settings.check == Check::none;
  if (settings.check != Check::none) {
    checker = new Checker(settings.check == Check::exhaustive ? &explore() : nullptr);
    on_exit([](int status, void*) { checker->ended(status); }, nullptr);
  }
  if (machine.transactions == Transactions::committer_wins)
    fail(
        "machine {}: transactions.policy=committer-wins is in the model only; the engine stores at once, which needs "
        "requester-wins",
        std::string_view(machine.name));
  argument_count = count;
  arguments = copied(words, count);
  environment_words = environment;
  kernel(SYS_mmap, 0, static_cast<long>((1 + seeded("pages") % kOffsetPagesMax) * 4096), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  start_watchdog();
  std::atexit(end_simulation);
  for (unsigned i = 0; i < machine.cores; ++i) CPU_SET(i, &main_thread.allowed);
  threads[thread_count++] = &main_thread;
  main_thread.handle = pthread_self();
  scheduler.start(machine, settings.check != Check::none ? 0 : settings.quantum.value_or(machine.quantum_cycles),
                  main_thread);
  run_main_on_own_stack(main_thread, run_program);
}

}  // namespace

bool starting() noexcept { return settings.machine != nullptr && !begun; }
bool addresses_vary() noexcept { return vary; }

}  // namespace loam::simulator

LOAM_EXPORTED int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                                    void (*fini)(), void (*loader_fini)(), void* stack_end) {
  loam::simulator::program = main;
  return LOAM_REAL(__libc_start_main)(loam::simulator::begin, argc, argv, init, fini, loader_fini, stack_end);
}
