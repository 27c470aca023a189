// Small lock-free pieces under the schedule checker (LOAM_SIM_CHECK): each checks itself and ends with status 1 where it is
// wrong. Run by tests/lab/simulator/test_checker.py and test_exhaustive.py.
//   orders PIECE right|weak|small     of a scheme of delegation, PIECE is its name
//   weak   the same with one memory order that is too weak, or another planted fault: the checker must find it; x86 alone
//          would not show the orders
//   small  the same with so few operations that every order can be run (LOAM_SIM_CHECK=exhaustive)
#include "runtime/delegation/schemes.hpp"
#include "runtime/reclaim/epoch.hpp"
#include "runtime/reclaim/hazard.hpp"
#include "runtime/sync/barrier.hpp"
#include "runtime/sync/elided_lock.hpp"
#include "runtime/sync/owned_lock.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/sync/thread_slots.hpp"
#include "runtime/tm/hardware/fallback_lock.hpp"
#include "tests/simulator/pieces.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using loam::tests::check, loam::tests::together;
using std::memory_order_acquire, std::memory_order_relaxed, std::memory_order_release, std::memory_order_seq_cst;

// The same by each of so many threads.
template <unsigned kThreads, class Body>
void repeated(Body body) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(body);
  for (auto& thread : threads) thread.join();
}

// Message passing: who sees the flag must see the data.
template <std::memory_order kPublish>
void message() {
  static std::atomic<int> data{0}, flag{0};
  together([] { data.store(42, memory_order_relaxed), flag.store(1, kPublish); },
           [] {
             while (flag.load(memory_order_acquire) == 0) {
             }
             check(data.load(memory_order_relaxed) == 42, "data behind a flag");
           });
}

// Store buffering: not both may miss the other's announcement.
template <std::memory_order kOrder>
void dekker() {
  static std::atomic<int> here{0}, there{0};
  static int saw_here = 0, saw_there = 0;
  constexpr auto kLoad = kOrder == memory_order_seq_cst ? memory_order_seq_cst : memory_order_acquire;
  together([] { here.store(1, kOrder), saw_there = there.load(kLoad); },
           [] { there.store(1, kOrder), saw_here = here.load(kLoad); });
  check(saw_here + saw_there != 0, "two announcements that missed each other");
}

// Additions get lost where they are a load and a store.
template <bool kWhole>
void lost_update() {
  static std::atomic<int> counted{0};
  repeated<2>([] {
    if constexpr (kWhole)
      counted.fetch_add(1, memory_order_relaxed);
    else
      counted.store(counted.load(memory_order_acquire) + 1, memory_order_release);
  });
  check(counted.load(memory_order_relaxed) == 2, "two additions");
}

// Two locks in two orders.
void opposite_locks() {
  static std::mutex first, second;
  together(
      [] {
        const std::scoped_lock one(first);
        const std::scoped_lock other(second);
      },
      [] {
        const std::scoped_lock one(second);
        const std::scoped_lock other(first);
      });
}

// Waits for what nobody does.
void forgotten_flag() {
  static std::atomic<bool> flag{false};
  together([] {},
           [] {
             while (!flag.load(memory_order_acquire)) {
             }
           });
}

// A copy of sync::SpinLock with a choice of order at the end.
template <std::memory_order kUnlock>
struct Planted {
  void lock() {
    while (held.exchange(true, memory_order_acquire)) {
    }
  }
  void unlock() { held.store(false, kUnlock); }
  std::atomic<bool> held{false};
};

template <class Lock, unsigned kThreads, int kTimes>
void spin_lock() {
  static Lock lock;
  static unsigned counted = 0;
  const auto body = [] {
    for (int i = 0; i < kTimes; ++i) {
      lock.lock();
      ++counted;
      lock.unlock();
    }
  };
  repeated<kThreads>(body);
  check(counted == kThreads * kTimes, "a counter under a lock");
}

// A thread that has passed a barrier sees what the others wrote before it, and they do not see what it writes after it.
void barrier() {
  constexpr unsigned kThreads = 3;
  constexpr int kRounds = 6;
  static loam::sync::Barrier meeting(kThreads);
  static std::array<int, kThreads> written{};
  const auto body = [](unsigned own) {
    for (int round = 1; round <= kRounds; ++round) {
      written[own] = round;
      meeting.arrive_and_wait();
      for (const int other : written) check(other == round, "what was written before a barrier");
      meeting.arrive_and_wait();
    }
  };
  together([=] { body(0); }, [=] { body(1); }, [=] { body(2); });
}

// A thread that takes a slot sees what the slot's previous thread has left there.
void slots() {
  constexpr unsigned kThreads = 3, kTimes = 8;
  static loam::sync::ThreadSlots<64> all;
  static std::array<unsigned, 64> used{};
  repeated<kThreads>([] {
    for (unsigned i = 0; i < kTimes; ++i) {
      const unsigned slot = *all.acquire();
      ++used[slot];
      all.release(slot);
    }
  });
  unsigned sum = 0;
  for (const unsigned times : used) sum += times;
  check(sum == kThreads * kTimes, "what the owners of slots have counted");
}

// Operations of a scheme run one at a time, and each sees all that were before it.
template <template <class> class SchemeOf, unsigned kThreads = 3, int kTimes = 4>
void scheme() {
  using Scheme = SchemeOf<loam::delegation::SpinThenSleep>;
  static Scheme shared{loam::delegation::Settings{}};
  static unsigned counted = 0;
  const auto body = [] {
    for (int i = 0; i < kTimes; ++i) shared.apply([] { ++counted; });
  };
  repeated<kThreads>(body);
  check(counted == kThreads * kTimes, "operations of a scheme");
}

// A reader that announces itself finds what it reached intact; what was unlinked meanwhile is taken apart when it has left.
struct Node {
  int value = 7;
};
template <bool kAnnounced>
void epochs() {
  using namespace loam::reclaim;
  static Domain domain;
  static Participant reading, writing;
  static std::atomic<Node*> reached{new Node};
  const auto reader = [] {
    Limbo limbo;
    const unsigned slot = domain.acquire_slot();
    domain.attach(slot, reading);
    for (int i = 0; i < 32; ++i) {
      if (kAnnounced) domain.enter(reading);
      check(reached.load(memory_order_acquire)->value == 7, "a node that an epoch keeps");
      if (kAnnounced) domain.leave(reading);
    }
    domain.release_slot(slot, limbo);
  };
  const auto writer = [] {
    Limbo limbo;
    const unsigned slot = domain.acquire_slot();
    domain.attach(slot, writing);
    for (int i = 0; i < 16; ++i) {
      Node* const old = reached.exchange(new Node, std::memory_order_acq_rel);
      domain.retire(limbo, old, [](void* node) { static_cast<Node*>(node)->value = 0; }, sizeof(Node));
      domain.reclaim(writing, limbo);
    }
    domain.release_slot(slot, limbo);
  };
  together(reader, writer);
}

// A reader that names a node, and finds it linked after that, reads it intact.
void hazards() {
  using namespace loam::reclaim;
  static HazardDomain domain([](void* node) { static_cast<Node*>(node)->value = 0; });
  static std::atomic<Node*> reached{new Node};
  const auto reader = [] {
    auto& self = domain.join();
    for (int i = 0; i < 32; ++i) {
      Node* node = reached.load(memory_order_acquire);
      for (;;) {
        HazardDomain::protect(self, 0, node);
        Node* const again = reached.load(memory_order_acquire);
        if (again == node) break;
        node = again;
      }
      check(node->value == 7, "a node that a hazard pointer keeps");
      HazardDomain::clear(self);
    }
    domain.leave(self);
  };
  const auto writer = [] {
    auto& self = domain.join();
    for (int i = 0; i < 16; ++i) {
      domain.retire(self, reached.exchange(new Node, std::memory_order_acq_rel));
      domain.scan(self);
    }
    domain.leave(self);
  };
  together(reader, writer);
}

// Blocks that one thread makes and another gives back, while the first takes more: nobody gets a block that is in use. So many
// that they come back in batches, and that their maker needs them again.
void remote_frees() {
  constexpr unsigned kBlocks = 256, kWords = 4;
  static std::array<std::atomic<unsigned*>, kBlocks> passed{};
  const auto make = [](unsigned value) {
    auto* const block = new unsigned[kWords];
    for (unsigned i = 0; i < kWords; ++i) block[i] = value;
    return block;
  };
  const auto give_back = [](unsigned* block, unsigned value) {
    for (unsigned i = 0; i < kWords; ++i) check(block[i] == value, "the contents of a block");
    delete[] block;
  };
  const auto maker = [=] {
    static std::array<unsigned*, kBlocks> kept;
    for (unsigned i = 0; i < kBlocks; ++i) passed[i].store(make(i), memory_order_release);
    for (unsigned i = 0; i < kBlocks; ++i) kept[i] = make(i);
    for (unsigned i = 0; i < kBlocks; ++i) give_back(kept[i], i);
  };
  const auto taker = [=] {
    for (unsigned i = 0; i < kBlocks; ++i) {
      unsigned* block = nullptr;
      while ((block = passed[i].load(memory_order_acquire)) == nullptr) {
      }
      give_back(block, i);
      if (i % 64 == 0) give_back(make(i), i);
    }
  };
  together(maker, taker);
}

struct Piece {
  std::string_view name, kind;
  void (*run)();
};
constexpr std::array kPieces{
    Piece{"message", "right", message<memory_order_release>},
    Piece{"message", "weak", message<memory_order_relaxed>},
    Piece{"dekker", "right", dekker<memory_order_seq_cst>},
    Piece{"dekker", "weak", dekker<memory_order_release>},
    Piece{"lost-update", "small", lost_update<true>},
    Piece{"lost-update", "weak", lost_update<false>},
    Piece{"opposite-locks", "weak", opposite_locks},
    Piece{"forgotten-flag", "weak", forgotten_flag},
    Piece{"message", "small", message<memory_order_release>},
    Piece{"dekker", "small", dekker<memory_order_seq_cst>},
    Piece{"spin-lock", "right", spin_lock<loam::sync::SpinLock, 3, 8>},
    Piece{"spin-lock", "small", spin_lock<loam::sync::SpinLock, 2, 2>},
    Piece{"spin-lock", "weak", spin_lock<Planted<memory_order_relaxed>, 3, 8>},
    Piece{"cc-synch", "small", scheme<loam::delegation::CcSynch, 2, 1>},
    Piece{"flat-combining", "small", scheme<loam::delegation::FlatCombining, 2, 1>},
    Piece{"hazards", "right", hazards},
    Piece{"owned-lock", "right", spin_lock<loam::sync::OwnedLock, 3, 8>},
    Piece{"elided-lock", "right", spin_lock<loam::sync::ElidedLock, 3, 8>},
    Piece{"fallback-lock", "right", spin_lock<loam::tm::hardware::FallbackLock, 3, 8>},
    Piece{"barrier", "right", barrier},
    Piece{"slots", "right", slots},
    Piece{"epochs", "right", epochs<true>},
    Piece{"epochs", "weak", epochs<false>},
    Piece{"remote-frees", "right", remote_frees},
};

// Those above, and each scheme of delegation as a piece of its own name.
std::vector<Piece> every_piece() {
  std::vector<Piece> pieces(kPieces.begin(), kPieces.end());
  loam::delegation::Schemes::for_each([&]<template <class> class S>() {
    pieces.push_back({S<loam::delegation::SpinThenSleep>::kDescription.name, "right", scheme<S>});
  });
  return pieces;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<Piece> pieces = every_piece();
  if (count == 3)
    for (const Piece& piece : pieces)
      if (piece.name == words[1] && piece.kind == words[2]) {
        piece.run();
        std::puts("done");
        return 0;
      }
  for (const Piece& piece : pieces) std::printf("%s %s\n", piece.name.data(), piece.kind.data());
  return 2;
}
