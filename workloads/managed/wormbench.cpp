// wormbench: worms on a torus of numbers. A step is one transaction: an operation on the numbers under the worm's head,
// then a move by one cell.
//   Source  Zyulkyarov et al., "WormBench", MEDEA 2008. The operations are the port's 13: five that only read, eight that
//           write; the published mix is uniform. The triangular head has head * head cells.
//   Nothing is allocated in a transaction, and its logs fit into one chunk: the control of paper 002. A worm's own
//   coordinates belong to its thread; they change once its step has committed.
//   Verified  the sum of all numbers, by what each operation says that it changed; which worm is on which cell.
#include "runtime/base/random.hpp"
#include "workloads/harness/workload.hpp"
#include "workloads/managed/harness/program.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace loam::workloads::managed {
namespace {

constexpr unsigned kWorms = 48, kHeadMax = 16, kBodyMax = 16, kCellsMax = kHeadMax * kHeadMax + kBodyMax;

struct Worm : gc::Object {
  gc::Value<std::uint64_t> id;
  static gc::Descriptor describe() { return gc::describe<Worm>("worm"); }
};
struct Node : gc::Object {
  gc::Ref<Worm> worm;
  gc::Value<std::int64_t> number;
  static gc::Descriptor describe() { return gc::describe<Node>("node", &Node::worm); }
};

constexpr ParameterSpec kParameters[] = {
    ParameterSpec::integer("size", 256, 128, 1024, "1", "of the world: size * size cells").called("size\u00a0{}"),
    ParameterSpec::integer("head", 8, 1, kHeadMax, "1", "size of a worm's head, a triangle of head * head cells"),
    ParameterSpec::integer("body", 8, 2, kBodyMax, "1", "cells of a worm's body"),
    ParameterSpec::integer("operations", 20000, 1, 1 << 30, "1", "steps of each thread; one is a transaction"),
    ParameterSpec::integer("read_percent", 38, 0, 100, "%", "of the steps only read numbers; 38: all operations alike"),
};

constexpr MetricSpec kOwnMetrics[] = {
    {"moves", "1", Better::neither, Kind::count},
    {"chunks_fit", "1", Better::higher, Kind::count},
};
constexpr auto kMetrics = joined(kSharedMetrics, kOwnMetrics);

struct WormSettings {
  explicit WormSettings(const ParameterValues& values)
      : size(static_cast<int>(values.integer("size"))),
        head(static_cast<int>(values.integer("head"))),
        body(static_cast<int>(values.integer("body"))),
        read_percent(static_cast<std::uint32_t>(values.integer("read_percent"))) {}

  int size, head, body;
  std::uint32_t read_percent;
};

void check(const ParameterValues& values) {
  const WormSettings settings(values);
  const int across = settings.size / (2 * settings.head), along = settings.size / (settings.head + settings.body + 1);
  if (across * along < static_cast<int>(kWorms))
    reject("-p size", "", "48 worms do not fit into the world", "raise size, or lower head or body");
}

// Not wrapped: a worm is shorter than the world is wide.
struct Cell {
  int x, y;
  bool operator==(const Cell&) const = default;
};

// Where a worm is: body[0] is behind its head. Its direction is from body[1] to body[0].
struct Place {
  std::array<Cell, kBodyMax> body;
  Cell direction;
};

class WormBench {
 public:
  using Settings = WormSettings;
  static std::size_t live_bytes(const Settings& settings, unsigned) {
    const auto cells = static_cast<std::size_t>(settings.size) * static_cast<std::size_t>(settings.size);
    return cells * (sizeof(Node) + sizeof(void*)) + (std::size_t{1} << 18);
  }

  WormBench(Session& session, const Settings& settings, const Options& options)
      : settings_(settings),
        options_(options),
        world_(session.heap),
        worms_(session.heap),
        places_(kWorms),
        sums_(options.threads),
        moves_(options.threads) {}

  void build(Worker& builder) {
    gc::Mutator& mutator = builder.mutator;
    base::Random random(options_.seed);
    const auto cells = static_cast<std::size_t>(settings_.size) * static_cast<std::size_t>(settings_.size);
    world_.set(mutator.allocate_array<gc::RefArray<Node>>(cells));
    worms_.set(mutator.allocate_array<gc::RefArray<Worm>>(kWorms));
    for (std::size_t i = 0; i < cells; ++i) {
      auto* const node = mutator.allocate<Node>();
      const std::int64_t number = random.below(9);
      node->number.init(number);
      start_sum_ += number;
      mutator.store(world_.get(), world_.get()->at<gc::Ref<Node>>(i), node);
    }
    const int across = settings_.size / (2 * settings_.head), step_x = 2 * settings_.head,
              step_y = settings_.head + settings_.body + 1;
    gc::Local<Worm> worm(mutator);
    gc::Local<Node> node(mutator);
    for (int w = 0; w < static_cast<int>(kWorms); ++w) {
      worm = mutator.allocate<Worm>();
      worm->id.init(static_cast<std::uint64_t>(w));
      mutator.store(worms_.get(), worms_.get()->at<gc::Ref<Worm>>(static_cast<std::size_t>(w)), worm.get());
      Place& place = places_[static_cast<std::size_t>(w)];
      place.direction = {0, 1};
      const Cell front{w % across * step_x + settings_.head, w / across * step_y + settings_.body - 1};
      for (int i = 0; i < settings_.body; ++i) place.body[static_cast<std::size_t>(i)] = {front.x, front.y - i};
      std::array<Cell, kCellsMax> all;
      for (std::size_t i = 0, count = cells_of(place, all); i < count; ++i) {
        node = static_cast<Node*>(world_.get()->at<gc::Ref<Node>>(index(all[i])).slot().load());
        mutator.write(node, &Node::worm, worm.get());
      }
    }
  }

  std::uint64_t work(Worker& worker, unsigned thread, Pace& pace) {
    gc::Local<gc::RefArray<Node>> world(worker.mutator, world_.get());
    gc::Local<gc::RefArray<Worm>> worms(worker.mutator, worms_.get());
    gc::Local<Worm> worm(worker.mutator);
    gc::Local<Node> node(worker.mutator);
    base::Random random(options_.seed, thread + 1);
    std::uint64_t done = 0;
    std::int64_t changed = 0;
    const unsigned threads = std::min(options_.threads, kWorms);
    for (unsigned mine = thread % kWorms; pace.goes_on(done); ++done) {
      const std::uint32_t kind = random.below(100) < settings_.read_percent ? random.below(5) : 5 + random.below(8);
      const std::uint32_t turn = random.below(3);
      mine = mine + threads < kWorms ? mine + threads : thread % kWorms;
      if (thread >= kWorms) continue;  // more threads than worms
      worm = static_cast<Worm*>(worms->at<gc::Ref<Worm>>(mine).slot().load());
      Place& place = places_[mine];
      const Place next = moved(place, turn);
      struct Outcome {
        std::int64_t changed;
        bool moved;
      };
      const Outcome outcome = worker.atomically([&](auto& tx) {
        const std::int64_t difference = operate(tx, world, node, place, kind);
        return Outcome{difference, move(tx, world, node, worm, place, next)};
      });
      changed += outcome.changed;
      if (outcome.moved) {
        place = next;
        ++moves_[thread];
      }
    }
    sums_[thread] = changed;
    return done;
  }

  const char* check(Worker& checker) {
    gc::Local<gc::RefArray<Node>> world(checker.mutator, world_.get());
    gc::Local<Node> node(checker.mutator);
    const auto size = static_cast<std::size_t>(settings_.size);
    std::vector<std::uint64_t> expected(size * size, kWorms);
    std::array<Cell, kCellsMax> all;
    for (std::size_t w = 0; w < kWorms; ++w)
      for (std::size_t i = 0, count = cells_of(places_[w], all); i < count; ++i) {
        std::uint64_t& at = expected[index(all[i])];
        if (at != kWorms && at != w) return "two worms are on one cell";
        at = w;
      }
    std::int64_t sum = start_sum_;
    for (const std::int64_t difference : sums_) sum += difference;
    PlainAccess& plain = checker.plain();
    for (std::size_t i = 0; i < size * size; ++i) {
      node = plain.read_at(world, i);
      sum -= plain.read(node, &Node::number);
      gc::Local<Worm> worm(checker.mutator, plain.read(node, &Node::worm));
      if ((worm ? plain.read(worm, &Worm::id) : kWorms) != expected[i]) return "a cell names another worm than its own";
    }
    return sum == 0 ? nullptr : "the sum of the numbers is not what the operations made it";
  }

  void add_to(base::JsonLine& line) {
    std::uint64_t moves = 0;
    for (const auto count : moves_) moves += count;
    // What one step can log at the most, against what a chunk of the default size holds.
    const auto head = static_cast<std::uint64_t>(settings_.head), cells = head * head;
    const bool fit = 2 * cells + 4 * head + 2 < 8192 / sizeof(gc::UpdateEntry);
    line.field("moves", moves).field("chunks_fit", fit ? 1 : 0);
  }

 private:
  std::size_t index(Cell cell) const noexcept {
    const auto wrap = [&](int at) {
      return static_cast<std::size_t>((at % settings_.size + settings_.size) % settings_.size);
    };
    return wrap(cell.y) * static_cast<std::size_t>(settings_.size) + wrap(cell.x);
  }

  // Row i ahead of the body has 2 * (head - 1 - i) + 1 cells. returns how many there are
  std::size_t head_of(const Place& place, std::array<Cell, kCellsMax>& all, std::size_t count = 0) const {
    const Cell d = place.direction, across{-d.y, d.x};
    for (int i = 0; i < settings_.head; ++i)
      for (int k = -(settings_.head - 1 - i); k <= settings_.head - 1 - i; ++k)
        all[count++] = {place.body[0].x + d.x * (i + 1) + across.x * k, place.body[0].y + d.y * (i + 1) + across.y * k};
    return count;
  }
  std::size_t cells_of(const Place& place, std::array<Cell, kCellsMax>& all) const {
    const auto body = static_cast<std::size_t>(settings_.body);
    std::copy_n(place.body.begin(), body, all.begin());
    return head_of(place, all, body);
  }

  // turn: 0 ahead, 1 right, 2 left
  Place moved(const Place& place, std::uint32_t turn) const {
    Place next = place;
    const Cell d = place.direction;
    next.direction = turn == 0 ? d : turn == 1 ? Cell{d.y, -d.x} : Cell{-d.y, d.x};
    for (std::size_t i = static_cast<std::size_t>(settings_.body) - 1; i != 0; --i) next.body[i] = place.body[i - 1];
    next.body[0] = {place.body[0].x + next.direction.x, place.body[0].y + next.direction.y};
    return next;
  }

  // returns by how much the sum of the numbers has changed
  template <class Access>
  std::int64_t operate(Access& tx, const gc::Local<gc::RefArray<Node>>& world, gc::Local<Node>& node,
                       const Place& place, std::uint32_t kind) const {
    std::array<Cell, kCellsMax> cells;
    std::array<std::int64_t, kHeadMax * kHeadMax> all;
    const std::size_t count = head_of(place, cells);
    for (std::size_t i = 0; i < count; ++i) {
      node = tx.read_at(world, index(cells[i]));
      all[i] = tx.read(node, &Node::number);
    }
    const auto begin = all.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
    std::int64_t sum = 0;
    for (auto at = begin; at != end; ++at) sum += *at;
    const auto at_max = static_cast<std::size_t>(std::max_element(begin, end) - begin);
    const auto at_min = static_cast<std::size_t>(std::min_element(begin, end) - begin);
    std::array<std::int64_t, kHeadMax * kHeadMax> sorted{};  // zeros: GCC 14 does not see that there is a cell
    std::sort(sorted.begin(), std::copy(begin, end, sorted.begin()));
    const std::int64_t average = sum / static_cast<std::int64_t>(count), median = sorted[count / 2];
    const auto at_median = static_cast<std::size_t>(std::find(begin, end, median) - begin);
    std::int64_t changed = 0;
    const auto put = [&](std::size_t i, std::int64_t number) {
      node = tx.read_at(world, index(cells[i]));
      tx.write(node, &Node::number, number);
      changed += number - all[i];
    };
    switch (kind) {
      case 5:
        put(at_max, average);
        break;
      case 6:
        put(at_min, average);
        break;
      case 7:
        put(at_median, average);
        break;
      case 8:
        put(at_median, all[at_max]);
        break;
      case 9:
        put(at_median, all[at_min]);
        break;
      case 10:
        put(at_max, all[at_min]);
        put(at_min, all[at_max]);
        break;
      case 11:
        for (std::size_t i = 0; i < count; ++i) put(i, sorted[i]);
        break;
      case 12:
        for (std::size_t i = 0; i < count; ++i) put(i, all[count - 1 - i]);
        break;
      default:
        break;  // sum, average, median, minimum and maximum only read
    }
    return changed;
  }

  // Writes the cells that it leaves and those that it comes to. returns false if another worm is in the way
  template <class Access>
  bool move(Access& tx, const gc::Local<gc::RefArray<Node>>& world, gc::Local<Node>& node, const gc::Local<Worm>& worm,
            const Place& from, const Place& to) const {
    std::array<Cell, kCellsMax> before, after;
    const std::size_t left = cells_of(from, before), come = cells_of(to, after);
    const auto has = [&](const std::array<Cell, kCellsMax>& cells, std::size_t count, Cell cell) {
      return std::find(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(count), cell) !=
             cells.begin() + static_cast<std::ptrdiff_t>(count);
    };
    for (std::size_t i = 0; i < come; ++i) {
      if (has(before, left, after[i])) continue;
      node = tx.read_at(world, index(after[i]));
      const Worm* const there = tx.read(node, &Node::worm);
      if (there != nullptr && there != worm.get()) return false;
    }
    for (std::size_t i = 0; i < left; ++i) {
      if (has(after, come, before[i])) continue;
      node = tx.read_at(world, index(before[i]));
      tx.write(node, &Node::worm, nullptr);
    }
    for (std::size_t i = 0; i < come; ++i) {
      if (has(before, left, after[i])) continue;
      node = tx.read_at(world, index(after[i]));
      tx.write(node, &Node::worm, worm);
    }
    return true;
  }

  const Settings settings_;
  const Options& options_;
  gc::Global<gc::RefArray<Node>> world_;
  gc::Global<gc::RefArray<Worm>> worms_;
  std::vector<Place> places_;
  std::vector<std::int64_t> sums_;
  std::vector<std::uint64_t> moves_;
  std::int64_t start_sum_ = 0;
};

bool run(const Options& options, Recorder& recorder) {
  refuse_unsynchronised(options);
  return run_program<WormBench>(options, recorder,
                                static_cast<std::uint64_t>(options.parameters.integer("operations")));
}

const base::Registration<Workload> registration{
    Workload{.name = "wormbench",
             .summary = "worms on a torus: short transactions that allocate nothing",
             .kinds = {SyncKind::managed},
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::managed
