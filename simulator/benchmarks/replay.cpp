// Replays the accesses of one core that valgrind's lackey wrote (--trace-mem=yes) and prints the model's counts.
//
//   loam-simulator-replay MACHINE-TEXT-FILE < TRACE
//   lines " L address,bytes", " S ..." and " M ..." (a read and a write) are accesses, all others are passed over
#include "simulator/model/model.hpp"

#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

namespace {

using namespace loam::simulator;

// Reads one line. returns whether it is an access
bool parse(const std::string& line, Access& access) {
  if (line.size() < 6 || line[0] != ' ') return false;
  const char* const end = line.data() + line.size();
  const auto [comma, problem] = std::from_chars(line.data() + 3, end, access.address, 16);
  if (problem != std::errc{} || comma == end || *comma != ',') return false;
  return std::from_chars(comma + 1, end, access.bytes).ec == std::errc{};
}

}  // namespace

int main(int count, char** arguments) {
  std::ifstream in(count == 2 ? arguments[1] : "");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Machine machine;
  char buffer[512];
  if (const auto problem = parse_machine(text, machine, buffer); !problem.empty()) {
    std::cerr << "error: " << problem << "\n";
    return 2;
  }
  Model model(machine);
  std::string line;
  Access access{};
  while (std::getline(std::cin, line)) {
    if (!parse(line, access)) continue;
    using enum Access::Kind;
    for (const auto kind : {read, write}) {
      if (line[1] == (kind == read ? 'S' : 'L')) continue;
      access.kind = kind;
      access.now += model.access(access).cycles;
    }
  }
  const Counts counts = model.total();
  std::cout << "{\"reads\": " << counts.reads << ", \"writes\": " << counts.writes << ", \"misses\": " << counts.misses
            << ", \"cold\": " << counts.cold << ", \"cycles\": " << access.now << "}\n";
}
