// A soak in parts, so that one of hours says how far it is and goes on where it was stopped.
//   Each part is verified by itself and then noted in a file of the folder LOAM_SOAK_FOLDER, if that is given: a number of
//   operations and the soak's name. A part that was interrupted is done again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace loam::tests {

class SoakParts {
 public:
  static constexpr std::uint64_t kMost = 20'000'000;  // operations of a part: some seconds

  // name: of a file; total: operations in all; folder: empty for none
  SoakParts(std::string name, std::uint64_t total, std::uint64_t most = kMost,
            const std::string& folder = asked_folder())
      : name_(std::move(name)), total_(total), most_(most) {
    if (folder.empty()) return;
    std::filesystem::create_directories(folder);
    file_ = std::filesystem::path(folder) / name_;
    std::ifstream(file_) >> done_;
    if (done_ != 0) say(" done before");
  }

  // Operations of the next part; 0: there is none.
  std::uint64_t next() const noexcept { return done_ >= total_ ? 0 : std::min(most_, total_ - done_); }
  std::uint64_t done() const noexcept { return done_; }

  // The part that next() said has been verified.
  void verified() {
    const std::uint64_t part = next();
    done_ += part;
    here_ += part;
    if (!file_.empty()) {
      // A new file in the place of the old one: a kill leaves one of both.
      const auto fresh = std::filesystem::path(file_).concat(".new");
      std::ofstream(fresh) << done_ << ' ' << name_ << '\n';
      std::filesystem::rename(fresh, file_);
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began_;
    char text[64];
    std::snprintf(text, sizeof text, ", %.1f million a second", static_cast<double>(here_) / spent.count() / 1e6);
    if (total_ > most_) say(text);
  }

 private:
  static std::string asked_folder() {
    const char* const folder = std::getenv("LOAM_SOAK_FOLDER");
    return folder == nullptr ? "" : folder;
  }

  void say(const char* more) const {
    std::printf("%s: %llu of %llu operations%s\n", name_.c_str(), static_cast<unsigned long long>(done_),
                static_cast<unsigned long long>(total_), more);
    std::fflush(stdout);
  }

  const std::string name_;
  const std::uint64_t total_, most_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::filesystem::path file_;
  std::uint64_t done_ = 0, here_ = 0;
};

}  // namespace loam::tests
