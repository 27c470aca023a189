// fork_storm: many forks of a process whose threads allocate all the time, under whatever malloc it is started with.
//   fork_storm [FORKS 300] [THREADS 8] [FORKING THREADS 2]      LD_PRELOAD=LIBRARY fork_storm 100000
// Each child frees what its parent made, allocates, starts a thread that allocates and frees, and ends. A child that
// does not end within kAlarms alarms says how far it came and is counted as a hang; one alarm may come to a child that
// the machine did not let run. The storm goes on, unless kHangsMax of them hung. Cheap, so that 100000 are minutes:
// little memory, small stacks. Allocating threads give the processor away now and then, since a fork that meets a
// thread in the middle of malloc needs it preempted there. Prints one line; exits with 1 if a child hung, crashed,
// found wrong contents or broken invariants, or could not do its work.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr unsigned kAlarmSeconds = 5, kAlarms = 6, kHangsMax = 20;
constexpr unsigned kPlaces = 64, kOfParent = 20, kThreadsMax = 64;
constexpr std::size_t kStackBytes = 128 << 10;
constexpr int kWrongContents = 2, kNoMemory = 3, kNoThread = 4, kBroken = 5;

std::atomic<bool> over{false};
std::atomic<long> left{0}, forked{0}, hangs{0}, crashes{0}, wrong{0}, unable{0}, broken{0};
std::atomic<void*> places[kPlaces];

using Verify = const char* (*)();
Verify verify = nullptr;  // of our malloc; nullptr under others

// Small ones mostly, some middle, a few large.
std::size_t size_of(unsigned i) { return i % 64 == 0 ? 100000 + i % 977 : i % 8 == 0 ? 3000 + i % 501 : 16 + i % 300; }

int use_heap(unsigned seed, unsigned count) {
  void* kept[16] = {};
  int failed = 0;
  for (unsigned i = 0; i < count && failed == 0; ++i) {
    void*& place = kept[(i * 7 + seed) % 16];
    std::free(place);
    place = std::malloc(size_of(i + seed));
    if (place == nullptr)
      failed = kNoMemory;
    else
      std::memset(place, static_cast<int>(i), 16);
  }
  for (void* const block : kept) std::free(block);
  return failed;
}

pthread_t start(void* (*work)(void*), void* argument, bool& started) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread{};
  started = pthread_create(&thread, &attributes, work, argument) == 0;
  pthread_attr_destroy(&attributes);
  return thread;
}

void* thread_of_child(void* seed) {
  return reinterpret_cast<void*>(
      static_cast<std::intptr_t>(use_heap(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(seed)), 60)));
}

// Of a child.
std::atomic<const char*> stage{"began"};
std::atomic<unsigned> alarms{0};

void say(const char* what, const char* more) {
  char line[200];
  const int length = std::snprintf(line, sizeof line, "child %d: %s %s\n", static_cast<int>(getpid()), what, more);
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) != length) return;
}

void on_alarm(int) {
  if (++alarms < kAlarms) {
    alarm(kAlarmSeconds);
    return;
  }
  say("hangs where it", stage);
  signal(SIGALRM, SIG_DFL);
  kill(getpid(), SIGALRM);
}

int child(void** of_parent, unsigned seed) {
  for (unsigned i = 0; i < kOfParent; ++i) {
    const auto* const contents = static_cast<const unsigned char*>(of_parent[i]);
    for (unsigned b = 0; b < 100; ++b)
      if (contents[b] != (i & 0xff)) return kWrongContents;
    std::free(of_parent[i]);
  }
  stage = "frees a block of a thread that is not here";
  std::free(places[seed % kPlaces].exchange(nullptr));
  stage = "allocates";
  if (const int failed = use_heap(seed, 100)) return failed;
  stage = "starts a thread";
  bool started;
  const pthread_t thread = start(thread_of_child, reinterpret_cast<void*>(std::uintptr_t{seed}), started);
  if (!started) return kNoThread;
  stage = "waits for its thread";
  void* failed;
  pthread_join(thread, &failed);
  if (failed != nullptr) return kNoMemory;
  stage = "verifies";
  const char* const found = seed % 16 == 0 && verify != nullptr ? verify() : nullptr;
  if (found == nullptr) return 0;
  say("finds broken:", found);
  return kBroken;
}

void wait_for(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return;
  if (WIFSIGNALED(status))
    (WTERMSIG(status) == SIGALRM ? hangs : crashes)++;
  else if (const int code = WEXITSTATUS(status))
    (code == kBroken ? broken : code == kWrongContents ? wrong : unable)++;
}

void* forking(void* number) {
  void* blocks[kOfParent];
  for (unsigned i = 0; i < kOfParent; ++i) std::memset(blocks[i] = std::malloc(100), static_cast<int>(i), 100);
  for (unsigned i = 0; left.fetch_sub(1) > 0 && hangs < static_cast<long>(kHangsMax); ++i) {
    const unsigned seed = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(number)) * 7 + i;
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGALRM, on_alarm);
      alarm(kAlarmSeconds);
      _exit(child(blocks, seed));
    }
    if (pid < 0) {
      ++unable;
      continue;
    }
    ++forked;
    wait_for(pid);
  }
  for (void* const block : blocks) std::free(block);
  return nullptr;
}

void* allocating(void* number) {
  const unsigned first = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(number)) * 1000;
  for (unsigned i = first; !over.load(std::memory_order_relaxed); ++i) {
    std::free(places[i % kPlaces].exchange(std::malloc(size_of(i))));
    if (i % 97 == 0) sched_yield();
  }
  return nullptr;
}

long argument(int argc, char** argv, int index, long otherwise) {
  return argc > index ? std::atol(argv[index]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  left = argument(argc, argv, 1, 300);
  const long threads = argument(argc, argv, 2, 8), forkers = argument(argc, argv, 3, 2);
  if (left < 1 || threads < 0 || forkers < 1 || threads + forkers > static_cast<long>(kThreadsMax)) {
    std::fprintf(stderr, "usage: fork_storm [FORKS] [THREADS] [FORKING THREADS], at most %u threads\n", kThreadsMax);
    return 2;
  }
  verify = reinterpret_cast<Verify>(dlsym(RTLD_DEFAULT, "loam_malloc_verify"));
  const auto begun = std::chrono::steady_clock::now();
  pthread_t all[kThreadsMax];
  for (long t = 0; t < threads + forkers; ++t) {
    bool started;
    all[t] = start(t < threads ? allocating : forking, reinterpret_cast<void*>(t), started);
    if (!started) return 2;
  }
  for (long t = threads; t < threads + forkers; ++t) pthread_join(all[t], nullptr);
  over = true;
  for (long t = 0; t < threads; ++t) pthread_join(all[t], nullptr);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun;
  std::printf(
      "%ld forks, %ld hung, %ld crashed, %ld with wrong contents, %ld with broken invariants, %ld unable; %.1f s\n",
      forked.load(), hangs.load(), crashes.load(), wrong.load(), broken.load(), unable.load(), elapsed.count());
  return hangs + crashes + wrong + broken + unable == 0 ? 0 : 1;
}
