// fork_in_handler: fork() in a signal handler that interrupts malloc, free and fork, under whatever malloc it is started
// with.
//   fork_in_handler [SECONDS 2] [MICROSECONDS 1000] [THREADS 0]      LD_PRELOAD=LIBRARY fork_in_handler 30 20000
// A timer interrupts a thread that allocates and frees blocks of 16 bytes to 70 kB, and forks now and then. The handler
// forks as well and waits for its child. Three children of four do what is async-signal-safe and end; the fourth returns
// from the handler into the function that was interrupted, allocates, verifies the heap where it can, and ends. THREADS
// others allocate meanwhile. Prints one line; exits with 1 if nothing happened for kPatience seconds, or a child failed.
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPatience = 30;  // seconds, far beyond what it takes on a busy machine
constexpr unsigned kPlaces = 64;

std::atomic<bool> over{false};
volatile sig_atomic_t in_child = 0;
std::atomic<long> forks{0}, failed{0};  // lock-free: for the handler
long interval_us = 1000;

using Verify = const char* (*)();
Verify verify = nullptr;  // of our malloc; nullptr under others

std::size_t size_of(unsigned i) {
  constexpr std::size_t kSizes[] = {16, 100, 1000, 5000, 20000, 40000, 70000};
  return kSizes[i % 7] + i % 13;
}

void set_timer(long us) {
  const itimerval once{{0, 0}, {0, static_cast<suseconds_t>(us)}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

// In the parent: of a child that was forked.
void reap(pid_t pid) {
  int status = 0;
  pid_t done;
  while ((done = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  ++forks;
  if (done != pid || status != 0) ++failed;
}

void on_timer(int) {
  const int kept = errno;
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (forks % 4 != 0) _exit(0);
    in_child = 1;
    errno = kept;
    return;
  }
  if (pid > 0)
    reap(pid);
  else
    ++failed;
  set_timer(interval_us);
  errno = kept;
}

bool use_heap(std::vector<void*>& places, unsigned& i, unsigned count);

// Ends a child that has come back from the handler.
void end_child(std::vector<void*>& places, unsigned& i) {
  if (in_child != 1) return;
  in_child = 2;
  const char* const broken = use_heap(places, i, 200) ? verify != nullptr ? verify() : nullptr : "no memory";
  if (broken == nullptr) _exit(0);
  std::printf("a child finds broken: %s\n", broken);
  std::fflush(stdout);
  _exit(1);
}

bool use_heap(std::vector<void*>& places, unsigned& i, unsigned count) {
  for (const unsigned end = i + count; i != end; ++i) {
    void*& place = places[i * 7 % kPlaces];
    std::free(place);
    place = std::malloc(size_of(i));
    if (place == nullptr) return false;
    std::memset(place, 1, 16);
    end_child(places, i);
  }
  return true;
}

void allocating(unsigned number) {
  std::vector<void*> places(kPlaces);
  for (unsigned i = number * 1000; !over;) use_heap(places, i, 100);
  for (void* const place : places) std::free(place);
}

int work(double seconds, unsigned threads) {
  verify = reinterpret_cast<Verify>(dlsym(RTLD_DEFAULT, "loam_malloc_verify"));
  sigset_t timer;
  sigemptyset(&timer);
  sigaddset(&timer, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &timer, nullptr);  // in the others
  std::vector<std::thread> others;
  for (unsigned t = 0; t < threads; ++t) others.emplace_back(allocating, t + 1);
  pthread_sigmask(SIG_UNBLOCK, &timer, nullptr);
  struct sigaction action{};
  action.sa_handler = on_timer;
  sigaction(SIGALRM, &action, nullptr);
  std::vector<void*> places(kPlaces);
  unsigned i = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  set_timer(interval_us);
  while (Clock::now() < end) {
    use_heap(places, i, 500);
    // In a process with threads libc holds a lock of its own in fork(): to interrupt it there is not ours to survive.
    if (threads != 0) continue;
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    if (pid > 0) reap(pid);
  }
  set_timer(0);
  end_child(places, i);
  over = true;
  for (std::thread& thread : others) thread.join();
  std::printf("%ld forks, %ld children failed\n", forks.load(), failed.load());
  std::fflush(stdout);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  interval_us = argc > 2 ? std::atol(argv[2]) : 1000;
  const long threads = argc > 3 ? std::atol(argv[3]) : 0;
  if (seconds <= 0 || interval_us < 1 || interval_us >= 1000000 || threads < 0) {
    std::fprintf(stderr, "usage: fork_in_handler [SECONDS] [MICROSECONDS] [THREADS]\n");
    return 2;
  }
  // Another process looks whether it ends: this one's timer is in use.
  const pid_t worker = fork();
  if (worker == 0) {
    setpgid(0, 0);
    _exit(work(seconds, static_cast<unsigned>(threads)));
  }
  const auto end = Clock::now() + std::chrono::duration<double>(seconds + kPatience);
  int status = 0;
  while (waitpid(worker, &status, WNOHANG) == 0) {
    if (Clock::now() > end) {
      std::printf("fork_in_handler: the process hangs\n");
      kill(-worker, SIGKILL);
      waitpid(worker, nullptr, 0);
      return 1;
    }
    usleep(20000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
