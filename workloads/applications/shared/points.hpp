// The input of kmeans: points around random centres, made as the published input files are.
//   A file has one line per point: a number from 1 and the attributes, in 12 significant digits. The attributes that
//   kmeans reads are what such a text gives as float, so that they are the same as from the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace loam::workloads::applications {

struct PointsShape {
  std::uint64_t points, attributes, centres;
};

// The text of the whole file.
std::string points_file(const PointsShape& shape);

// What kmeans works on: the file's attributes, by point; each attribute scaled to mean 0 and deviation 1.
// out: points * attributes
void make_points(const PointsShape& shape, std::span<float> out);

}  // namespace loam::workloads::applications
