#include "workloads/applications/shared/yada_input.hpp"

#include <array>

namespace loam::workloads::yada {
namespace {

// BSD's random() of degree 31, seeded in the way of its first releases.
class BsdRandom {
 public:
  BsdRandom() noexcept {
    state_[0] = 1;
    for (unsigned i = 1; i < kDegree; ++i) state_[i] = 1103515245u * state_[i - 1] + 12345u;
    for (unsigned i = 0; i < 10 * kDegree; ++i) (*this)();
  }

  // 31 bits
  std::uint32_t operator()() noexcept {
    state_[front_] += state_[rear_];
    const std::uint32_t drawn = state_[front_] >> 1;
    front_ = (front_ + 1) % kDegree;
    rear_ = (rear_ + 1) % kDegree;
    return drawn;
  }

 private:
  static constexpr unsigned kDegree = 31, kSeparation = 3;

  std::array<std::uint32_t, kDegree> state_;
  unsigned front_ = kSeparation, rear_ = 0;
};

}  // namespace

std::vector<geometry::Point> make_points(std::uint64_t count) {
  BsdRandom random;
  const auto coordinate = [&] {
    const std::int64_t high = random(), low = random();
    return static_cast<double>((high - (std::int64_t{1} << 30)) * (std::int64_t{1} << 23) + low / 256);
  };
  std::vector<geometry::Point> points;
  points.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double x = coordinate();
    points.push_back({x, coordinate()});
  }
  return points;
}

}  // namespace loam::workloads::yada
