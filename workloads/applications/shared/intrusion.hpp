// The traffic of intruder: flows cut into packets, some of them attacks, and the detector that finds these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loam::workloads::applications::intrusion {

// A part of a flow; the bytes follow in the same block. Nothing of it changes.
struct Packet {
  std::int64_t flow, fragment, fragments, length;

  const char* data() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

struct ByFragment {
  static int compare(const Packet* a, const Packet* b) noexcept {
    return a->fragment < b->fragment ? -1 : a->fragment > b->fragment ? 1 : 0;
  }
};

// Whether a text, which ends with a zero byte, holds a word of the dictionary. Turns its letters to lower case.
bool is_attack(char* text) noexcept;

struct TrafficShape {
  std::uint64_t attack_percent, length_max, flows;
  std::uint32_t seed;
};

struct Traffic {
  std::vector<Packet*> packets;  // shuffled
  std::vector<bool> is_attack;   // by flow, from 1
  std::uint64_t attacks = 0;
};

// allocate(bytes): where the packets come from, one block each.
Traffic make_traffic(const TrafficShape& shape, void* (*allocate)(void* context, std::size_t bytes), void* context);

}  // namespace loam::workloads::applications::intrusion
