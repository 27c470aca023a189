// What the queue has beside other containers: two ends, and an order.
#pragma once

#include "workloads/objects/shared/container.hpp"

namespace loam::workloads::objects {

struct QueueSettings : ContainerSettings {
  explicit QueueSettings(const Options& options)
      : ContainerSettings(options), domains(static_cast<unsigned>(options.parameters.integer("domains"))) {}

  unsigned domains;
};

struct QueueWork : ContainerWork<Plain> {
  std::uint64_t out_of_order;  // always a mistake
  // The last element of each thread that this one has dequeued; those of one thread come in its order.
  std::uint64_t last_of[kThreadsMax + 1];

  void took(std::int64_t value) noexcept {
    const auto word = static_cast<std::uint64_t>(value);
    std::uint64_t& last = last_of[word >> kSequenceBits];
    if (word <= last) ++out_of_order;
    last = word;
    ContainerWork::took(value);
  }
  std::string_view mistake() const noexcept {
    return out_of_order == 0 ? ContainerWork::mistake() : "elements of one thread were dequeued out of their order";
  }
};

}  // namespace loam::workloads::objects
