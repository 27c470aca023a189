// fork_beside_stdio: fork() while other threads use standard I/O, under whatever malloc it is started with.
//   fork_beside_stdio [FORKS 300]      LD_PRELOAD=LIBRARY fork_beside_stdio 10000
// libc holds its list of open FILEs during fork(). fflush(NULL) holds that list and waits for each FILE; whoever reads
// from a FILE allocates its buffer while holding it; getpwnam() allocates while it holds the lock of the name services,
// which fork() takes too. A malloc that makes threads wait for a fork closes the circle. Each child allocates, reads a
// FILE of its own and ends. Prints one line; exits with 1 if no fork ended for kPatience seconds, or a child failed.
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

constexpr unsigned kPatience = 30;  // seconds, far beyond what a fork takes on a busy machine

std::atomic<bool> over{false};

// Lines of a file, from a FILE whose buffer is allocated anew each time. returns their number
unsigned read_lines(unsigned lines_max) {
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char* line = nullptr;
  std::size_t bytes = 0;
  unsigned lines = 0;
  while (lines < lines_max && getline(&line, &bytes, file) >= 0) ++lines;
  std::free(line);
  std::fclose(file);
  return lines;
}

void reading() {
  while (!over) read_lines(3);
}
void flushing() {
  while (!over) std::fflush(nullptr);
}
void looking_up() {
  while (!over) {
    passwd entry, *found;
    char buffer[4096];
    getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found);
  }
}

int child() {
  alarm(kPatience);
  void* blocks[32];
  for (unsigned i = 0; i < 32; ++i) {
    blocks[i] = std::malloc(std::size_t{16} << i % 14);
    if (blocks[i] == nullptr) return 2;
    std::memset(blocks[i], 1, 16);
  }
  for (void* const block : blocks) std::free(block);
  return read_lines(3) == 3 ? 0 : 3;
}

void on_alarm(int) {
  constexpr char kText[] = "fork_beside_stdio: no fork came to its end; the process hangs\n";
  if (write(STDOUT_FILENO, kText, sizeof kText - 1) < 0) _exit(2);
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const long forks = argc > 1 ? std::atol(argv[1]) : 300;
  if (forks < 1) {
    std::fprintf(stderr, "usage: fork_beside_stdio [FORKS]\n");
    return 2;
  }
  std::thread threads[] = {std::thread(reading), std::thread(reading), std::thread(flushing), std::thread(looking_up)};
  signal(SIGALRM, on_alarm);
  long failed = 0;
  for (long i = 0; i < forks; ++i) {
    alarm(kPatience);
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGALRM, SIG_DFL);
      _exit(child());
    }
    int status = 0;
    failed += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 ? 1 : 0;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  alarm(0);
  std::printf("%ld forks, %ld children failed\n", forks, failed);
  return failed == 0 ? 0 : 1;
}
