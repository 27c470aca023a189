// The processors of this machine, read from sysfs, in the order in which threads are placed on them.
//   Topology order: one hardware thread of each core first, package by package, then the cores' second hardware
//   threads: n threads share no core while n cores are free. Only processors that the process may use are listed. No
//   allocation: reading the topology must not move the first blocks of the allocator under study.
// Where sysfs lacks the topology (some containers), each processor counts as a core of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::platform {

inline constexpr unsigned kCpusMax = 1024;  // what cpu_set_t holds

struct Cpu {
  std::uint32_t number = 0;   // the kernel's
  std::uint32_t package = 0;  // socket
  std::uint32_t core = 0;     // unique within its package
  std::uint32_t sibling = 0;  // rank among the hardware threads of its core: 0 = first
};

class Topology {
 public:
  std::span<const Cpu> cpus() const noexcept { return {cpus_.data(), count_}; }
  bool contains(unsigned number) const noexcept;

  // T1 cpus() is sorted by (sibling, package, core, number).
  // sysfs: the folder that holds cpu0, cpu1, ...; allowed: processors to list, in any order.
  void read(const char* sysfs, std::span<const unsigned> allowed) noexcept;

 private:
  std::array<Cpu, kCpusMax> cpus_;
  unsigned count_ = 0;
};

// The processors that this process may use, read once. Thread-safe.
const Topology& topology() noexcept;

// Parses a list such as "0,2-5" into `out`.
// returns how many numbers it holds; -1 if it is malformed, empty, has a number >= kCpusMax or more than out.size()
int parse_cpu_list(std::string_view text, std::span<unsigned> out) noexcept;

}  // namespace loam::platform
