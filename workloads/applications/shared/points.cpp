#include "workloads/applications/shared/points.hpp"

#include "workloads/applications/shared/mersenne_twister.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace loam::workloads::applications {
namespace {

constexpr std::size_t kNumberBytes = 40;

// Calls attribute(text) for each, a point after the other.
template <class Attribute>
void draw(const PointsShape& shape, Attribute attribute) {
  PythonRandom random(0);
  std::vector<double> centres(shape.centres * shape.attributes);
  for (double& coordinate : centres) coordinate = random.random();
  const double share = 1.0 / static_cast<double>(shape.centres);
  const double sigma = share * share * share;
  for (std::uint64_t point = 0; point < shape.points; ++point) {
    const double* const centre = &centres[random.below(shape.centres) * shape.attributes];
    for (std::uint64_t i = 0; i < shape.attributes; ++i) {
      char text[kNumberBytes];
      std::snprintf(text, sizeof text, "%.12g", centre[i] + random.gauss(0, sigma));
      attribute(point, i, text);
    }
  }
}

// Of one attribute over all points, in float as the original computes it.
void scale(const PointsShape& shape, std::span<float> values, std::uint64_t attribute) {
  const auto count = static_cast<float>(shape.points);
  const auto each = [&](auto&& visit) {
    for (std::uint64_t point = 0; point < shape.points; ++point) visit(values[point * shape.attributes + attribute]);
  };
  float mean = 0, variance = 0;
  each([&](float value) { mean += value; });
  mean /= count;
  each([&](float value) { variance = static_cast<float>(variance + std::pow(static_cast<double>(value - mean), 2)); });
  const float deviation = std::sqrt(variance / count);
  each([&](float& value) { value = (value - mean) / deviation; });
}

}  // namespace

std::string points_file(const PointsShape& shape) {
  std::string file;
  draw(shape, [&](std::uint64_t point, std::uint64_t attribute, const char* text) {
    if (attribute == 0) file += std::to_string(point + 1);
    file += ' ';
    file += text;
    if (attribute + 1 == shape.attributes) file += '\n';
  });
  return file;
}

void make_points(const PointsShape& shape, std::span<float> out) {
  draw(shape, [&](std::uint64_t point, std::uint64_t attribute, const char* text) {
    out[point * shape.attributes + attribute] = static_cast<float>(std::strtod(text, nullptr));
  });
  for (std::uint64_t attribute = 0; attribute < shape.attributes; ++attribute) scale(shape, out, attribute);
}

}  // namespace loam::workloads::applications
