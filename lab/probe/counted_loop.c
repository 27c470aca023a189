// counted_loop: a program whose number of instructions is known, for judging hardware counters.
//   A loop of two instructions, COUNT times each in the main thread, in a second thread and in a forked child: 6 x
//   COUNT in all, beside a start of some 200 000. Whoever counts fewer does not follow threads or children.
// Usage: loam-counted-loop COUNT. Status 0, or 1 if a thread or a process could not be made.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void loop(uint64_t count) {
  if (count == 0) return;
  __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(count) : : "cc");
}

static void* thread_main(void* argument) {
  loop(*(const uint64_t*)argument);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: loam-counted-loop COUNT\n");
    return 1;
  }
  uint64_t count = strtoull(argv[1], NULL, 10);
  loop(count);
  pthread_t thread;
  if (pthread_create(&thread, NULL, thread_main, &count) != 0) return 1;
  pthread_join(thread, NULL);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    loop(count);
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
