// Measures how many accesses the model handles per second of processor time: a mixed kernel on N cores, with an
// adaptive quantum as in the engine. Per iteration: 6 accesses to 64 KiB of the core's own, a tenth of a read and a
// write to 1 MiB that all share, a hundredth of an increment of one counter.
//
//   loam-simulator-speed [MACHINE-TEXT-FILE [MILLIONS]]    a machine as the lab renders it; default: 8 cores, 20 million
#include "simulator/model/model.hpp"

#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <queue>
#include <string>
#include <vector>

namespace {

using namespace loam::simulator;

constexpr const char* kDefault =
    "name=default;cores=8;nodes=2;l1.bytes=32768;l1.ways=8;l1.cycles=3;l2.bytes=262144;l2.ways=8;l2.cycles=12;"
    "l3.bytes=8388608;l3.ways=16;l3.cycles=35;transfer.cycles=30,70,220;invalidate.cycles=20,50,180;memory.cycles=190,"
    "310;"
    "memory.bytes_per_cycle=16;link.bytes_per_cycle=8;tlb.entries=64;tlb.ways=4;tlb2.entries=512;tlb2.ways=4;tlb2."
    "cycles=7;"
    "tlb.walk_cycles=30;atomic.cycles=18;store_buffer.entries=32";

struct Thread {
  std::uint64_t clock = 0;
  std::uint64_t random = 0;
  std::uint64_t index = 0;
  unsigned step = 0;
  std::uint64_t draw = 0;
};

constexpr std::uintptr_t kOwn = 0x10'0000'0000, kShared = 0x20'0000'0000, kCounter = 0x30'0000'0000;

// The next access of a thread.
Access next(Thread& thread, unsigned core) {
  if (thread.step == 0) {
    thread.random ^= thread.random << 13;
    thread.random ^= thread.random >> 7;
    thread.random ^= thread.random << 17;
    thread.draw = thread.random;
    ++thread.index;
  }
  const std::uint64_t r = thread.draw, i = thread.index;
  const std::uintptr_t own = kOwn + core * std::uintptr_t{65536};
  using enum Access::Kind;
  Access made{core, own, 8, read, thread.clock, thread.step};
  switch (thread.step++) {
    case 0:
      made.address += (r & 8191) * 8;
      break;
    case 1:
      made.address += (r >> 13 & 2047) * 8;
      break;
    case 2:
      made.address += (r >> 26 & 1023) * 8;
      made.kind = write;
      break;
    case 3:
      made.address += (i & 1023) * 8;
      break;
    case 4:
      made.address += ((i + 1) & 1023) * 8;
      break;
    case 5:
      made.address += (i & 1023) * 8;
      made.kind = write;
      if ((r >> 40) % 10 != 0) thread.step = (r >> 32) % 100 == 0 ? 8 : 0;
      break;
    case 6:
      made.address = kShared + (r >> 45 & 131071) * 8;
      break;
    case 7:
      made.address = kShared + (r >> 45 & 131071) * 8;
      made.kind = write;
      thread.step = (r >> 32) % 100 == 0 ? 8 : 0;
      break;
    default:
      made.address = kCounter;
      made.kind = atomic;
      thread.step = 0;
  }
  return made;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string text_of(const char* file) {
  std::ifstream in(file);
  if (!in) {
    std::cerr << "error: " << file << ": cannot be read\n";
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

void run(Model& model, std::uint64_t wanted) {
  const unsigned cores = model.machine().cores;
  std::vector<Thread> threads(cores);
  using Entry = std::pair<std::uint64_t, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> waiting;
  for (unsigned core = 0; core < cores; ++core) {
    threads[core].random = 88172645463325252u + core * 7919;
    waiting.emplace(0, core);
  }
  std::uint64_t done = 0, turns = 0;
  const double begun = processor_seconds();
  while (done < wanted) {
    const unsigned core = waiting.top().second;
    waiting.pop();
    Thread& thread = threads[core];
    const std::uint64_t others = waiting.empty() ? thread.clock + (1 << 20) : waiting.top().first;
    const std::uint64_t limit = others + model.machine().quantum_cycles;
    ++turns;
    while (true) {
      const Thread before = thread;
      const Access access = next(thread, core);
      Outcome outcome;
      if (thread.clock <= others) {
        outcome = model.access(access);
      } else if (!model.access_unless_hot(access, outcome)) {
        thread = before;
        break;
      }
      if (outcome.again) thread = before;
      thread.clock += outcome.cycles;
      if (!outcome.again) ++done;
      if (done == wanted || thread.clock > limit) break;
    }
    waiting.emplace(thread.clock, core);
  }
  const double seconds = processor_seconds() - begun;
  const Counts all = model.total();
  const auto share = [&](std::uint64_t count) { return static_cast<double>(count) / static_cast<double>(done) * 100; };
  std::cout << model.machine().name << ": " << cores << " cores, " << static_cast<double>(done) / seconds / 1e6
            << " million accesses per second of processor time\n"
            << "  misses " << share(all.misses) << " %, true sharing " << share(all.true_sharing)
            << " %, false sharing " << share(all.false_sharing) << " %, upgrades " << share(all.upgrades)
            << " %, accesses per turn " << static_cast<double>(done) / static_cast<double>(turns) << ", model's memory "
            << (model.memory_bytes() >> 20) << " MiB\n";
}

}  // namespace

int main(int count, char** arguments) {
  const std::string text = count > 1 ? text_of(arguments[1]) : kDefault;
  const std::uint64_t wanted = (count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 20) * 1'000'000;
  Machine machine;
  char buffer[512];
  if (const auto problem = parse_machine(text, machine, buffer); !problem.empty()) {
    std::cerr << "error: " << problem << "\n";
    return 2;
  }
  Model model(machine);
  run(model, wanted);
}
