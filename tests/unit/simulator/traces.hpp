// A model driven by hand: each core with its clock, accesses by name.
#pragma once

#include "simulator/model/model.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loam::simulator {

inline Machine machine_of(std::string_view text) {
  Machine machine;
  char buffer[512];
  const auto problem = parse_machine(text, machine, buffer);
  EXPECT_EQ(problem, "") << text;
  return machine;
}

// Four cores, two to a group, one group to a node; every time is a number of its own, so a sum tells what it is made of.
inline constexpr std::string_view kSmall =
    "name=small;cores=4;nodes=2;l1.bytes=32768;l1.ways=8;l1.cycles=3;"
    "l2.bytes=262144;l2.ways=8;l2.shared_by=2;l2.cycles=14;l3.bytes=2097152;l3.ways=16;l3.cycles=40;"
    "transfer.cycles=25,60,170;invalidate.cycles=20,50,150;memory.cycles=200,310;";

class Trace {
 public:
  explicit Trace(std::string_view text) : model(machine_of(text)), clocks(model.machine().cores) {}

  // One access, after whatever its core did before. returns its cycles
  std::uint64_t read(unsigned core, std::uintptr_t address, unsigned bytes = 8) {
    return access(core, address, bytes, Access::Kind::read);
  }
  std::uint64_t write(unsigned core, std::uintptr_t address, unsigned bytes = 8) {
    return access(core, address, bytes, Access::Kind::write);
  }
  std::uint64_t atomic(unsigned core, std::uintptr_t address, unsigned bytes = 8) {
    return access(core, address, bytes, Access::Kind::atomic);
  }
  std::uint64_t access(unsigned core, std::uintptr_t address, unsigned bytes, Access::Kind kind) {
    const std::uint64_t before = clocks[core];
    do once(core, address, kind, bytes);
    while (last.again);
    return clocks[core] - before;
  }
  // Without a second try, if the core has to wait first.
  Outcome once(unsigned core, std::uintptr_t address, Access::Kind kind, unsigned bytes = 8) {
    last = model.access({core, address, bytes, kind, clocks[core], 0x4000 + core});
    clocks[core] += last.cycles;
    return last;
  }

  void begin(unsigned core) { clocks[core] += model.begin_transaction(core, clocks[core]); }
  Outcome commit(unsigned core) {
    last = model.commit_transaction(core, clocks[core]);
    clocks[core] += last.cycles;
    return last;
  }

  // All cores wait for the latest.
  void meet() {
    std::uint64_t latest = 0;
    for (const std::uint64_t each : clocks) latest = std::max(latest, each);
    for (std::uint64_t& each : clocks) each = latest;
  }

  Model model;
  std::vector<std::uint64_t> clocks;
  Outcome last;
};

inline constexpr std::uintptr_t kBase = 0x10000000;  // the beginning of a page

}  // namespace loam::simulator
