#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "scenarios.hpp"

namespace service {
namespace {

constexpr int kThreads = 4;
constexpr double kMomentsS[] = {0, 1, 2, 5};

// A thread's blocks as a list through the blocks themselves: a table of them would come from the allocator, too.
struct Block {
  std::size_t bytes;
  Block* next;
};

}  // namespace

void idle(Course& course, Live& live, long mib, long least, long most, bool threads_end) {
  std::barrier full(kThreads + 1), seen(kThreads + 1), freed(kThreads + 1), over(kThreads + 1);
  std::vector<std::thread> team;
  for (int thread = 0; thread < kThreads; ++thread) {
    team.emplace_back([&, thread] {
      Random random(static_cast<std::uint64_t>(thread) + 1);
      Block* first = nullptr;
      for (std::int64_t left = (mib << 20) / kThreads; left > 0;) {
        const std::size_t bytes = random.size_between(static_cast<std::size_t>(least), static_cast<std::size_t>(most));
        auto* const made = static_cast<Block*>(make(bytes));
        made->next = first;
        first = made;
        live.add(thread, static_cast<std::int64_t>(bytes));
        left -= static_cast<std::int64_t>(bytes);
      }
      full.arrive_and_wait();
      seen.arrive_and_wait();
      while (first != nullptr) {
        Block* const block = first;
        first = block->next;
        live.add(thread, -size_of(block));
        std::free(block);
      }
      freed.arrive_and_wait();
      if (!threads_end) over.arrive_and_wait();
    });
  }
  full.arrive_and_wait();
  course.sample("full");
  seen.arrive_and_wait();
  freed.arrive_and_wait();
  if (threads_end) {
    for (std::thread& one : team) one.join();
  }
  const double begin = course.seconds();
  for (const double moment : kMomentsS) {
    while (course.seconds() < begin + moment) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    course.sample("idle");
  }
  if (threads_end) return;
  over.arrive_and_wait();
  for (std::thread& one : team) one.join();
}

}  // namespace service
