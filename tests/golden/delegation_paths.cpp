// An operation on an object that nobody else wants, to be counted by test_delegation_counts.py (steps.hpp says how): under a
// mutex as a program would have it, and under every scheme in which the client executes itself. What a server does is not
// the client's.
#include "include/loam/delegation.h"
#include "include/loam/delegation.hpp"
#include "runtime/base/check.hpp"
#include "tests/golden/steps.hpp"

#include <mutex>
#include <semaphore>
#include <string>
#include <thread>

#include <unistd.h>

namespace {

using namespace loam;
using namespace loam::golden;

// A second thread that sleeps: with one, the C library would leave out what a mutex costs. It has begun before anything is
// counted, and sleeps in the kernel: a wait that looks a few times first would look while the first step is counted.
class Company {
 public:
  Company() {
    LOAM_CHECK(::pipe(ends_) == 0, "no pipe");
    thread_ = std::thread([this] {
      here_.release();
      char over;
      LOAM_CHECK(::read(ends_[0], &over, 1) == 0, "the pipe is broken");
    });
    here_.acquire();
  }
  ~Company() {
    ::close(ends_[1]);
    thread_.join();
    ::close(ends_[0]);
  }

 private:
  int ends_[2];
  std::binary_semaphore here_{0};
  std::thread thread_;
};

template <class Scheme>
void of_scheme() {
  delegated<long, Scheme> number(0);
  const std::string name(Scheme::kDescription.name);
  compare<kFew, kMore>(
      name.c_str(), [&](auto n) { straight<n>([&](auto) LOAM_STEP { number.apply([](long& value) { ++value; }); }); });
}

void of_mutex() {
  struct Guarded {
    std::mutex mutex;
    long value = 0;
  } number;
  compare<kFew, kMore>("std::mutex", [&](auto n) {
    straight<n>([&](auto) LOAM_STEP {
      const std::lock_guard guard(number.mutex);
      ++number.value;
    });
  });
}

void in_c() {
  long number = 0;
  loam_delegation* const object = loam_delegation_new(&number, "cc-synch", nullptr);
  const loam_operation increment = [](void* value, void*) { ++*static_cast<long*>(value); };
  compare<kFew, kMore>("cc-synch, in C", [&](auto n) {
    straight<n>([&](auto) LOAM_STEP { loam_delegation_apply(object, increment, nullptr); });
  });
  loam_delegation_free(object);
}

}  // namespace

int main() {
  const Company company;
  of_mutex();
  delegation::Schemes::for_each([]<template <class> class SchemeOf>() {
    using Scheme = SchemeOf<delegation::SpinThenSleep>;
    if constexpr (Scheme::kDescription.means != delegation::Means::server) of_scheme<Scheme>();
  });
  in_c();
  std::printf("compiler: GCC %s\n", __VERSION__);
}
