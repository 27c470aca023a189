// What programs do with threads, under the simulator: each part checks itself, and the whole ends with "done" or names the
// part that failed. Run by tests/lab/simulator/test_programs.py.
//   all | deadlock | livelock | computes | polls
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

void check(bool right, const char* part) {
  if (right) return;
  std::printf("failed: %s\n", part);
  std::exit(1);
}

std::atomic<int> alive{0};

struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  int value = 0;
};

void thread_locals() {
  thread_local Counted own;
  own.value = 7;
  std::thread other([] {
    thread_local Counted theirs;
    check(theirs.value == 0, "a thread-local variable of a new thread");
    theirs.value = 8;
  });
  other.join();
  check(alive == 1 && own.value == 7, "a thread-local destructor");
}

void keys() {
  static pthread_key_t key;
  static int ended;
  pthread_key_create(&key, [](void* value) { ended += *static_cast<int*>(value); });
  static int three = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { pthread_setspecific(key, &three); });
  for (auto& thread : threads) thread.join();
  check(ended == 12, "the destructor of a key");
}

void exceptions() {
  std::vector<std::future<int>> results;
  for (int i = 0; i < 4; ++i)
    results.push_back(std::async(std::launch::async, [i]() -> int {
      try {
        if (i % 2 == 0) throw std::runtime_error("even");
      } catch (const std::runtime_error&) {
        return i * 10;
      }
      throw std::logic_error("odd");
    }));
  int sum = 0;
  for (auto& result : results) try {
      sum += result.get();
    } catch (const std::logic_error&) {
      ++sum;
    }
  check(sum == 22, "exceptions through futures");
}

void conditions() {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int own = 0; own < 4; ++own)
    threads.emplace_back([&, own] {
      for (int round = 0; round < 20; ++round) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return turn % 4 == own; });
        ++turn;
        changed.notify_all();
      }
    });
  for (auto& thread : threads) thread.join();
  std::unique_lock lock(mutex);
  const auto before = std::chrono::steady_clock::now();
  check(!changed.wait_for(lock, 5ms, [] { return false; }), "a condition with a limit of time");
  check(turn == 80 && std::chrono::steady_clock::now() - before >= 5ms, "conditions");
}

void locks() {
  std::mutex plain;
  std::recursive_mutex recursive;
  std::shared_mutex shared;
  std::timed_mutex timed;
  std::once_flag once;
  long sum = 0, begun = 0;
  timed.lock();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      std::call_once(once, [&] { ++begun; });
      check(!timed.try_lock_for(1ms), "a mutex with a limit of time");
      for (int round = 0; round < 200; ++round) {
        const std::scoped_lock both(plain, recursive);
        const std::scoped_lock again(recursive);
        const std::unique_lock writer(shared);
        ++sum;
      }
      const std::shared_lock reader(shared);
      check(sum >= 200, "a read-write lock");
    });
  for (auto& thread : threads) thread.join();
  timed.unlock();
  check(sum == 1600 && begun == 1, "locks");
}

void others() {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 3);
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      sem_wait(&semaphore);
      ++arrived;
      pthread_barrier_wait(&barrier);
      check(arrived == 3, "a barrier");
    });
  for (int i = 0; i < 3; ++i) sem_post(&semaphore);
  for (auto& thread : threads) thread.join();
  std::atomic<int> word{0};
  std::thread waiter([&] { word.wait(0); });
  std::this_thread::sleep_for(1ms);
  word = 1;
  word.notify_one();
  waiter.join();
  std::thread([] {}).detach();
  std::this_thread::sleep_for(1ms);
  sem_destroy(&semaphore);
  pthread_barrier_destroy(&barrier);
}

// An allocator asks so for the owners of its heaps.
void numbers() {
  const auto is_there = [](long number) { return syscall(SYS_tgkill, getpid(), number, 0) == 0; };
  std::atomic<long> number{0};
  std::atomic<bool> asked{false};
  std::thread other([&] {
    number = syscall(SYS_gettid);
    while (!asked) std::this_thread::yield();
  });
  while (number == 0) std::this_thread::yield();
  check(is_there(number) && is_there(gettid()), "the number of a thread that runs");
  asked = true;
  other.join();
  check(!is_there(number) && errno == ESRCH, "the number of a thread that has ended");
  check(is_there(getpid()), "the process's number");
}

// More threads than cores share them by turns.
void many() {
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 30; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) ++sum;
    });
  for (auto& thread : threads) thread.join();
  check(sum == 30'000, "more threads than cores");
}

// A loop that another thread's store ends, without a pause or a call: time slices and the quantum let it run.
void spinning() {
  std::atomic<bool> go{false};
  std::thread other([&] {
    while (!go.load(std::memory_order_acquire)) {
    }
  });
  go.store(true, std::memory_order_release);
  other.join();
}

// One that waits between two others gives up: those before and behind it are woken all the same.
void waiters() {
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0, woken = 0;
  bool go = false;
  const auto queued = [&](int count) {
    for (;; std::this_thread::yield())
      if (const std::scoped_lock lock(mutex); waiting == count) return;
  };
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.wait(lock, [&] { return go; });
    ++woken;
  };
  std::thread first(wait);
  queued(1);
  std::thread impatient([&] {
    std::unique_lock lock(mutex);
    ++waiting;
    check(changed.wait_for(lock, 5ms) == std::cv_status::timeout, "a wait with a limit of time between others");
  });
  queued(2);
  std::thread last(wait);
  queued(3);
  impatient.join();
  {
    const std::scoped_lock lock(mutex);
    go = true;
  }
  changed.notify_all();
  first.join();
  last.join();
  check(woken == 2, "those beside one that gave up");
}

// The second time of what has been used once.
void again() {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 3);
  std::atomic<int> arrived{0}, serial{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int round = 1; round <= 4; ++round) {
        ++arrived;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++serial;
        check(arrived == 3 * round, "a barrier in its later rounds");
        pthread_barrier_wait(&barrier);
      }
    });
  for (auto& thread : threads) thread.join();
  check(serial == 4, "one thread of each round is told");
  pthread_barrier_destroy(&barrier);

  std::once_flag once;
  int tries = 0;
  const auto throws_first = [&] {
    if (++tries == 1) throw std::runtime_error("the first time");
  };
  bool thrown = false;
  try {
    std::call_once(once, throws_first);
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  std::call_once(once, throws_first);
  std::call_once(once, throws_first);
  check(thrown && tries == 2, "a first call that throws");

  static pthread_key_t key;
  static int rounds = 0;
  pthread_key_create(&key, [](void* value) {
    if (++rounds < 3) pthread_setspecific(key, value);
  });
  std::thread([] { pthread_setspecific(key, &rounds); }).join();
  check(rounds == 3, "a key that its destructor sets again");

  std::shared_mutex shared;
  shared.lock_shared();
  std::thread([&] {
    shared.lock_shared();
    shared.unlock_shared();
  }).join();
  check(!shared.try_lock(), "a reader stays when another one leaves");
  shared.unlock_shared();
  check(shared.try_lock(), "a writer after the last reader");
  shared.unlock();
}

void deadlock() {
  std::mutex first, second;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 2);
  const auto take = [&](std::mutex& one, std::mutex& other) {
    const std::scoped_lock own(one);
    pthread_barrier_wait(&barrier);
    const std::scoped_lock both(other);
  };
  std::thread a(take, std::ref(first), std::ref(second)), b(take, std::ref(second), std::ref(first));
  a.join();
  b.join();
}

void livelock() {
  std::atomic<bool> never{false};
  while (!never.load()) {
  }
}

void computes() {
  std::uint64_t value = 1;
  while (value != 0) {
    value = value * 3 + 2;
    if (value % 2 == 0) value += 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "all";
  if (what == "deadlock") deadlock();
  if (what == "livelock") livelock();
  if (what == "computes") computes();
  if (what == "polls") poll(nullptr, 0, 1);
  if (what != "all") return 0;
  thread_locals();
  keys();
  exceptions();
  conditions();
  locks();
  others();
  waiters();
  again();
  numbers();
  many();
  spinning();
  std::printf("done\n");
  return 0;
}
