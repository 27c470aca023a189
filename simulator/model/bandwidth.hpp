// A memory or a link that transfers a limited number of bytes per cycle.
//
// Time is divided into buckets. A line uses bandwidth in the first buckets that have some left, from the time of its
// request on. Requests do not come in the order of their times, because cores run ahead of each other. With a single
// time "busy until", a core that is behind would wait for later requests of others.
#pragma once

#include "simulator/model/arena.hpp"

#include <algorithm>
#include <cstdint>

namespace loam::simulator {

class Bandwidth {
 public:
  // bytes_per_cycle_milli: in thousandths; 0: unlimited
  void init(Arena& arena, std::uint64_t bytes_per_cycle_milli) noexcept {
    rate_ = bytes_per_cycle_milli;
    if (rate_ == 0) return;
    buckets_ = arena.zeros<Bucket>(kBuckets);
    per_rate_ = (std::uint64_t{1} << 32) / rate_;
  }

  // Carries `bytes` that are asked for at `now`. returns the cycles that they wait beyond their own time
  std::uint64_t wait(std::uint64_t now, std::uint64_t bytes) noexcept {
    if (rate_ == 0) return 0;
    const std::uint64_t room = rate_ << kShift, own = cycles(bytes * 1000);
    std::uint64_t left = bytes * 1000;
    std::uint64_t at = now >> kShift;
    for (std::uint64_t tried = 0; tried < kBuckets; ++tried, ++at) {
      Bucket& bucket = buckets_[at % kBuckets];
      if (bucket.time > at + 1) continue;  // its place belongs to a later time already
      if (bucket.time != at + 1) bucket = {at + 1, 0};
      const std::uint64_t taken = std::min(left, room - bucket.used);
      bucket.used += taken;
      left -= taken;
      if (left == 0) break;
    }
    const Bucket& last = buckets_[at % kBuckets];
    const std::uint64_t done = (at << kShift) + cycles(last.used);
    return done > now + own ? done - now - own : 0;
  }

 private:
  static constexpr unsigned kShift = 6;  // 64 cycles
  static constexpr std::uint64_t kBuckets = 4096;

  struct Bucket {
    std::uint64_t time;  // its number + 1; 0: never used
    std::uint64_t used;  // thousandths of bytes
  };

  // The time that so many thousandths of bytes take; at most those of a bucket or a line, below 2^32.
  std::uint64_t cycles(std::uint64_t amount) const noexcept { return amount * per_rate_ >> 32; }

  std::uint64_t rate_ = 0, per_rate_ = 0;
  Bucket* buckets_ = nullptr;
};

}  // namespace loam::simulator
