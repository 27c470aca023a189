// espresso: minimises two-level logic, in the classic PLA format, as the program of that name does.
//   espresso < FILE      prints the smaller cover, and fails where it is not the same function
//   Source Brayton, Hachtel, McMullen, Sangiovanni-Vincentelli, "Logic Minimization Algorithms for VLSI Synthesis", 1984:
//   expand against the off-set, drop what is redundant, reduce, until nothing gets smaller; complement and tautology by
//   splitting at the most binate variable.  The code is ours.  Each output is minimised for itself.
//   Every cube is a block of its own, every cover a list of them: many small blocks that live for a short time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

// One character for each input: '0', '1', or '-' for both.
struct Cube {
  std::string inputs;
};
using Pointer = std::unique_ptr<Cube>;
using Cover = std::vector<Pointer>;

Pointer copy(const Cube& cube) { return std::make_unique<Cube>(cube); }

Cover copy(const Cover& cover) {
  Cover made;
  for (const Pointer& cube : cover) made.push_back(copy(*cube));
  return made;
}

bool meet(const Cube& a, const Cube& b) {
  for (std::size_t at = 0; at < a.inputs.size(); ++at)
    if (a.inputs[at] != b.inputs[at] && a.inputs[at] != '-' && b.inputs[at] != '-') return false;
  return true;
}

bool holds(const Cube& outer, const Cube& inner) {
  for (std::size_t at = 0; at < outer.inputs.size(); ++at)
    if (outer.inputs[at] != '-' && outer.inputs[at] != inner.inputs[at]) return false;
  return true;
}

// What is left of a cover where a cube holds: its inputs are fixed, and no longer asked for.
Cover cofactor(const Cover& cover, const Cube& where) {
  Cover made;
  for (const Pointer& cube : cover) {
    if (!meet(*cube, where)) continue;
    Pointer left = copy(*cube);
    for (std::size_t at = 0; at < where.inputs.size(); ++at)
      if (where.inputs[at] != '-') left->inputs[at] = '-';
    made.push_back(std::move(left));
  }
  return made;
}

// The input that most cubes ask for in both ways, or else in one; -1 where none is asked for.
long split_at(const Cover& cover, std::size_t inputs, bool& binate) {
  long best = -1, most = 0;
  binate = false;
  for (std::size_t at = 0; at < inputs; ++at) {
    long zeros = 0, ones = 0;
    for (const Pointer& cube : cover) zeros += cube->inputs[at] == '0', ones += cube->inputs[at] == '1';
    const bool both = zeros > 0 && ones > 0;
    if ((both && !binate) || (both == binate && zeros + ones > most)) best = static_cast<long>(at), most = zeros + ones;
    binate = binate || both;
  }
  return most == 0 ? -1 : best;
}

Pointer half(std::size_t inputs, std::size_t at, char value) {
  auto made = std::make_unique<Cube>(Cube{std::string(inputs, '-')});
  made->inputs[at] = value;
  return made;
}

bool has_all(const Cover& cover) {
  return std::any_of(cover.begin(), cover.end(),
                     [](const Pointer& cube) { return cube->inputs.find_first_not_of('-') == std::string::npos; });
}

bool tautology(const Cover& cover, std::size_t inputs) {
  if (has_all(cover)) return true;
  bool binate = false;
  const long at = split_at(cover, inputs, binate);
  if (at < 0 || !binate) return false;  // unate, and no cube of it holds everything
  const auto where = static_cast<std::size_t>(at);
  return tautology(cofactor(cover, *half(inputs, where, '0')), inputs) &&
         tautology(cofactor(cover, *half(inputs, where, '1')), inputs);
}

Cover complement(const Cover& cover, std::size_t inputs) {
  Cover made;
  if (has_all(cover)) return made;
  bool binate = false;
  const long at = split_at(cover, inputs, binate);
  if (at < 0) {
    made.push_back(std::make_unique<Cube>(Cube{std::string(inputs, '-')}));
    return made;
  }
  const auto where = static_cast<std::size_t>(at);
  for (const char value : {'0', '1'})
    for (Pointer& cube : complement(cofactor(cover, *half(inputs, where, value)), inputs)) {
      cube->inputs[where] = value;
      made.push_back(std::move(cube));
    }
  return made;
}

// Whether a cover holds wherever a cube does.
bool covers(const Cover& cover, const Cube& cube) { return tautology(cofactor(cover, cube), cube.inputs.size()); }

// Each cube takes in as much as the off-set allows; those that others then hold go.
void expand(Cover& cover, const Cover& off) {
  for (Pointer& cube : cover)
    for (char& input : cube->inputs) {
      if (input == '-') continue;
      const char before = std::exchange(input, '-');
      if (std::any_of(off.begin(), off.end(), [&](const Pointer& other) { return meet(*cube, *other); }))
        input = before;
    }
  Cover kept;
  for (Pointer& cube : cover)
    if (std::none_of(kept.begin(), kept.end(), [&](const Pointer& other) { return holds(*other, *cube); })) {
      std::erase_if(kept, [&](const Pointer& other) { return holds(*cube, *other); });
      kept.push_back(std::move(cube));
    }
  cover = std::move(kept);
}

Cover without(const Cover& cover, std::size_t left_out) {
  Cover made;
  for (std::size_t at = 0; at < cover.size(); ++at)
    if (at != left_out) made.push_back(copy(*cover[at]));
  return made;
}

void irredundant(Cover& cover) {
  for (std::size_t at = cover.size(); at-- > 0;)
    if (covers(without(cover, at), *cover[at])) cover.erase(cover.begin() + static_cast<long>(at));
}

// Each cube shrinks to the smallest one that still holds what the others do not.
void reduce(Cover& cover) {
  for (std::size_t at = 0; at < cover.size(); ++at) {
    const std::size_t inputs = cover[at]->inputs.size();
    const Cover own = complement(cofactor(without(cover, at), *cover[at]), inputs);
    if (own.empty()) continue;
    Cube smallest = *own.front();
    for (const Pointer& cube : own)
      for (std::size_t input = 0; input < inputs; ++input)
        if (cube->inputs[input] != smallest.inputs[input]) smallest.inputs[input] = '-';
    for (std::size_t input = 0; input < inputs; ++input)
      if (cover[at]->inputs[input] == '-') cover[at]->inputs[input] = smallest.inputs[input];
  }
}

std::size_t literals(const Cover& cover) {
  std::size_t n = 0;
  for (const Pointer& cube : cover)
    n += cube->inputs.size() - static_cast<std::size_t>(std::count(cube->inputs.begin(), cube->inputs.end(), '-'));
  return n;
}

Cover minimised(const Cover& on, std::size_t inputs) {
  const Cover off = complement(on, inputs);
  Cover cover = copy(on);
  expand(cover, off);
  irredundant(cover);
  for (;;) {
    Cover next = copy(cover);
    reduce(next);
    expand(next, off);
    irredundant(next);
    if (next.size() > cover.size() || (next.size() == cover.size() && literals(next) >= literals(cover))) return cover;
    cover = std::move(next);
  }
}

bool same(const Cover& a, const Cover& b) {
  const auto held = [](const Cover& outer, const Cover& inner) {
    return std::all_of(inner.begin(), inner.end(), [&](const Pointer& cube) { return covers(outer, *cube); });
  };
  return held(a, b) && held(b, a);
}

}  // namespace

int main() {
  std::size_t inputs = 0, outputs = 0;
  std::vector<Cover> on;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first, second;
    if (!(words >> first) || first == ".e") continue;
    words >> second;
    if (first == ".i") inputs = std::strtoul(second.c_str(), nullptr, 10);
    if (first == ".o") outputs = std::strtoul(second.c_str(), nullptr, 10), on.resize(outputs);
    if (first[0] == '.') continue;
    if (first.size() != inputs || second.size() != outputs || first.find_first_not_of("01-") != std::string::npos) {
      std::fprintf(stderr, "espresso: %s: is no line of a PLA with %zu inputs and %zu outputs\n", line.c_str(), inputs,
                   outputs);
      return 2;
    }
    for (std::size_t at = 0; at < outputs; ++at)
      if (second[at] == '1') on[at].push_back(std::make_unique<Cube>(Cube{first}));
  }
  std::printf(".i %zu\n.o %zu\n", inputs, outputs);
  for (std::size_t at = 0; at < outputs; ++at) {
    const Cover found = minimised(on[at], inputs);
    if (!same(on[at], found)) {
      std::fprintf(stderr, "espresso: output %zu became another function\n", at);
      return 1;
    }
    for (const Pointer& cube : found) {
      std::string out(outputs, '0');
      out[at] = '1';
      std::printf("%s %s\n", cube->inputs.c_str(), out.c_str());
    }
  }
  std::printf(".e\n");
}
