// Reads a machine: a table of keys, then the checks that involve several keys.
#include "simulator/model/machine.hpp"

#include "runtime/base/format.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace loam::simulator {
namespace {

using base::format_to;

constexpr std::uint64_t kCyclesMax = 1'000'000;

struct Number {
  std::string_view key;
  std::uint64_t least, most;
  void (*store)(Machine&, std::uint64_t);
};

struct Decimal {  // kept in thousandths
  std::string_view key;
  std::uint64_t most;
  std::uint32_t Machine::* member;
};

#define LOAM_NUMBER(key, least, most, place)                                                           \
  Number {                                                                                             \
    key, least, most, [](Machine& m, std::uint64_t v) { m.place = static_cast<decltype(m.place)>(v); } \
  }

constexpr Number kNumbers[] = {
    LOAM_NUMBER("cores", 1, kCoresMax, cores),
    LOAM_NUMBER("nodes", 1, kNodesMax, nodes),
    LOAM_NUMBER("line.bytes", 16, 64, line_bytes),
    LOAM_NUMBER("line.serialised", 0, 1, serialised),
    LOAM_NUMBER("page.bytes", 4096, 1 << 30, page_bytes),
    LOAM_NUMBER("l1.bytes", 64, 1 << 20, l1.bytes),
    LOAM_NUMBER("l1.ways", 1, 64, l1.ways),
    LOAM_NUMBER("l1.cycles", 1, kCyclesMax, l1.cycles),
    LOAM_NUMBER("l2.bytes", 0, 1 << 28, l2.bytes),
    LOAM_NUMBER("l2.ways", 1, 64, l2.ways),
    LOAM_NUMBER("l2.shared_by", 1, kCoresMax, l2.shared_by),
    LOAM_NUMBER("l2.cycles", 0, kCyclesMax, l2.cycles),
    LOAM_NUMBER("l2.inclusive", 0, 1, l2.inclusive),
    LOAM_NUMBER("l3.bytes", 0, std::uint64_t{1} << 30, l3.bytes),
    LOAM_NUMBER("l3.ways", 1, 64, l3.ways),
    LOAM_NUMBER("l3.cycles", 0, kCyclesMax, l3.cycles),
    LOAM_NUMBER("l3.inclusive", 0, 1, l3.inclusive),
    LOAM_NUMBER("memory.uniform", 0, 1, memory_uniform),
    LOAM_NUMBER("tlb.entries", 0, 4096, tlb.entries),
    LOAM_NUMBER("tlb.ways", 1, 64, tlb.ways),
    LOAM_NUMBER("tlb2.entries", 0, 65536, tlb2.entries),
    LOAM_NUMBER("tlb2.ways", 1, 64, tlb2.ways),
    LOAM_NUMBER("tlb2.cycles", 0, kCyclesMax, tlb2_cycles),
    LOAM_NUMBER("tlb.walk_cycles", 0, kCyclesMax, walk_cycles),
    LOAM_NUMBER("atomic.cycles", 0, kCyclesMax, atomic_cycles),
    LOAM_NUMBER("fence.cycles", 0, kCyclesMax, fence_cycles),
    LOAM_NUMBER("store_buffer.entries", 0, 64, store_buffer),
    LOAM_NUMBER("transactions.written_lines", 0, 1 << 20, written_lines),
    LOAM_NUMBER("transactions.begin_cycles", 0, kCyclesMax, begin_cycles),
    LOAM_NUMBER("transactions.commit_cycles", 0, kCyclesMax, commit_cycles),
    LOAM_NUMBER("transactions.abort_cycles", 0, kCyclesMax, abort_cycles),
    LOAM_NUMBER("interrupt.every_cycles", 0, std::uint64_t{1} << 40, interrupt_every_cycles),
    LOAM_NUMBER("interrupt.cycles", 0, kCyclesMax, interrupt_cycles),
    LOAM_NUMBER("engine.hot_cycles", 0, std::uint64_t{1} << 40, hot_cycles),
    LOAM_NUMBER("engine.quantum_cycles", 0, kCyclesMax, quantum_cycles),
    LOAM_NUMBER("core.megahertz", 1, 100'000, megahertz),
    LOAM_NUMBER("core.access_cycles", 0, kCyclesMax, access_cycles),
    LOAM_NUMBER("thread.block_cycles", 0, kCyclesMax, block_cycles),
    LOAM_NUMBER("thread.wake_cycles", 0, kCyclesMax, wake_cycles),
};

constexpr Decimal kDecimals[] = {
    {"memory.bytes_per_cycle", 4096, &Machine::memory_bytes_per_cycle_milli},
    {"link.bytes_per_cycle", 4096, &Machine::link_bytes_per_cycle_milli},
    {"core.instruction_cycles", 1000, &Machine::instruction_cycles_milli},
};

struct Word {
  std::string_view key, word;
  void (*store)(Machine&);
};

constexpr Word kWords[] = {
    {"coherence", "none", [](Machine& m) { m.coherence = Coherence::none; }},
    {"coherence", "mesi", [](Machine& m) { m.coherence = Coherence::mesi; }},
    {"core.costs", "access", [](Machine& m) { m.costs = Costs::access; }},
    {"core.costs", "blocks", [](Machine& m) { m.costs = Costs::blocks; }},
    {"transactions.policy", "none", [](Machine& m) { m.transactions = Transactions::none; }},
    {"transactions.policy", "requester-wins", [](Machine& m) { m.transactions = Transactions::requester_wins; }},
    {"transactions.policy", "committer-wins", [](Machine& m) { m.transactions = Transactions::committer_wins; }},
    {"transactions.reads", "l1", [](Machine& m) { m.read_capacity = ReadCapacity::l1; }},
    {"transactions.reads", "l2", [](Machine& m) { m.read_capacity = ReadCapacity::l2; }},
    {"transactions.reads", "unlimited", [](Machine& m) { m.read_capacity = ReadCapacity::unlimited; }},
};

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kSpace = " \t\r";
  const auto first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool whole(std::string_view text, std::uint64_t& value) noexcept {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// "12" or "5.3", in thousandths; at most three digits after the point.
bool decimal(std::string_view text, std::uint64_t& milli) noexcept {
  const auto point = text.find('.');
  std::uint64_t units = 0, part = 0;
  if (!whole(text.substr(0, point), units) || units > 1'000'000) return false;
  if (point != text.npos) {
    const auto digits = text.substr(point + 1);
    if (digits.size() > 3 || !whole(digits, part)) return false;
    for (auto missing = digits.size(); missing < 3; ++missing) part *= 10;
  }
  milli = units * kMilli + part;
  return true;
}

// Reads numbers between commas. returns how many, or one more than there is room for where it is no such list
std::size_t list(std::string_view text, std::span<std::uint64_t> values) noexcept {
  std::size_t count = 0;
  while (true) {
    const auto comma = text.find(',');
    if (count == values.size() || !whole(trimmed(text.substr(0, comma)), values[count])) return values.size() + 1;
    ++count;
    if (comma == text.npos) return count;
    text.remove_prefix(comma + 1);
  }
}

// Reads one key. Lists of times are filled up with their last value, so that what is further away is known to be reached.
class Reader {
 public:
  Reader(Machine& machine, std::span<char> buffer) noexcept : machine_(machine), buffer_(buffer) {}

  std::string_view line(std::string_view text) noexcept {
    const auto equals = text.find('=');
    if (equals == text.npos) return format_to(buffer_, "{}: not of the form key=value", text);
    return pair(trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1)));
  }

  // What the values must be to each other; distances last, since they depend on the number of nodes.
  std::string_view agree() noexcept;

 private:
  std::string_view pair(std::string_view key, std::string_view value) noexcept {
    if (key == "name") return name(value);
    if (key == "node.distances") return distances(value);
    for (const Number& number : kNumbers)
      if (key == number.key) {
        std::uint64_t v = 0;
        if (!whole(value, v) || v < number.least || v > number.most)
          return format_to(buffer_, "{}={}: a whole number from {} to {} is allowed", key, value, number.least,
                           number.most);
        number.store(machine_, v);
        return {};
      }
    for (const Decimal& number : kDecimals)
      if (key == number.key) {
        std::uint64_t v = 0;
        if (!decimal(value, v) || v > number.most * kMilli)
          return format_to(buffer_, "{}={}: a number from 0 to {} with at most three decimals is allowed", key, value,
                           number.most);
        machine_.*number.member = static_cast<std::uint32_t>(v);
        return {};
      }
    if (key == "transfer.cycles") return times(key, value, machine_.transfer_cycles);
    if (key == "invalidate.cycles") return times(key, value, machine_.invalidate_cycles);
    if (key == "line.stay_cycles") return times(key, value, machine_.stay_cycles);
    if (key == "memory.cycles") return times(key, value, machine_.memory_cycles);
    return word(key, value);
  }

  std::string_view word(std::string_view key, std::string_view value) noexcept {
    char allowed[128];
    base::TextWriter words(allowed);
    for (const Word& each : kWords) {
      if (key != each.key) continue;
      if (value == each.word) {
        each.store(machine_);
        return {};
      }
      if (!words.text().empty()) words.put(", ");
      words.put(each.word);
    }
    if (words.text().empty()) return format_to(buffer_, "{}={}: there is no such key", key, value);
    return format_to(buffer_, "{}={}: allowed are {}", key, value, words.text());
  }

  std::string_view name(std::string_view value) noexcept {
    if (value.empty() || value.size() >= sizeof machine_.name)
      return format_to(buffer_, "name={}: 1 to {} characters are allowed", value, sizeof machine_.name - 1);
    *std::copy(value.begin(), value.end(), machine_.name) = '\0';
    return {};
  }

  std::string_view times(std::string_view key, std::string_view value, std::span<std::uint32_t> place) noexcept {
    std::uint64_t values[kLevels];
    const std::size_t count = list(value, std::span(values, place.size()));
    if (count > place.size() || std::any_of(values, values + count, [](auto v) { return v > kCyclesMax; }))
      return format_to(buffer_, "{}={}: 1 to {} whole numbers of cycles up to {}, between commas, are allowed", key,
                       value, place.size(), kCyclesMax);
    for (std::size_t i = 0; i < place.size(); ++i)
      place[i] = static_cast<std::uint32_t>(values[std::min(i, count - 1)]);
    return {};
  }

  std::string_view distances(std::string_view value) noexcept {
    distances_ = value;
    distance_count_ = list(value, distance_values_);
    return {};
  }

  std::string_view cache(std::string_view which, const CacheShape& shape, unsigned cores) noexcept;
  std::string_view tlb(std::string_view which, const TlbShape& shape) noexcept;
  std::string_view place_nodes() noexcept;

  Machine& machine_;
  std::span<char> buffer_;
  std::string_view distances_;
  std::uint64_t distance_values_[kNodesMax * kNodesMax];
  std::size_t distance_count_ = 0;
};

std::string_view Reader::cache(std::string_view which, const CacheShape& shape, unsigned cores) noexcept {
  if (shape.bytes == 0) return {};
  const std::uint64_t row = std::uint64_t{machine_.line_bytes} * shape.ways;
  if (shape.bytes % row != 0)
    return format_to(buffer_, "{}.bytes={}: a multiple of line.bytes x {}.ways = {} is allowed", which, shape.bytes,
                     which, row);
  if (which == "l1" && !std::has_single_bit(shape.bytes / row))
    return format_to(buffer_, "l1.bytes={}: line.bytes x l1.ways x a power of two is allowed; this makes {} sets",
                     shape.bytes, shape.bytes / row);
  if (shape.cycles == 0)
    return format_to(buffer_, "{}.cycles=0: at least 1 is allowed where the cache is there", which);
  if (cores % shape.shared_by != 0)
    return format_to(buffer_, "{}.shared_by={}: a divisor of the {} cores of a node is allowed", which, shape.shared_by,
                     cores);
  return {};
}

std::string_view Reader::tlb(std::string_view which, const TlbShape& shape) noexcept {
  if (shape.entries % shape.ways != 0 || (shape.entries != 0 && !std::has_single_bit(shape.entries / shape.ways)))
    return format_to(buffer_, "{}.entries={}: {}.ways = {} times a power of two, or 0, is allowed", which,
                     shape.entries, which, shape.ways);
  return {};
}

std::string_view Reader::place_nodes() noexcept {
  const unsigned nodes = machine_.nodes;
  for (unsigned a = 0; a < nodes; ++a)
    for (unsigned b = 0; b < nodes; ++b) machine_.distance[a][b] = a == b ? 0 : 1;
  if (distances_.empty()) return {};
  if (distance_count_ != nodes * nodes)
    return format_to(buffer_, "node.distances={}: {} x {} numbers between commas, row by row, are allowed", distances_,
                     nodes, nodes);
  for (unsigned a = 0; a < nodes; ++a)
    for (unsigned b = 0; b < nodes; ++b) {
      const std::uint64_t there = distance_values_[a * nodes + b];
      const bool possible = a == b ? there == 0 : there >= 1 && there <= kDistanceMax;
      if (!possible || there != distance_values_[b * nodes + a])
        return format_to(buffer_,
                         "node.distances={}: from {} to {} it says {}; 0 to itself, 1 to {} to another, and the same "
                         "back are allowed",
                         distances_, a, b, there, kDistanceMax);
      machine_.distance[a][b] = static_cast<std::uint8_t>(there);
    }
  return {};
}

std::string_view Reader::agree() noexcept {
  Machine& m = machine_;
  if (m.cores % m.nodes != 0) return format_to(buffer_, "nodes={}: a divisor of cores={} is allowed", m.nodes, m.cores);
  const std::pair<std::string_view, std::uint32_t> powers[] = {{"line.bytes", m.line_bytes},
                                                               {"page.bytes", m.page_bytes}};
  for (const auto& [key, value] : powers)
    if (!std::has_single_bit(value)) return format_to(buffer_, "{}={}: a power of two is allowed", key, value);
  if (m.l1.bytes == 0) return format_to(buffer_, "l1.bytes: this key is missing");
  if (m.l2.bytes == 0) m.l2.shared_by = 1;
  const unsigned local = m.cores_per_node();
  m.l3.shared_by = local;
  for (const auto& [which, shape] : {std::pair{std::string_view("l1"), m.l1}, std::pair{std::string_view("l2"), m.l2},
                                     std::pair{std::string_view("l3"), m.l3}})
    if (const auto problem = cache(which, shape, local); !problem.empty()) return problem;
  if (const auto problem = tlb("tlb", m.tlb); !problem.empty()) return problem;
  if (const auto problem = tlb("tlb2", m.tlb2); !problem.empty()) return problem;
  if (m.coherence == Coherence::none && m.transactions != Transactions::none)
    return format_to(buffer_, "transactions.policy: only none is allowed where coherence=none");
  if (m.read_capacity == ReadCapacity::l2 && m.l2.bytes == 0)
    return format_to(buffer_, "transactions.reads=l2: l1 or unlimited is allowed where there is no l2");
  if (m.memory_cycles[0] == 0) return format_to(buffer_, "memory.cycles: this key is missing, or begins with 0");
  return place_nodes();
}

}  // namespace

std::string_view parse_machine(std::string_view text, Machine& machine, std::span<char> buffer) noexcept {
  machine = Machine{};
  Reader reader(machine, buffer);
  while (!text.empty()) {
    const auto end = text.find_first_of("\n;");
    auto line = text.substr(0, end);
    line = trimmed(line.substr(0, line.find('#')));
    if (!line.empty())
      if (const auto problem = reader.line(line); !problem.empty()) return problem;
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return reader.agree();
}

}  // namespace loam::simulator
