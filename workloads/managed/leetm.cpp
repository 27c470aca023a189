// leetm: routes of a circuit board by Lee's algorithm; laying a track is one transaction.
//   Source  Watson, Kirkham, Lujan, "A study of a transactional parallel routing algorithm", PACT 2007; its variants as
//           paper 002 has them:
//     base    the board is arrays of arrays; the wave's grid and list are allocated in the transaction
//     opt     ... are the thread's own, outside of the heap
//     rm      the board and the wave's grid are one array each, in row-major order
//     optrm   both
//   Verified  every track is a chain of cells from end to end; no cell belongs to two tracks; the board has just these.
#include "workloads/harness/workload.hpp"
#include "workloads/managed/harness/program.hpp"
#include "workloads/managed/lee/board.hpp"
#include "workloads/managed/lee/grids.hpp"
#include "workloads/managed/lee/router.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

namespace loam::workloads::managed {
namespace {

using namespace lee;

constexpr std::string_view kBoards[] = {"sparseshort", "sparselong", "crossing"};
constexpr std::string_view kVariants[] = {"base", "opt", "rm", "optrm"};
constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice("board", kBoards, "what is to be routed"),
    ParameterSpec::file("file", "a board in the format of LeeTM, instead of these"),
    ParameterSpec::choice("variant", kVariants, "where the wave's grid lies, and how arrays are laid out"),
    ParameterSpec::integer("tracks", 0, 0, 1 << 20, "1", "lay the first of the joins only; 0: all"),
};

constexpr MetricSpec kOwnMetrics[] = {
    {"laid", "1", Better::neither, Kind::count},
    {"failed", "1", Better::lower, Kind::count},
};
constexpr auto kMetrics = joined(kSharedMetrics, kOwnMetrics);

// The next join of the queue, and an object of the wave's list.
struct Queue : gc::Object {
  gc::Value<std::uint64_t> next;
  static gc::Descriptor describe() { return gc::describe<Queue>("queue"); }
};
struct Item : gc::Object {
  gc::Ref<Item> next;
  gc::Value<std::uint64_t> step;
  static gc::Descriptor describe() { return gc::describe<Item>("item", &Item::next); }
};

struct LeeSettings {
  explicit LeeSettings(const ParameterValues& values) {
    const auto name = values.choice("board");
    board = !values.file("file").empty() ? read_board(values.file("file"))
            : name == "sparselong"       ? sparse_long()
            : name == "crossing"         ? crossing(1)
                                         : sparse_short();
    const auto tracks = static_cast<std::size_t>(values.integer("tracks"));
    if (tracks != 0 && tracks < board.joins.size()) board.joins.resize(tracks);
    const auto variant = values.choice("variant");
    row_major = variant == "rm" || variant == "optrm";
    own = variant == "opt" || variant == "optrm";
  }
  std::size_t cells() const { return static_cast<std::size_t>(board.size) * static_cast<std::size_t>(board.size); }

  Board board;
  bool row_major, own;
};

// kRowMajor: the layout of the board and of a grid in the heap; kOwn: the wave's grid is the thread's own.
template <bool kRowMajor, bool kOwn>
class Lee {
 public:
  using Settings = LeeSettings;
  using Grid = std::conditional_t<kRowMajor, RowMajorGrid, NestedGrid>;

  static std::size_t live_bytes(const Settings& settings, unsigned threads) {
    constexpr std::size_t kNestedCell = sizeof(gc::Array) + 2 * sizeof(Number) + sizeof(void*);
    const std::size_t grid = settings.cells() * (kRowMajor ? 2 * sizeof(Number) : kNestedCell);
    // Its log: each cell's first write, and of nested arrays their enlistments.
    const std::size_t logged =
        settings.cells() *
        (2 * sizeof(gc::UndoEntry) + (kRowMajor ? 0 : 2 * sizeof(gc::ReadEntry) + sizeof(gc::UpdateEntry)));
    const std::size_t wave = settings.cells() * sizeof(Item);
    return grid + threads * (kOwn ? grid / 4 : grid + wave + (kTransactions ? logged : 0)) + (std::size_t{1} << 20);
  }

  Lee(Session& session, const Settings& settings, const Options& options)
      : settings_(settings), root_(session.heap), queue_(session.heap), tracks_(options.threads) {}

  void build(Worker& builder) {
    PlainAccess& plain = builder.plain();
    queue_.set(builder.mutator.allocate<Queue>());
    Grid grid(builder.mutator, settings_.board.size);
    grid.make(plain);
    for (const Point pad : settings_.board.pads)
      for (int z = 0; z < 2; ++z) grid.set(plain, pad.x, pad.y, z, kPad);
    for (const Point pad : settings_.board.pads)
      for (const auto& [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}})
        for (int z = 0; z < 2; ++z)
          if (grid.get(plain, pad.x + dx, pad.y + dy, z) == kEmpty)
            grid.set(plain, pad.x + dx, pad.y + dy, z, kBesidePad);
    root_.set(grid.root());
  }

  std::uint64_t work(Worker& worker, unsigned thread, Pace& pace) {
    gc::Local<Queue> queue(worker.mutator, queue_.get());
    gc::Local<Item> items(worker.mutator), item(worker.mutator);
    Grid board(worker.mutator, settings_.board.size, root_.get());
    std::optional<PlainGrid> own;
    if constexpr (kOwn) own.emplace(settings_.board.size);
    Scratch scratch;
    std::uint64_t transactions = 0;
    const auto& joins = settings_.board.joins;
    while (pace.goes_on(transactions)) {
      const auto number = static_cast<std::size_t>(worker.atomically([&](auto& tx) {
        const std::uint64_t next = tx.read(queue, &Queue::next);
        if (next < joins.size()) tx.write(queue, &Queue::next, next + 1);
        return next;
      }));
      ++transactions;
      if (number >= joins.size()) break;
      const bool laid = worker.atomically([&](auto& tx) {
        if constexpr (kOwn) {
          return Router(tx, board, *own, settings_.board.size, scratch).lay(joins[number], [] {});
        } else {
          Grid temporary(worker.mutator, settings_.board.size);
          temporary.make(tx);
          items = nullptr;
          return Router(tx, board, temporary, settings_.board.size, scratch).lay(joins[number], [&] {
            auto* const made = tx.template create<Item>();
            made->next.init(items.get());
            items = made;
          });
        }
      });
      items = nullptr;
      ++transactions;
      tracks_[thread].push_back({number, laid ? scratch.path : std::vector<Step>{}});
    }
    return transactions;
  }

  const char* check(Worker& checker) {
    const int size = settings_.board.size;
    PlainAccess& plain = checker.plain();
    Grid grid(checker.mutator, size, root_.get());
    std::vector<std::size_t> owner(settings_.cells() * 2, 0);
    const auto at = [&](Step step) { return static_cast<std::size_t>((step.x * size + step.y) * 2 + step.z); };
    std::vector<bool> seen(settings_.board.joins.size());
    for (const auto& of_thread : tracks_)
      for (const auto& [number, path] : of_thread) {
        if (seen[number]) return "a join was routed twice";
        seen[number] = true;
        if (path.empty()) {
          ++failed_;
          continue;
        }
        ++laid_;
        const Join& join = settings_.board.joins[number];
        if (!(join.to == Point{path.front().x, path.front().y}) || !(join.from == Point{path.back().x, path.back().y}))
          return "a track does not lead from end to end";
        for (std::size_t i = 0; i < path.size(); ++i) {
          const Step step = path[i];
          if (i != 0) {
            const Step& before = path[i - 1];
            const int far = std::abs(step.x - before.x) + std::abs(step.y - before.y) + std::abs(step.z - before.z);
            if (far != 1) return "a track has a gap";
          }
          const Number cell = grid.get(plain, step.x, step.y, step.z);
          // Where the wave began nothing is written.
          if (cell < kPad && i + 1 != path.size()) return "a cell of a track is not on the board";
          const bool is_end = i == 0 || Point{step.x, step.y} == join.from || Point{step.x, step.y} == join.to;
          if (cell == kPad && !is_end) return "a track crosses a pad";
          std::size_t& holder = owner[at(step)];
          if (holder != 0 && holder != number + 1 && cell != kPad) return "two tracks share a cell";
          holder = number + 1;
        }
      }
    for (const bool routed : seen)
      if (!routed) return "a join was left out";
    for (int x = 0; x < size; ++x)
      for (int y = 0; y < size; ++y)
        for (int z = 0; z < 2; ++z)
          if (grid.get(plain, x, y, z) > kPad && owner[at({x, y, z})] == 0) return "the board has a cell of no track";
    return nullptr;
  }

  void add_to(base::JsonLine& line) { line.field("laid", laid_).field("failed", failed_); }

 private:
  struct Routed {
    std::size_t number;
    std::vector<Step> path;
  };

  const Settings settings_;
  gc::Global<typename Grid::Root> root_;
  gc::Global<Queue> queue_;
  std::vector<std::vector<Routed>> tracks_;
  std::uint64_t laid_ = 0, failed_ = 0;
};

bool run(const Options& options, Recorder& recorder) {
  refuse_unsynchronised(options);
  const LeeSettings settings(options.parameters);
  constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  if (settings.row_major)
    return settings.own ? run_program<Lee<true, true>>(options, recorder, kNoLimit)
                        : run_program<Lee<true, false>>(options, recorder, kNoLimit);
  return settings.own ? run_program<Lee<false, true>>(options, recorder, kNoLimit)
                      : run_program<Lee<false, false>>(options, recorder, kNoLimit);
}

const base::Registration<Workload> registration{Workload{.name = "leetm",
                                                         .summary = "routes of a circuit board, a transaction each",
                                                         .kinds = {SyncKind::managed},
                                                         .parameters = kParameters,
                                                         .metrics = kMetrics,
                                                         .check = nullptr,
                                                         .run = run}};

}  // namespace
}  // namespace loam::workloads::managed
