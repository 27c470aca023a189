#include "simulator/engine/the_machine.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/random.hpp"
#include "simulator/engine/settings.hpp"

namespace loam::simulator {
namespace {

Machine read() {
  Machine machine;
  char buffer[512];
  if (const auto problem = parse_machine(settings.machine, machine, buffer); !problem.empty())
    fail("LOAM_SIM_MACHINE: {}", problem);
  if (machine.interrupt_every_cycles != 0)
    machine.interrupt_phase = seeded("interrupts") % machine.interrupt_every_cycles;
  return machine;
}

}  // namespace

const Machine& the_machine() {
  static const Machine machine = read();
  return machine;
}

bool counts_blocks() {
#ifdef LOAM_BLOCK_COSTS
  return the_machine().costs == Costs::blocks;
#else
  return false;
#endif
}

std::uint64_t ns_of(std::uint64_t cycles) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{cycles} * 1000 / the_machine().megahertz);
}

std::uint64_t cycles_of(std::uint64_t ns) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide cycles = Wide{ns} * the_machine().megahertz / 1000;
  return cycles > ~std::uint64_t{0} ? ~std::uint64_t{0} : static_cast<std::uint64_t>(cycles);
}

}  // namespace loam::simulator
