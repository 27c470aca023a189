// queue: every thread enqueues and dequeues in turn at one shared queue, over any synchronisation.
//   Source: Sid-Lakhdar, Ropars, "Impact of memory allocation on the performance of a delegation synchronization
//   algorithm", 2016, section 4.3; Michael and Scott's loop, with the time of thinking between two operations.
//   Each element is a block of the process's allocator, made and freed by the executor or by the client (alloc).
// Dispatch is by type once per run; the loop holds no indirect call but those of the scheme.
#include "structures/queue.hpp"
#include "structures/ordered_access.hpp"
#include "workloads/harness/joined.hpp"
#include "workloads/objects/shared/queue.hpp"

#include LOAM_SYNC_HEADER

namespace loam::workloads {
namespace {

using namespace objects;

// Objects that a synchronisation has for the parts of a structure.
template <class SyncType>
constexpr unsigned domains_of() {
  if constexpr (requires { SyncType::kDomains; })
    return SyncType::kDomains;
  else
    return 1;
}

// The queue of whatever lets operations run one at a time: a lock, a scheme of delegation, transactions, nothing.
template <class SyncType>
class SyncedQueue : public Counted<SyncType> {
 public:
  static constexpr bool kTwoDomains = domains_of<SyncType>() == 2;

  using Queue = structures::Queue;

  explicit SyncedQueue(const QueueSettings& settings)
      : Counted<SyncType>(settings.domains == 1), allocates_(settings.allocates), two_(settings.domains == 2) {}

  void put(std::int64_t value) {
    if (allocates_ == Allocates::client) {
      structures::PlainAccess outside;
      Queue::Node* const node = outside.create<Queue::Node>(value, static_cast<Queue::Node*>(nullptr));
      at_tail([this, node](auto& access) {
        this->note_turn();
        queue_.link(access, node);
        return true;
      });
    } else {
      at_tail([this, value](auto& access) {
        this->note_turn();
        queue_.enqueue(access, value);
        return true;
      });
    }
  }

  bool take(std::int64_t& value) {
    struct Taken {
      Queue::Node* node;
      std::int64_t value;
    };
    if (allocates_ == Allocates::client) {
      const Taken taken = at_head([this](auto& access) {
        this->note_turn();
        Taken taken{nullptr, 0};
        taken.node = queue_.unlink(access, taken.value);
        return taken;
      });
      if (taken.node == nullptr) return false;
      value = taken.value;
      structures::PlainAccess().destroy(taken.node);
      return true;
    }
    struct Found {
      bool found;
      std::int64_t value;
    };
    const Found found = at_head([this](auto& access) {
      this->note_turn();
      Found found{false, 0};
      found.found = queue_.dequeue(access, found.value);
      return found;
    });
    value = found.value;
    return found.found;
  }

  // At rest.
  Rest rest() const { return rest_of<Plain>(queue_); }

 private:
  template <class F>
  auto at_tail(F&& f) {
    if constexpr (kTwoDomains) {
      if (two_) return SyncType::template update_in<structures::OrderedAccess>(1, f);
    }
    return SyncType::update(f);
  }
  template <class F>
  auto at_head(F&& f) {
    if constexpr (kTwoDomains) {
      if (two_) return SyncType::template update_in<structures::OrderedAccess>(0, f);
    }
    return SyncType::update(f);
  }

  const Allocates allocates_;
  const bool two_;
  Queue queue_;
};

constexpr ParameterSpec kOwnParameters[] = {
    kAllocParameter,
    ParameterSpec::integer("domains", 1, 1, 2, "1",
                           "2: head and tail are two objects of the synchronisation, as in the queue of two locks"),
    kElementsParameter,
};
constexpr auto kParameters = joined(kOwnParameters, kObjectParameters);

constexpr LatencyNames kLatencies[] = {
    {"enqueue_p50_ns", "enqueue_p99_ns", "enqueue_max_ns"},
    {"dequeue_p50_ns", "dequeue_p99_ns", "dequeue_max_ns"},
};
constexpr auto kMetrics = metrics_of(kLatencies);

template <class SyncType>
constexpr bool kBringsQueue = requires { typename SyncType::Queue; };

void check(const ParameterValues& values) {
  check_alloc(values, is_transactional<Sync>());
  if (values.integer("domains") > domains_of<Sync>())
    reject("-p domains", "2", "this synchronisation has one object for all data",
           "a combining scheme or one of its locks has two");
}

template <class SyncType, class Container>
bool run_queue(const Options& options, Recorder& recorder) {
  return run_container<SyncType, Container, QueueWork, QueueSettings>(options, recorder, kLatencies,
                                                                      {sizeof(structures::Queue::Node), 1});
}

template <class SyncType>
bool run_on(const Options& options, Recorder& recorder) {
  if constexpr (kBringsQueue<SyncType>)
    return run_queue<SyncType, typename SyncType::Queue>(options, recorder);
  else if constexpr (kBringsObjects<SyncType>)
    return false;  // it brings others: kinds() does not offer this one
  else
    return run_queue<SyncType, SyncedQueue<SyncType>>(options, recorder);
}

const base::Registration<Workload> registration{
    Workload{.name = "queue",
             .summary = "every thread enqueues and dequeues in turn at one shared queue",
             .kinds = kinds(kBringsQueue<Sync>),
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check,
             .run = [](const Options& options, Recorder& recorder) {
               return options.blame ? run_on<BlameSync>(options, recorder) : run_on<Sync>(options, recorder);
             }}};

}  // namespace
}  // namespace loam::workloads
