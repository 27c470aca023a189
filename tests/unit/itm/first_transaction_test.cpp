// A fork while the process's first transaction begins in another thread. That thread does not exist in the child. The
// child begins its own transaction and waits for no thread. The forks happen inside two calls of libc, which this
// program replaces.
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

namespace {

std::function<void()> at_the_variable, at_the_key;

// Runs `moment` at its first call only.
void reach(std::function<void()>& moment) {
  if (const auto now = std::exchange(moment, nullptr)) now();
}

}  // namespace

extern "C" char* getenv(const char* name) noexcept {
  const std::size_t length = std::strlen(name);
  if (std::strcmp(name, "LOAM_ITM_ALGORITHM") == 0) reach(at_the_variable);
  for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    if (std::strncmp(*each, name, length) == 0 && (*each)[length] == '=') return *each + length + 1;
  return nullptr;
}

extern "C" int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
  reach(at_the_key);
  const auto of_libc = reinterpret_cast<decltype(&pthread_key_create)>(dlsym(RTLD_NEXT, "pthread_key_create"));
  return of_libc(key, destructor);
}

namespace {

long value;
[[gnu::noinline]] long add() {
  long now;
  __transaction_atomic { now = ++value; }
  return now;
}

// Runs in a separate process.
void fork_at(std::function<void()>& moment) {
  loam::tests::in_child([&] {
    bool reached = false, child_was_good = false;
    moment = [&] {
      reached = true;
      std::thread([&] { child_was_good = loam::tests::in_fork([] { return add() == 1 && add() == 2; }); }).join();
    };
    EXPECT_EQ(add(), 1);
    EXPECT_TRUE(reached);
    EXPECT_TRUE(child_was_good);
    EXPECT_EQ(add(), 2);
  });
}

TEST(FirstTransaction, AForkWhileTheAlgorithmIsChosen) { fork_at(at_the_variable); }
TEST(FirstTransaction, AForkWhileTheKeyOfThreadExitIsMade) { fork_at(at_the_key); }

}  // namespace
