// A server that is stopped, or that is not there any more in the child of a fork, while clients wait for it: each gets its
// answer or an error within a bound, and nothing is executed twice.
#include "include/loam/delegation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace loam {
namespace {

using delegation::Settings;
using delegation::Stopped;

#ifdef LOAM_INSTRUMENTED
constexpr int kRounds = 10;
#else
constexpr int kRounds = 60;
#endif
// Far more than any of these takes, also on a busy machine, and far less than for ever.
constexpr std::chrono::seconds kBound{20};

template <class ServerType>
class ServerEnd : public testing::Test {};
using Servers = testing::Types<delegation::Server<>, delegation::Mp<>, delegation::Mp2<>, delegation::Ffwd<>>;
TYPED_TEST_SUITE(ServerEnd, Servers);

// What a client has asked for and got. executed: by the server, per request
struct Client {
  static constexpr unsigned kMost = 1 << 16;

  std::unique_ptr<std::atomic<unsigned char>[]> executed = std::make_unique<std::atomic<unsigned char>[]>(kMost);
  unsigned asked = 0, answered = 0;
  bool refused = false;
};

// Posts `kInFlight` requests and takes their answers, until it is refused.
template <class ServerType>
void ask(delegated<long, ServerType>& number, Client& client) {
  constexpr unsigned kInFlight = 8;
  while (!client.refused && client.asked + kInFlight <= Client::kMost) {
    std::vector<delegation::ticket<void>> tickets;
    try {
      for (unsigned i = 0; i < kInFlight; ++i) {
        tickets.push_back(number.submit([executed = &client.executed[client.asked]](long& n) {
          ++n;
          executed->fetch_add(1, std::memory_order_relaxed);
        }));
        ++client.asked;
      }
    } catch (const Stopped&) {
      client.refused = true;
    }
    for (auto& ticket : tickets) {
      ticket.get();  // what was accepted is answered
      ++client.answered;
    }
  }
}

// An operation that the server is in until it is released: a request made meanwhile waits behind it.
class Held {
 public:
  template <class ServerType>
  delegation::ticket<long> in(delegated<long, ServerType>& number) {
    auto ticket = number.submit([this](long& n) {
      inside_ = true;
      while (!go_) std::this_thread::yield();
      return ++n;
    });
    while (!inside_) std::this_thread::yield();
    return ticket;
  }

  void release() { go_ = true; }

 private:
  std::atomic<bool> inside_{false}, go_{false};
};

TYPED_TEST(ServerEnd, RequestsInFlightAreAnsweredOnceOrRefused) {
  for (int round = 0; round < kRounds; ++round) {
    TypeParam server{Settings{}};
    delegated<long, TypeParam> number(server, 0);
    std::vector<Client> clients(3);
    std::vector<std::thread> threads;
    for (Client& client : clients) threads.emplace_back([&] { ask(number, client); });
    std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    const auto began = std::chrono::steady_clock::now();
    server.stop();
    for (auto& thread : threads) thread.join();
    EXPECT_LT(std::chrono::steady_clock::now() - began, kBound);
    long all = 0;
    for (const Client& client : clients) {
      EXPECT_EQ(client.answered, client.asked);
      for (unsigned i = 0; i < client.asked; ++i) ASSERT_EQ(client.executed[i], 1) << "request " << i;
      if (client.asked < Client::kMost) {
        EXPECT_TRUE(client.refused);
        EXPECT_EQ(client.executed[client.asked], 0) << "what was refused was not executed";
      }
      all += client.asked;
    }
    EXPECT_EQ(number.unguarded(), all);
  }
}

TYPED_TEST(ServerEnd, ALongOperationDoesNotKeepClientsForEver) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  std::atomic<bool> inside{false}, go{false};
  std::thread slow([&] {
    number.apply([&](long& n) {
      inside = true;
      while (!go) std::this_thread::yield();
      ++n;
    });
  });
  while (!inside) std::this_thread::yield();
  std::atomic<int> executed{0}, answered{0}, refused{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.emplace_back([&] {
      try {
        number.apply([&](long&) { ++executed; });
        ++answered;
      } catch (const Stopped&) {
        ++refused;
      }
    });
  std::thread stopper([&] { server.stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // they wait, or will find the same a moment later
  const auto began = std::chrono::steady_clock::now();
  go = true;
  stopper.join();
  for (auto& thread : waiting) thread.join();
  slow.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, kBound);
  EXPECT_EQ(executed, answered);
  EXPECT_EQ(answered + refused, 4);
  EXPECT_EQ(number.unguarded(), 1);
}

#ifndef LOAM_TSAN  // it does not follow forks of threads
TYPED_TEST(ServerEnd, TheChildOfAForkIsRefusedWhatWasInFlight) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  auto before = number.submit([](long& n) { return ++n; });
  while (!before.ready()) std::this_thread::yield();
  Held held;
  auto ticket = held.in(number);
  EXPECT_EXIT(
      {
        if (before.get() != 1) std::_Exit(2);  // it was there at the fork
        if (!ticket.ready()) std::_Exit(3);    // get() ends at once
        try {
          ticket.get();
        } catch (const Stopped&) {
          std::_Exit(0);
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(0), "");
  held.release();
  EXPECT_EQ(ticket.get(), 2) << "the parent's goes on";
}

// A fork while another thread stops the server, whose operation takes its time.
TYPED_TEST(ServerEnd, TheChildOfAForkDuringTheEndIsRefused) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  Held held;
  auto ticket = held.in(number);
  std::thread stopper([&] { server.stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it stops, or the child finds a server as in other tests
  EXPECT_EXIT(
      {
        ::alarm(kBound.count());  // a child that waits for its answer is ended
        try {
          number.apply([](long&) {});
        } catch (const Stopped&) {
          std::_Exit(0);
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(0), "");
  held.release();
  EXPECT_EQ(ticket.get(), 1);
  stopper.join();
}
#endif

}  // namespace
}  // namespace loam
