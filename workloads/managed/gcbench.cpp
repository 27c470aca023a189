// gcbench: each thread walks a list of lists of its own, and at every node updates, allocates, inserts or deletes.
//   Source  Meawad, Macnak, Vitek, "Collecting transactional garbage", TRANSACT 2011, section 2.1; size n is n outer and
//           n inner elements. One traversal is one transaction. Nothing is shared, so nothing aborts: what collecting
//           costs beyond gc-raw is what transactions leave behind.
//   Percentages of the paper: 5 % update, 15 % allocate what is dead at once, 65 % what is dead at commit, 5 % insert,
//   5 % delete; the rest only reads.
#include "workloads/harness/workload.hpp"
#include "workloads/managed/harness/program.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

namespace loam::workloads::managed {
namespace {

struct Box : gc::Object {
  gc::Value<double> number;
  static gc::Descriptor describe() { return gc::describe<Box>("box"); }
};
struct Inner : gc::Object {
  gc::Ref<Inner> next;
  gc::Ref<Box> box;
  static gc::Descriptor describe() { return gc::describe<Inner>("inner", &Inner::next, &Inner::box); }
};
struct Outer : gc::Object {
  gc::Ref<Outer> next;
  gc::Ref<Inner> head;
  static gc::Descriptor describe() { return gc::describe<Outer>("outer", &Outer::next, &Outer::head); }
};
struct Junk : gc::Object {
  gc::Ref<Junk> next;
  gc::Value<double> number;
  static gc::Descriptor describe() { return gc::describe<Junk>("junk", &Junk::next); }
};

constexpr std::string_view kJunk[] = {"plain", "transactional"};
constexpr std::string_view kInitialisers[] = {"plain", "logged"};
constexpr ParameterSpec kParameters[] = {
    ParameterSpec::integer("size", 400, 1, 4000, "1", "outer elements, and inner ones of each: size * size nodes")
        .called("size\u00a0{}"),
    ParameterSpec::integer("operations", 20, 1, 1 << 30, "1", "traversals of each thread; one is a transaction"),
    ParameterSpec::integer("update_percent", 5, 0, 100, "%", "of the nodes: write").called("{}\u00a0% updates"),
    ParameterSpec::integer("dead_percent", 15, 0, 100, "%", "allocate what is dead at once"),
    ParameterSpec::integer("held_percent", 65, 0, 100, "%", "allocate what is dead at commit"),
    ParameterSpec::integer("insert_percent", 5, 0, 100, "%", "insert a node"),
    ParameterSpec::integer("delete_percent", 5, 0, 100, "%", "delete a node"),
    ParameterSpec::choice("junk", kJunk, "whether objects that die at commit are enlisted as new ones"),
    ParameterSpec::choice(
        "initialisers", kInitialisers,
        "logged: the first values of new objects are written as others are, as the paper's compiler does"),
};

constexpr MetricSpec kOwnMetrics[] = {
    {"nodes", "1", Better::neither, Kind::count},
    {"checksum", "1", Better::neither, Kind::count},
    {"heap_over_live", "1", Better::neither, Kind::ratio, "memory_bytes", "live_bytes"},
};
constexpr auto kMetrics = joined(kSharedMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& values) : size(static_cast<std::uint32_t>(values.integer("size"))) {
    static constexpr std::string_view kNames[] = {"update_percent", "dead_percent", "held_percent", "insert_percent",
                                                  "delete_percent"};
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < std::size(kNames); ++i)
      bounds[i] = sum += static_cast<std::uint32_t>(values.integer(kNames[i]));
    operations = static_cast<std::uint64_t>(values.integer("operations"));
    enlists_junk = values.choice("junk") == "transactional";
    logs_initialisers = values.choice("initialisers") == "logged";
  }

  // What a thread has live at the most: its nodes, what a traversal holds until it commits, and its logs.
  std::size_t live_bytes() const {
    const double nodes = static_cast<double>(size) * size;
    const double held = 0.01 * (bounds[2] - bounds[1]), updated = 0.01 * bounds[0],
                 linked = 0.01 * (bounds[4] - bounds[2]);
    const double objects = sizeof(Inner) + sizeof(Box) + held * sizeof(Junk);
    const double made = logs_initialisers ? 0.01 * (bounds[3] - bounds[0]) : 0;
    // Whatever a read takes there: with -p entries the memory stays the same.
    const double logs = 2 * sizeof(gc::ReadEntry) +
                        (updated + linked + made) * (sizeof(gc::UpdateEntry) + sizeof(gc::UndoEntry)) +
                        made * sizeof(gc::UndoEntry);
    return static_cast<std::size_t>(nodes * (objects + logs));
  }

  std::uint32_t size;
  std::uint32_t bounds[5];  // cumulated percentages
  std::uint64_t operations;
  bool enlists_junk, logs_initialisers;
};

void check(const ParameterValues& values) {
  if (Settings(values).bounds[4] > 100) reject("-p *_percent", "", "percentages of more than 100 in sum");
}

std::uint32_t xorshift(std::uint32_t state) noexcept {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^ state << 5;
}

// What a traversal did. grown: nodes inserted less nodes deleted
struct Traversed {
  double sum = 0;
  std::int64_t grown = 0;
};

// One traversal. The random numbers begin anew in each attempt.
template <class Access>
Traversed traverse(Access& tx, const gc::Local<Outer>& first, const Settings& settings, std::uint32_t seed) {
  auto& mutator = tx.mutator();
  gc::Local<Outer> outer(mutator, first);
  gc::Local<Inner> node(mutator), other(mutator);
  gc::Local<Inner> inserted(mutator);
  gc::Local<Box> box(mutator), last(mutator);
  gc::Local<Junk> keep(mutator), junk(mutator);
  // The first value of a new object's field.
  const auto initialise = [&](const auto& object, auto field, const auto& value) {
    if (settings.logs_initialisers)
      tx.write(object, field, value);
    else if constexpr (requires { value.get(); })
      (object.get()->*field).init(value.get());
    else
      (object.get()->*field).init(value);
  };
  double sum = 0;
  std::int64_t grown = 0;
  std::uint32_t state = seed;
  for (; outer; outer = tx.read(outer, &Outer::next)) {
    for (node = tx.read(outer, &Outer::head); node; node = tx.read(node, &Inner::next)) {
      state = xorshift(state);
      const std::uint32_t event = (state >> 1) % 100;
      box = tx.read(node, &Inner::box);
      sum += tx.read(box, &Box::number);
      if (event < settings.bounds[0]) {
        tx.write(box, &Box::number, sum);
      } else if (event < settings.bounds[1]) {
        last = settings.enlists_junk ? tx.template create<Box>() : mutator.template allocate<Box>();
        initialise(last, &Box::number, sum);
      } else if (event < settings.bounds[2]) {
        junk = settings.enlists_junk ? tx.template create<Junk>() : mutator.template allocate<Junk>();
        initialise(junk, &Junk::next, keep);
        initialise(junk, &Junk::number, sum);
        keep = junk;
      } else if (event < settings.bounds[3]) {
        box = tx.template create<Box>();
        initialise(box, &Box::number, sum);
        other = tx.read(node, &Inner::next);
        inserted = tx.template create<Inner>();
        initialise(inserted, &Inner::next, other);
        initialise(inserted, &Inner::box, box);
        tx.write(node, &Inner::next, inserted);
        ++grown;
      } else if (event < settings.bounds[4]) {
        other = tx.read(node, &Inner::next);
        if (other) {
          other = tx.read(other, &Inner::next);
          tx.write(node, &Inner::next, other);
          --grown;
        }
      }
    }
    tx.safepoint();
  }
  return {sum, grown};
}

Outer* build(Worker& worker, std::uint32_t size) {
  gc::Local<Outer> outer(worker.mutator);
  gc::Local<Inner> inner(worker.mutator);
  gc::Local<Box> box(worker.mutator);
  for (std::uint32_t i = 0; i < size; ++i) {
    inner = nullptr;
    for (std::uint32_t k = 0; k < size; ++k) {
      box = worker.mutator.allocate<Box>();
      box->number.init(1.0 / (1 + k));
      auto* const node = worker.mutator.allocate<Inner>();
      node->next.init(inner.get());
      node->box.init(box.get());
      inner = node;
    }
    auto* const element = worker.mutator.allocate<Outer>();
    element->next.init(outer.get());
    element->head.init(inner.get());
    outer = element;
  }
  return outer.get();
}

// returns the number of nodes; 0 if something in the structure is wrong, or if there are twice as many as expected
std::uint64_t count_nodes(Worker& worker, Outer* first, std::uint32_t size, std::uint64_t expected) {
  gc::Local<Outer> outer(worker.mutator, first);
  gc::Local<Inner> node(worker.mutator);
  gc::Local<Box> box(worker.mutator);
  PlainAccess& plain = worker.plain();
  std::uint64_t nodes = 0, outers = 0;
  const std::uint64_t most = 2 * expected;
  for (; outer; outer = plain.read(outer, &Outer::next), ++outers)
    for (node = plain.read(outer, &Outer::head); node; node = plain.read(node, &Inner::next)) {
      box = plain.read(node, &Inner::box);
      if (!box || std::isnan(plain.read(box, &Box::number)) || ++nodes > most) return 0;
    }
  return outers == size ? nodes : 0;
}

class GcBench {
 public:
  using Settings = managed::Settings;
  static std::size_t live_bytes(const Settings& settings, unsigned threads) { return settings.live_bytes() * threads; }

  GcBench(Session& session, const Settings& settings, const Options& options)
      : settings_(settings), seed_(static_cast<std::uint32_t>(options.seed) * 2654435761U), done_(options.threads) {
    for (unsigned i = 0; i < options.threads; ++i) roots_.emplace_back(session.heap);
  }

  void build(Worker& builder) {
    for (auto& root : roots_) root.set(managed::build(builder, settings_.size));
  }

  std::uint64_t work(Worker& worker, unsigned thread, Pace& pace) {
    gc::Local<Outer> first(worker.mutator, roots_[thread].get());
    std::uint32_t seed = seed_ + thread + 1;
    std::uint64_t done = 0;
    Traversed all = done_[thread];
    for (; pace.goes_on(done); ++done) {
      seed = xorshift(seed | 1);
      const Traversed one = worker.atomically([&](auto& tx) { return traverse(tx, first, settings_, seed); });
      all.sum += one.sum;
      all.grown += one.grown;
    }
    done_[thread] = all;
    return done;
  }

  const char* check(Worker& checker) {
    const std::uint64_t built = std::uint64_t{settings_.size} * settings_.size;
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const std::uint64_t expected = built + static_cast<std::uint64_t>(done_[i].grown);
      const std::uint64_t count = count_nodes(checker, roots_[i].get(), settings_.size, expected);
      if (count == 0) return "a list is broken";
      if (count != expected) return "nodes that were inserted are missing, or deleted ones are there";
      nodes_ += count;
      checksum_ ^= std::rotl(std::bit_cast<std::uint64_t>(done_[i].sum), static_cast<int>(i % 64));
    }
    return nullptr;
  }

  void add_to(base::JsonLine& line) { line.field("nodes", nodes_).field("checksum", checksum_ >> 12); }

 private:
  const Settings settings_;
  const std::uint32_t seed_;
  std::deque<gc::Global<Outer>> roots_;
  std::vector<Traversed> done_;  // of each thread, together
  std::uint64_t nodes_ = 0, checksum_ = 0;
};

bool run(const Options& options, Recorder& recorder) {
  return run_program<GcBench>(options, recorder, Settings(options.parameters).operations);
}

const base::Registration<Workload> registration{
    Workload{.name = "gcbench",
             .summary = "private lists of lists, walked by transactions that allocate",
             .kinds = {SyncKind::managed},
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::managed
