#include <pthread.h>
#include <semaphore.h>

#include <array>

#include "scenarios.hpp"

namespace service {
namespace {

// glibc keeps the values of the first 32 keys in the thread's descriptor, and frees the rest after the last destructor.
constexpr int kKeys = 33;

struct Ends {
  std::array<pthread_key_t, kKeys> keys;
  sem_t ended;
};

void* thread(void* of) {
  auto& all = *static_cast<Ends*>(of);
  for (const pthread_key_t key : all.keys) pthread_setspecific(key, make(64));
  for (const std::size_t bytes : {100, 1000, 5000}) std::free(make(bytes));
  sem_post(&all.ended);
  return nullptr;
}

[[noreturn]] void refused(const char* what) {
  std::fprintf(stderr, "service: %s\n", what);
  std::_Exit(3);
}

}  // namespace

void ends(Course& course, Live&, long count, bool detached) {
  static Ends all;
  for (pthread_key_t& key : all.keys) {
    if (pthread_key_create(&key, std::free) != 0) refused("no more keys of threads");
  }
  sem_init(&all.ended, 0, 0);
  for (long i = 0; i < count; ++i) {
    pthread_t made;
    if (pthread_create(&made, nullptr, thread, &all) != 0) refused("no more threads");
    if (detached) {
      // Its destructors run behind this; the few threads that are still ending are not a leak.
      pthread_detach(made);
      sem_wait(&all.ended);
    } else {
      pthread_join(made, nullptr);
    }
    if (i == count / 10) course.sample("begun");
  }
  course.sample("ended");
}

}  // namespace service
