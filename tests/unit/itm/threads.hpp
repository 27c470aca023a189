// For the tests of this folder: bodies on threads, marks of functions, shared counters.
#pragma once

#include <thread>
#include <vector>

#define SAFE [[gnu::transaction_safe, gnu::noinline]]

namespace loam::tests {

struct alignas(64) Padded {
  long value;
};

template <class Body>
inline void on_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (auto& thread : threads) thread.join();
}

}  // namespace loam::tests
