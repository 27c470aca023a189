#include "workloads/applications/shared/geometry.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace loam::workloads::geometry {
namespace {

using Wide = __int128;

// A signed number of 256 bits: four words, the lowest first, two's complement.
using Wider = std::array<std::uint64_t, 4>;

Wider negative(Wider a) noexcept {
  unsigned carry = 1;
  for (auto& word : a) {
    word = ~word + carry;
    carry = carry != 0 && word == 0 ? 1 : 0;
  }
  return a;
}

Wider sum(const Wider& a, const Wider& b) noexcept {
  Wider result{};
  unsigned __int128 carry = 0;
  for (unsigned i = 0; i < 4; ++i) {
    carry += static_cast<unsigned __int128>(a[i]) + b[i];
    result[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return result;
}

Wider product(Wide a, Wide b) noexcept {
  const bool below_zero = (a < 0) != (b < 0);
  const auto magnitude = [](Wide value) { return static_cast<unsigned __int128>(value < 0 ? -value : value); };
  const unsigned __int128 x = magnitude(a), y = magnitude(b);
  const std::uint64_t words_x[] = {static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(x >> 64)};
  const std::uint64_t words_y[] = {static_cast<std::uint64_t>(y), static_cast<std::uint64_t>(y >> 64)};
  Wider result{};
  for (unsigned i = 0; i < 2; ++i) {
    unsigned __int128 carry = 0;
    for (unsigned j = 0; j < 2; ++j) {
      carry += static_cast<unsigned __int128>(words_x[i]) * words_y[j] + result[i + j];
      result[i + j] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    result[i + 2] = static_cast<std::uint64_t>(carry);
  }
  return below_zero ? negative(result) : result;
}

int sign(const Wider& a) noexcept {
  if (a[3] >> 63 != 0) return -1;
  return std::ranges::any_of(a, [](std::uint64_t word) { return word != 0; }) ? 1 : 0;
}

Wide whole(double value) noexcept { return static_cast<std::int64_t>(value); }

// The results in doubles are off by less than this share of the sum of the sizes of their terms: each difference, product
// and sum rounds by 2^-53, and no term passes more than 10 of them.
constexpr double kRounding = 0x1p-49;

}  // namespace

int orientation(const Point& a, const Point& b, const Point& c) noexcept {
  const double left = (b.x - a.x) * (c.y - a.y), right = (b.y - a.y) * (c.x - a.x);
  const double difference = left - right;
  if (std::abs(difference) > kRounding * (std::abs(left) + std::abs(right))) return difference > 0 ? 1 : -1;
  const Wide exact =
      (whole(b.x) - whole(a.x)) * (whole(c.y) - whole(a.y)) - (whole(b.y) - whole(a.y)) * (whole(c.x) - whole(a.x));
  return exact > 0 ? 1 : exact < 0 ? -1 : 0;
}

int in_circle(const Point& a, const Point& b, const Point& c, const Point& d) noexcept {
  const double ax = a.x - d.x, ay = a.y - d.y, bx = b.x - d.x, by = b.y - d.y, cx = c.x - d.x, cy = c.y - d.y;
  const double a2 = ax * ax + ay * ay, b2 = bx * bx + by * by, c2 = cx * cx + cy * cy;
  const double value = a2 * (bx * cy - by * cx) + b2 * (cx * ay - cy * ax) + c2 * (ax * by - ay * bx);
  const double size = a2 * (std::abs(bx * cy) + std::abs(by * cx)) + b2 * (std::abs(cx * ay) + std::abs(cy * ax)) +
                      c2 * (std::abs(ax * by) + std::abs(ay * bx));
  if (std::abs(value) > kRounding * size) return value > 0 ? 1 : -1;

  const Wide dx = whole(d.x), dy = whole(d.y);
  const Wide x[] = {whole(a.x) - dx, whole(b.x) - dx, whole(c.x) - dx};
  const Wide y[] = {whole(a.y) - dy, whole(b.y) - dy, whole(c.y) - dy};
  Wider exact{};
  for (unsigned i = 0; i < 3; ++i) {
    const unsigned j = (i + 1) % 3, k = (i + 2) % 3;
    exact = sum(exact, product(x[i] * x[i] + y[i] * y[i], x[j] * y[k] - y[j] * x[k]));
  }
  return sign(exact);
}

}  // namespace loam::workloads::geometry
