// design_rounds: threads that hand blocks on in a ring under one design, so that most are freed by another thread than asked for
// them; then verify().
#pragma once

#include "runtime/heap/design/design.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace loam::heap::design {

// Made and never unmade: nothing may unmap blocks that a test still holds. Kept in a list, so that it is no leak.
template <class T>
T& kept() {
  static auto& all = *new std::vector<T*>;
  all.push_back(new T);
  return *all.back();
}

inline void hand_round(const std::string& text, int calls) {
  SCOPED_TRACE(text);
  constexpr unsigned kThreads = 4;
  Factors factors;
  char message[400];
  ASSERT_EQ(apply(text, factors, message), "");
  Design& design = kept<Design>();
  ASSERT_TRUE(design.start(factors, 4));
  std::vector<Front*> fronts;
  for (unsigned i = 0; i < kThreads; ++i) fronts.push_back(design.begin_thread());
  struct Box {
    std::mutex lock;
    std::deque<std::pair<std::uint64_t*, std::size_t>> blocks;
  } boxes[kThreads];
  std::vector<std::thread> threads;
  std::atomic<unsigned> broken{0};
  for (unsigned self = 0; self < kThreads; ++self)
    threads.emplace_back([&, self] {
      std::uint64_t state = self * 7919 + 1;
      for (int i = 0; i < calls; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const std::size_t bytes = 8 + (state >> 40) % 700;
        auto* const block = static_cast<std::uint64_t*>(design.allocate(*fronts[self], bytes));
        if (block == nullptr) {
          ++broken;
          return;
        }
        block[0] = reinterpret_cast<std::uintptr_t>(block) ^ bytes;
        std::pair<std::uint64_t*, std::size_t> old{nullptr, 0};
        {
          Box& box = boxes[(self + 1) % kThreads];
          const std::lock_guard guard(box.lock);
          box.blocks.push_back({block, bytes});
        }
        {
          Box& box = boxes[self];
          const std::lock_guard guard(box.lock);
          if (box.blocks.size() > 50) {
            old = box.blocks.front();
            box.blocks.pop_front();
          }
        }
        if (old.first == nullptr) continue;
        if (old.first[0] != (reinterpret_cast<std::uintptr_t>(old.first) ^ old.second)) ++broken;
        design.release(*fronts[self], old.first);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(broken.load(), 0U);
  for (unsigned self = 0; self < kThreads; ++self)
    for (const auto& block : boxes[self].blocks) design.release(*fronts[self], block.first);
  design.verify();
  for (Front* const front : fronts) design.end_thread(*front);
  design.verify();
}

}  // namespace loam::heap::design
