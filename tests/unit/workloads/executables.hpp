// The workload executables of this build, for black-box tests.
#pragma once

#include "tests/unit/support/json.hpp"
#include "tests/unit/support/process.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace loam::tests {

inline std::string executable(const std::string& name) { return (build_folder() / ("loam-workload-" + name)).string(); }

// Names of all that this build made (libitm is left out of sanitizer builds).
inline std::vector<std::string> executable_names() {
  std::vector<std::string> names;
  const std::string prefix = "loam-workload-";
  for (const auto& entry : std::filesystem::directory_iterator(build_folder())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(prefix) && entry.path().extension().empty()) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

// Whether this machine has what a synchronisation needs, such as hardware transactions.
inline bool runs_here(const Json& description) {
  const Json& sync = description["sync"];
  return !sync.has("lacks") || sync["lacks"].string().empty();
}

inline Schema record_schema() {
  return Schema(Json::parse(read_file(std::filesystem::path(LOAM_SOURCE_ROOT) / "schema" / "record.schema.json")));
}

// The records of a run, parsed, in order.
inline std::vector<Json> records(const Finished& finished) {
  std::vector<Json> all;
  for (const auto& line : finished.lines()) all.push_back(Json::parse(line));
  return all;
}

// The first record of that kind; throws if there is none.
inline Json record(const Finished& finished, std::string_view kind) {
  for (const auto& one : records(finished))
    if (one["kind"].string() == kind) return one;
  throw std::runtime_error("no " + std::string(kind) + " record; stderr: " + finished.err);
}

// The seconds that a run for a given time measured; the longest of up to five runs, the first with `enough_s` is the
// last. A worker that sees the start late stamps it late. run(): starts one and returns its iteration.
template <class Run>
double longest_measured_s(double enough_s, Run run) {
  double longest_s = 0;
  for (int i = 0; i < 5 && longest_s < enough_s; ++i) longest_s = std::max(longest_s, run()["elapsed_s"].number());
  return longest_s;
}

}  // namespace loam::tests
