// A server's day.  The work of each hour is fixed, so that every allocator is asked for the same; who is slow ends the hour late.
//   A request parses a message into short strings, touches its session, looks into the cache, and builds an answer.
//   Sessions grow with each request and end after some; by night there are few of them.
//   The cache has a fixed number of entries, whose sizes follow the hour; a worker frees what another one stored.
//   From one to four a batch of two threads sorts rows of up to 200 KB and ends.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <thread>
#include <vector>

#include "scenarios.hpp"

namespace service {
namespace {

constexpr int kHours = 24, kWorkers = 4, kBatch = 2;
constexpr std::size_t kCached = 20'000, kSessions = 3'000;
constexpr int kStrings = 12;
// A worker looks at the clock after so many requests.
constexpr int kBurst = 20;
constexpr std::size_t kBatchRows = 400;

std::atomic<void*> cache[kCached];

// How busy an hour is, 0.15 at four in the morning to 1 at four in the afternoon.
double busy(int hour) { return 0.575 - 0.425 * std::cos((hour - 4) * std::numbers::pi / 12); }

// The most that an entry of the cache takes: short answers in the morning, pages in the evening.
std::size_t entry_most(int hour) { return std::size_t{1} << (10 + hour / 6); }

struct Session {
  std::array<void*, 8> parts{};
  std::size_t count = 0;
};

class Worker {
 public:
  Worker(Live& live, int number, std::uint64_t seed)
      : live_(live), number_(number), random_(seed * 100 + static_cast<std::uint64_t>(number)) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    for (Session& one : sessions_) end(one);
  }

  void request(int hour) {
    std::array<void*, kStrings> strings;
    for (void*& one : strings) one = take(random_.size_between(16, 256));
    void* const body = take(random_.size_between(256, 32'768));
    // At night only the first few sessions are in use; those of the day end when they are met again.
    const auto used = static_cast<std::size_t>(busy(hour) * kSessions);
    Session& session = sessions_[random_.below(used)];
    if (session.count == session.parts.size()) end(session);
    session.parts[session.count++] = take(random_.size_between(64, 1024));
    if (random_.below(4) == 0) end(sessions_[used + random_.below(kSessions + 1 - used)]);
    if (random_.below(3) == 0) {
      void* const stored = take(random_.size_between(64, entry_most(hour)));
      give(cache[random_.below(kCached)].exchange(stored, std::memory_order_acq_rel));
    }
    void* const answer = take(random_.size_between(512, 16'384));
    for (void* const one : strings) give(one);
    give(body);
    give(answer);
  }

  void sort_rows() {
    std::array<void*, kBatchRows> rows;
    for (void*& one : rows) one = take(random_.size_between(1024, 200'000));
    std::sort(rows.begin(), rows.end(), [](const void* a, const void* b) { return size_of(a) < size_of(b); });
    for (void* const one : rows) give(one);
  }

 private:
  void* take(std::size_t bytes) {
    live_.add(number_, static_cast<std::int64_t>(bytes));
    return make(bytes);
  }
  void give(void* block) {
    if (block == nullptr) return;
    live_.add(number_, -size_of(block));
    std::free(block);
  }
  void end(Session& of) {
    for (std::size_t i = 0; i < of.count; ++i) give(of.parts[i]);
    of.count = 0;
  }

  Live& live_;
  const int number_;
  Random random_;
  // One more than are used by day, so that there is always a last one to end.
  std::vector<Session> sessions_{kSessions + 1};
};

void serve(Worker& worker, const Course& course, int hour, double begin, double length, long requests) {
  for (long done = 0; done < requests;) {
    const long burst = std::min<long>(kBurst, requests - done);
    for (long i = 0; i < burst; ++i) worker.request(hour);
    done += burst;
    const double early = begin + length * static_cast<double>(done) / static_cast<double>(requests) - course.seconds();
    if (early > 0) std::this_thread::sleep_for(std::chrono::duration<double>(early));
  }
}

}  // namespace

void day(Course& course, Live& live, double seconds, double rate, std::uint64_t seed) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (int number = 0; number < kWorkers; ++number) workers.push_back(std::make_unique<Worker>(live, number, seed));
  const double length = seconds / kHours;
  for (int hour = 0; hour < kHours; ++hour) {
    const double begin = course.seconds();
    const long requests = std::lround(rate * length * busy(hour) / kWorkers);
    std::vector<std::thread> team;
    for (auto& worker : workers)
      team.emplace_back([&, hour] { serve(*worker, course, hour, begin, length, std::max(requests, 1L)); });
    if (hour >= 1 && hour < 4) {
      for (int number = 0; number < kBatch; ++number) {
        team.emplace_back([&live, number, seed] { Worker(live, kWorkers + number, seed).sort_rows(); });
      }
    }
    for (std::thread& one : team) one.join();
    course.sample("hour");
  }
  for (std::atomic<void*>& one : cache) std::free(one.exchange(nullptr, std::memory_order_relaxed));
}

}  // namespace service
