// stack: every thread pushes and pops in turn at one shared stack, over any synchronisation.
//   Source: the second object of Hendler, Incze, Shavit, Tzafrir: "Flat combining and the synchronization-parallelism
//   tradeoff", SPAA 2010, in the loop of the workload `queue`. Both operations meet in one word.
//   Each element is a block of the process's allocator, made and freed by the executor or by the client (alloc).
#include "structures/stack.hpp"
#include "structures/plain_access.hpp"
#include "workloads/harness/joined.hpp"
#include "workloads/objects/shared/container.hpp"

#include LOAM_SYNC_HEADER

namespace loam::workloads {
namespace {

using namespace objects;

// The stack of whatever lets operations run one at a time.
template <class SyncType>
class SyncedStack : public Counted<SyncType> {
 public:
  using Stack = structures::Stack;

  explicit SyncedStack(const ContainerSettings& settings) : allocates_(settings.allocates) {}

  void put(std::int64_t value) {
    if (allocates_ == Allocates::client) {
      structures::PlainAccess outside;
      Stack::Node* const node = outside.create<Stack::Node>(value, static_cast<Stack::Node*>(nullptr));
      SyncType::update([this, node](auto& access) {
        this->note_turn();
        stack_.link(access, node);
        return true;
      });
    } else {
      SyncType::update([this, value](auto& access) {
        this->note_turn();
        stack_.push(access, value);
        return true;
      });
    }
  }

  bool take(std::int64_t& value) {
    // node: for the client to free; null if the executor has done so
    struct Taken {
      Stack::Node* node;
      std::int64_t value;
      bool found;
    };
    const Taken taken = SyncType::update([this](auto& access) {
      this->note_turn();
      Taken taken{nullptr, 0, false};
      if (allocates_ == Allocates::client) {
        taken.node = stack_.unlink(access, taken.value);
        taken.found = taken.node != nullptr;
      } else {
        taken.found = stack_.pop(access, taken.value);
      }
      return taken;
    });
    if (taken.node != nullptr) structures::PlainAccess().destroy(taken.node);
    if (taken.found) value = taken.value;
    return taken.found;
  }

  // At rest.
  Rest rest() const { return rest_of<Mixed>(stack_); }

 private:
  const Allocates allocates_;
  Stack stack_;
};

constexpr ParameterSpec kOwnParameters[] = {kAllocParameter, kElementsParameter};
constexpr auto kParameters = joined(kOwnParameters, kObjectParameters);

constexpr LatencyNames kLatencies[] = {
    {"push_p50_ns", "push_p99_ns", "push_max_ns"},
    {"pop_p50_ns", "pop_p99_ns", "pop_max_ns"},
};
constexpr auto kMetrics = metrics_of(kLatencies);

template <class SyncType>
constexpr bool kBringsStack = requires { typename SyncType::Stack; };

template <class SyncType, class Container>
bool run_stack(const Options& options, Recorder& recorder) {
  return run_container<SyncType, Container, ContainerWork<Mixed>, ContainerSettings>(
      options, recorder, kLatencies, {sizeof(structures::Stack::Node), 0});
}

template <class SyncType>
bool run_on(const Options& options, Recorder& recorder) {
  if constexpr (kBringsStack<SyncType>)
    return run_stack<SyncType, typename SyncType::Stack>(options, recorder);
  else if constexpr (kBringsObjects<SyncType>)
    return false;  // it brings others: kinds() does not offer this one
  else
    return run_stack<SyncType, SyncedStack<SyncType>>(options, recorder);
}

const base::Registration<Workload> registration{
    Workload{.name = "stack",
             .summary = "every thread pushes and pops in turn at one shared stack",
             .kinds = kinds(kBringsStack<Sync>),
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = [](const ParameterValues& values) { check_alloc(values, is_transactional<Sync>()); },
             .run =
                 [](const Options& options, Recorder& recorder) {
                   return options.blame ? run_on<BlameSync>(options, recorder) : run_on<Sync>(options, recorder);
                 }}};

}  // namespace
}  // namespace loam::workloads
