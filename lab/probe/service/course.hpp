#pragma once
// What a process holds over time: live bytes as the program counts them, resident bytes as the system does.
//
// Nothing here allocates after the start, because an allocator may give memory back in any call.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace service {

// One count for each thread, in a cache line of its own, so that counting does not slow the threads down together.
struct alignas(128) Count {
  std::atomic<std::int64_t> value{0};
};

// Bytes of blocks that the program holds. A block is counted by the thread that makes it and uncounted by the one that frees it.
class Live {
 public:
  static constexpr int kThreadsMax = 64;

  void add(int thread, std::int64_t bytes) {
    auto& own = counts_[thread].value;
    own.store(own.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const Count& count : counts_) sum += count.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  Count counts_[kThreadsMax];
};

// A block that knows its size; ends the process where the allocator has no more.
inline void* make(std::size_t bytes) {
  void* const made = std::malloc(bytes);
  if (made == nullptr) {
    std::fputs("service: out of memory\n", stderr);
    std::_Exit(3);
  }
  std::memset(made, 1, bytes);
  std::memcpy(made, &bytes, sizeof bytes);
  return made;
}

inline std::int64_t size_of(const void* made) {
  std::size_t bytes;
  std::memcpy(&bytes, made, sizeof bytes);
  return static_cast<std::int64_t>(bytes);
}

inline std::int64_t resident_bytes() {
  char text[128];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (length <= 0) std::_Exit(3);
  text[length] = 0;
  return std::strtol(std::strchr(text, ' '), nullptr, 10) * sysconf(_SC_PAGESIZE);
}

// The samples of a run, in the order in which they were taken.
class Course {
 public:
  explicit Course(const Live& live) : live_(live), begin_(std::chrono::steady_clock::now()) {}

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  // kind: of a moment that the scenario names, or "tick" for one that only time gives
  void sample(const char* kind) {
    const std::size_t place = count_.fetch_add(1, std::memory_order_relaxed);
    if (place >= kSamplesMax) {
      std::fputs("service: too many samples\n", stderr);
      std::_Exit(3);
    }
    samples_[place] = {kind, seconds(), live_.bytes(), resident_bytes()};
  }

  // One line for each sample: its kind, seconds since the start, live bytes, resident bytes.
  void print() const {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      const Sample& one = samples_[i];
      std::printf("%s %.3f %lld %lld\n", one.kind, one.seconds, static_cast<long long>(one.live),
                  static_cast<long long>(one.resident));
    }
  }

 private:
  struct Sample {
    const char* kind;
    double seconds;
    std::int64_t live, resident;
  };
  static constexpr std::size_t kSamplesMax = 16384;

  const Live& live_;
  std::chrono::steady_clock::time_point begin_;
  std::atomic<std::size_t> count_{0};
  Sample samples_[kSamplesMax];
};

// Samples a course all the time that it exists.
class Sampler {
 public:
  Sampler(Course& course, std::chrono::milliseconds step)
      : thread_([this, &course, step] {
          while (!over_.load(std::memory_order_relaxed)) {
            course.sample("tick");
            std::this_thread::sleep_for(step);
          }
        }) {}
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler() {
    over_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// xorshift64*: a draw of 64 bits.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dULL;
  }
  // returns: 0 to limit - 1
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>((next() >> 32) % limit); }
  // A size between two, each doubling as likely as the next: what mixes of requests look like.
  std::size_t size_between(std::size_t least, std::size_t most) {
    int doublings = 0;
    while ((least << (doublings + 1)) <= most) ++doublings;
    const std::size_t low = least << below(static_cast<std::size_t>(doublings) + 1);
    const std::size_t size = low + below(low);
    return size < most ? size : most;
  }

 private:
  std::uint64_t state_;
};

}  // namespace service
