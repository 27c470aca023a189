// intruder: packets of fragmented flows are put together in a shared map and searched for attacks.
//   Source: STAMP (Cao Minh et al., IISWC 2008); the algorithm and its inputs as published, written anew.
//   Three transactions per packet: one takes it from a queue, one puts it to its flow, one takes a whole flow if there
//   is any. The two queues and the map are what threads meet in. Each packet costs a list node, each flow some blocks
//   more. A whole flow is searched outside of transactions, and its bytes are freed there by whoever took it: no
//   transaction ever reads them.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/intrusion.hpp"

#include "structures/list.hpp"
#include "structures/red_black_tree.hpp"
#include "structures/ring_queue.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

namespace loam::workloads::applications {
namespace {

using intrusion::Packet;

constexpr std::int64_t kDecodedCapacity = 1024;

constexpr ParameterSpec kOwnParameters[] = {
    sized_parameter("attack_percent", 100, "%", "share of flows that are attacks; 0: 10"),
    sized_parameter("length_max", 65536, "B", "the longest payload that is no attack; 0: as size says"),
    sized_parameter("flows", 1 << 24, "1", "number of flows; 0: as size says"),
    sized_parameter("input_seed", (std::int64_t{1} << 32) - 1, "", "of the traffic; 0: 1"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned { kTakePacket, kProcess, kTakeComplete };
constexpr std::string_view kSiteNames[] = {"tx_take_packet", "tx_process", "tx_take_complete"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kTakePacket]),
    site_metric(kSiteNames[kProcess]),
    site_metric(kSiteNames[kTakeComplete]),
    {"attacks", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"attacks_found", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

intrusion::TrafficShape shape_of(const ParameterValues& parameters) {
  return {.attack_percent = sized(parameters, "attack_percent", {10, 10, 10, 10}),
          .length_max = sized(parameters, "length_max", {16, 4, 128, 128}),
          .flows = sized(parameters, "flows", {16384, 2038, 16384, 262144}),
          .seed = static_cast<std::uint32_t>(sized(parameters, "input_seed", {1, 1, 1, 1}))};
}

void check(const ParameterValues& parameters) {
  const auto shape = shape_of(parameters);
  constexpr double kPacketBytes = sizeof(Packet) + 32 + sizeof(Packet*);
  reject_if_too_large(parameters,
                      static_cast<double>(shape.flows) * static_cast<double>(shape.length_max) / 4 * kPacketBytes);
}

// A flow that has all its packets.
struct Decoded {
  std::int64_t flow;
  char* data;
};

// The bytes of a flow's packets, one after the other. The buffer is new: nobody else sees it.
LOAM_PURE_IN_TRANSACTIONS void append(char* buffer, std::int64_t at, const Packet* packet) noexcept {
  std::memcpy(buffer + at, packet->data(), static_cast<std::size_t>(packet->length));
}
LOAM_PURE_IN_TRANSACTIONS void finish(char* buffer, std::int64_t length) noexcept { buffer[length] = '\0'; }

template <class SyncType>
class Intruder {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Intruder(const Options& options) : shape_(shape_of(options.parameters)) {}
  ~Intruder() {
    for (Packet* const packet : traffic_.packets) std::free(packet);
  }

  void set_up(SetupAccess<SyncType>& access) {
    traffic_ = intrusion::make_traffic(
        shape_,
        [](void* context, std::size_t bytes) { return static_cast<SetupAccess<SyncType>*>(context)->allocate(bytes); },
        &access);
    packets_.emplace(access, static_cast<std::int64_t>(traffic_.packets.size()) + 2);
    for (const Packet* const packet : traffic_.packets) packets_->push(access, packet);
    decoded_.emplace(access, kDecodedCapacity);
    flows_.for_each_fixed_block([&](const void* block, std::size_t bytes) { access.note(block, bytes); });
    access.note(this, sizeof(*this));
  }

  void work(Worker<SyncType>& worker) {
    std::vector<std::int64_t> found;
    std::uint64_t packets = 0, searched = 0;
    while (const Packet* const packet = take_packet(worker)) {
      ++packets;
      process(worker, *packet);
      const Decoded decoded = take_complete(worker);
      if (decoded.data == nullptr) continue;
      ++searched;
      if (intrusion::is_attack(decoded.data)) found.push_back(decoded.flow);
      std::free(decoded.data);
    }
    worker.did(packets);
    const std::lock_guard guard(lock_);
    found_.insert(found_.end(), found.begin(), found.end());
    searched_ += searched;
  }

  Outcome verify(SetupAccess<SyncType>&) {
    for (const std::int64_t flow : found_)
      if (!traffic_.is_attack[static_cast<std::size_t>(flow)]) return {"I1: every flow that was reported is an attack"};
    if (found_.size() != traffic_.attacks) return {"I2: every attack is reported once"};
    const auto of_flows = flows_.verify();
    if (!of_flows.holds()) return {of_flows.broken};
    if (of_flows.elements != 0 || packets_->elements() != 0 || decoded_->elements() != 0)
      return {"I3: nothing is left in the queues and the map"};
    // What was searched has been freed by whoever took it, and not through the synchronisation.
    return {.reachable_blocks = static_cast<std::int64_t>(traffic_.packets.size() + 2 + searched_)};
  }

  void add_to(base::JsonLine& line) const {
    line.field("attacks", traffic_.attacks).field("attacks_found", found_.size());
  }

 private:
  using Fragments = structures::List<const Packet*, intrusion::ByFragment>;

  const Packet* take_packet(Worker<SyncType>& worker) {
    return worker.update(kTakePacket, [this](auto& access) {
      const Packet* packet = nullptr;
      packets_->pop(access, packet);
      return packet;
    });
  }

  void process(Worker<SyncType>& worker, const Packet& packet) {
    worker.update(kProcess, [&](auto& access) {
      if (packet.fragments == 1) {
        auto* const data = static_cast<char*>(access.allocate(static_cast<std::size_t>(packet.length) + 1));
        append(data, 0, &packet);
        finish(data, packet.length);
        decoded_->push(access, access.template create<Decoded>(packet.flow, data));
        return true;
      }
      Fragments* const fragments = flows_.get(access, packet.flow, nullptr);
      if (fragments == nullptr) {
        auto* const first = access.template create<Fragments>();
        first->insert(access, &packet);
        flows_.insert(access, packet.flow, first);
        return true;
      }
      const Packet* const* const first = fragments->first(access);
      if (first == nullptr || (*first)->fragments != packet.fragments) [[unlikely]]
        broken(packet.flow);
      fragments->insert(access, &packet);
      if (fragments->size(access) != packet.fragments) return true;
      decoded_->push(access, access.template create<Decoded>(packet.flow, assemble(access, *fragments)));
      fragments->destroy_nodes(access);
      access.destroy(fragments);
      flows_.remove(access, packet.flow);
      return true;
    });
  }

  template <class Access>
  static char* assemble(Access& access, const Fragments& fragments) {
    std::int64_t length = 0, next = 0;
    fragments.visit(access, [&](const Packet* packet) {
      if (packet->fragment != next++) [[unlikely]]
        broken(packet->flow);
      length += packet->length;
      return true;
    });
    auto* const data = static_cast<char*>(access.allocate(static_cast<std::size_t>(length) + 1));
    std::int64_t at = 0;
    fragments.visit(access, [&](const Packet* packet) {
      append(data, at, packet);
      at += packet->length;
      return true;
    });
    finish(data, length);
    return data;
  }

  // A flow without bytes if there is none.
  Decoded take_complete(Worker<SyncType>& worker) {
    return worker.update(kTakeComplete, [this](auto& access) {
      Decoded* decoded = nullptr;
      if (!decoded_->pop(access, decoded)) return Decoded{0, nullptr};
      const Decoded taken = *decoded;
      access.destroy(decoded);
      return taken;
    });
  }

  // The published code reports an error, which its input never has.
  LOAM_PURE_IN_TRANSACTIONS [[noreturn]] static void broken(std::int64_t flow) {
    LOAM_FATAL("I4: the fragments of a flow are 0, 1, 2, ... and agree on their number: flow {}", flow);
  }

  const intrusion::TrafficShape shape_;
  intrusion::Traffic traffic_;
  std::optional<structures::RingQueue<const Packet*>> packets_;
  std::optional<structures::RingQueue<Decoded*>> decoded_;
  structures::RedBlackMap<std::int64_t, Fragments*> flows_;
  std::mutex lock_;
  std::vector<std::int64_t> found_;
  std::uint64_t searched_ = 0;
};

const base::Registration<Workload> registration{
    Workload{.name = "intruder",
             .summary = "puts packets of flows together and searches them; two hot queues and a map; counts packets",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Intruder>}};

}  // namespace
}  // namespace loam::workloads::applications
