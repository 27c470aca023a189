// The typed interface: objects, tickets, batches, servers that stop, nested calls, schemes by name.
#include "include/loam/delegation.hpp"
#include "runtime/base/points.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace loam {
namespace {

using delegation::Nested;
using delegation::Server;
using delegation::Settings;
using delegation::Stopped;

TEST(Delegated, AnObjectIsMadeChangedAndAskedByOperations) {
  delegated<std::map<int, std::string>> names;
  EXPECT_TRUE(names.apply([](auto& map) { return map.emplace(1, "one").second; }));
  const std::string name = "two";
  names.apply([&](auto& map) { map[2] = name; });
  EXPECT_EQ(names.apply([](auto& map) { return map.at(2); }), "two");
  EXPECT_EQ(&names.apply([](auto& map) -> auto& { return map.at(1); }), &names.unguarded().at(1));
  EXPECT_THROW(names.apply([](auto& map) { return map.at(3); }), std::out_of_range);
  EXPECT_EQ(names.apply_then([](auto& map) { return map.size(); }, [](std::size_t size) { return size * 10; }), 20U);
  delegated<std::vector<int>> three(Settings{.turn_max = 1}, 3, 7);
  EXPECT_EQ(three.apply([](auto& vector) { return vector.size(); }), 3U);
}

TEST(Delegated, AClosureThatMayNotBeCopiedStaysWhereItIs) {
  delegated<int> number(0);
  auto owned = std::make_unique<int>(5);
  EXPECT_EQ(number.apply([owned = std::move(owned)](int& n) { return n += *owned; }), 5);
}

TEST(Delegated, ABatchIsOneOperation) {
  delegated<std::vector<int>> all;
  const std::vector<int> elements{1, 2, 3};
  all.apply_each(elements, [](auto& vector, int element) { vector.push_back(element); });
  EXPECT_EQ(all.apply_each(elements, [](auto& vector, int element) { return vector[element - 1] * 2; }),
            (std::vector<int>{2, 4, 6}));
  EXPECT_THROW(all.apply_each(elements, [](auto& vector, int element) { return vector.at(element); }),
               std::out_of_range);
}

#ifdef LOAM_CHECKED
constexpr long kTickets = delegation::Roster::kPlacesMax + 10;  // few there
#else
constexpr long kTickets = 100;
#endif

template <class ServerType>
class DelegatedToServer : public testing::Test {};
using Servers = testing::Types<Server<>, delegation::Mp<>, delegation::Mp2<>, delegation::Ffwd<>>;
TYPED_TEST_SUITE(DelegatedToServer, Servers);

TYPED_TEST(DelegatedToServer, SeveralRequestsAreInFlight) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  for (int round = 0; round < 20; ++round) {
    std::vector<delegation::ticket<std::string>> tickets;
    for (int i = 0; i < 40; ++i)
      tickets.push_back(number.submit([i](long& n) {
        ++n;
        if (i == 7) throw std::runtime_error("seven");
        return std::to_string(i);
      }));
    for (int i = 0; i < 40; ++i) {
      if (i == 7)
        EXPECT_THROW(tickets[i].get(), std::runtime_error);
      else
        EXPECT_EQ(tickets[i].get(), std::to_string(i));
    }
  }
  EXPECT_EQ(number.apply([](long& n) { return n; }), 800);
  // One that nobody asks is waited for.
  {
    const auto forgotten = number.submit([](long& n) { ++n; });
  }
  auto last = number.submit([](long& n) { return n; });
  while (!last.ready()) std::this_thread::yield();
  EXPECT_EQ(last.get(), 801);
}

// One that is assigned over is waited for, as one that is destroyed, and its place is free again.
TYPED_TEST(DelegatedToServer, ATicketThatIsAssignedOverIsDoneAndGone) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  std::atomic<long> done{0};
  const auto submit = [&] { return number.submit([&done](long& n) { return done = ++n; }); };
  auto ticket = submit();
  for (long i = 2; i <= kTickets; ++i) {
    ticket = submit();
    ASSERT_GE(done, i - 1) << "the one before";
  }
  auto moved = std::move(ticket);
  ticket = std::move(moved);
  EXPECT_EQ(ticket.get(), kTickets);
}

// Checked builds count to 101 and begin again; by cells that are at different numbers.
TYPED_TEST(DelegatedToServer, NumbersOfRequestsBeginAgain) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  long asked = 0;
  for (int round = 0; round < 260; ++round) {
    std::vector<delegation::ticket<long>> tickets;
    for (int i = 0; i <= round % 4; ++i) tickets.push_back(number.submit([](long& n) { return ++n; }));
    for (auto& ticket : tickets) ticket.get();
    asked += static_cast<long>(tickets.size());
    ASSERT_EQ(number.apply([](long& n) { return n; }), asked);
  }
}

TYPED_TEST(DelegatedToServer, ObjectsOfOneServerMayCallEachOther) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> a(server, 1), b(server, 10);
  EXPECT_EQ(a.apply([&b](long& n) { return n + b.apply([](long& m) { return m; }); }), 11);
  EXPECT_EQ(a.apply([&b](long& n) { return n + b.submit([](long& m) { return m; }).get(); }), 11);
  EXPECT_THROW(a.apply([&a](long&) { a.apply([](long&) {}); }), Nested);
  EXPECT_THROW(a.apply([&a, &b](long&) { b.apply([&a](long&) { a.apply([](long&) {}); }); }), Nested);
  EXPECT_EQ(a.apply([](long& n) { return n; }), 1) << "a refused call leaves it usable";
}

TYPED_TEST(DelegatedToServer, AfterItsEndCallsAreRefusedAndNothingIsLostOrDoneTwice) {
  for (int round = 0; round < 20; ++round) {
    TypeParam server{Settings{}};
    delegated<long, TypeParam> number(server, 0);
    std::atomic<long> answered{0};
    std::atomic<int> refused{0}, started{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i)
      clients.emplace_back([&] {
        try {
          for (;;) {
            number.apply([](long& n) { ++n; });
            ++answered;
            started = 1;
          }
        } catch (const Stopped&) {
          ++refused;
        }
        EXPECT_THROW(number.apply([](long&) {}), Stopped) << "again";
      });
    while (started == 0) std::this_thread::yield();
    server.stop();
    for (auto& client : clients) client.join();
    EXPECT_EQ(refused, 3);
    EXPECT_EQ(number.unguarded(), answered);
    EXPECT_THROW(number.submit([](long&) {}), Stopped);
  }
}

// A thread gives its ticket away and ends while the server executes what it asked for: the next thread gets a place of its
// own, and both operations are executed once.
TYPED_TEST(DelegatedToServer, AThreadMayLeaveWhileItsRequestWaits) {
  static auto& never_redeemed = *new std::vector<delegation::ticket<void>*>;  // found by who looks for leaks at the end
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  std::atomic<int> go{0}, begun{0};
  std::thread([&] {
    auto* const ticket = new delegation::ticket<void>(number.submit([&](long& n) {
      begun = 1;
      while (go == 0) std::this_thread::yield();
      n += 1;
    }));
    never_redeemed.push_back(ticket);
  }).join();
  while (begun == 0) std::this_thread::yield();
  std::thread next([&] { EXPECT_EQ(number.apply([](long& n) { return n += 10; }), 11); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it has posted, or will find the same a moment later
  go = 1;
  next.join();
  EXPECT_EQ(number.apply([](long& n) { return n; }), 11);
}

#ifndef LOAM_TSAN
TYPED_TEST(DelegatedToServer, AnOperationThatEndsItsThreadEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  using Number = delegated<long, TypeParam>;
  EXPECT_DEATH(
      {
        TypeParam server{Settings{}};
        Number number(server, 0);
        number.apply([](long&) { ::pthread_exit(nullptr); });
      },
      "not rethrown|terminate called");
}
#endif

#ifdef LOAM_CHECKED
std::atomic<int> posted_at_the_end{0};

// A client that has posted waits until the server has closed.
void wait_for_the_end(const char* name) {
  if (std::string_view(name) != "served: posted") return;
  if (posted_at_the_end.exchange(1) == 0)
    while (posted_at_the_end.load() != 2) std::this_thread::yield();
}

TYPED_TEST(DelegatedToServer, AnswersBeforeTheEndCount) {
  Settings settings;
  settings.waiting.spin_ns = delegation::WaitingSettings::kNeverSleep;  // nobody would wake it
  TypeParam server{settings};
  delegated<long, TypeParam> number(server, 0);
  std::atomic<long> executed{0};
  posted_at_the_end = 0;
  base::point_hook.store(&wait_for_the_end);
  std::thread client([&] { EXPECT_EQ(number.apply([&](long&) { return ++executed; }), 1); });
  while (executed == 0) std::this_thread::yield();
  server.stop();
  posted_at_the_end = 2;
  client.join();
  base::point_hook.store(nullptr);
}

std::atomic<int> claiming{0}, posts_while_claiming{0};

// A closing server gives the client time for a second request before it claims; that request leaves it time to claim.
void hold_the_claims(const char* name) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  if (std::string_view(name) == "server: claims") {
    claiming = 1;
    while (posts_while_claiming < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  }
  if (std::string_view(name) == "served: posted" && claiming == 1 && ++posts_while_claiming == 2)
    std::this_thread::sleep_until(patience);
}

TYPED_TEST(DelegatedToServer, OneRefusalIsForGood) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  claiming = posts_while_claiming = 0;
  base::point_hook.store(&hold_the_claims);
  std::thread client([&] {
    int refused = 0;
    while (claiming == 0) std::this_thread::yield();
    for (int call = 0; call < 4; ++call) try {
        number.apply([](long& n) { ++n; });
        EXPECT_EQ(refused, 0) << "executed after a call was refused";
      } catch (const Stopped&) {
        ++refused;
      }
    EXPECT_GE(refused, 3) << "only what was posted before the server claimed is executed";
    EXPECT_EQ(number.unguarded(), 4 - refused);
  });
  server.stop();
  client.join();
  base::point_hook.store(nullptr);
}
#endif

TYPED_TEST(DelegatedToServer, AnIdleServerSleepsAndIsWoken) {
  Settings settings;
  settings.waiting.spin_ns = 0;
  TypeParam server{settings};
  delegated<long, TypeParam> number(server, 0);
  for (int i = 0; i < 200; ++i) {
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    number.apply([](long& n) { ++n; });
  }
  EXPECT_EQ(number.apply([](long& n) { return n; }), 200);
}

TYPED_TEST(DelegatedToServer, AProcessorThatIsNotOursIsRefused) {
  try {
    TypeParam server{Settings{.server_cpu = 1023}};
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "server_cpu=1023: this process may not run on that processor; choose one of its affinity mask");
  }
}

#ifndef LOAM_TSAN  // it does not follow forks of threads
TYPED_TEST(DelegatedToServer, TheChildOfAForkHasNoServer) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  number.apply([](long& n) { n = 3; });
  EXPECT_EXIT(
      {
        try {
          number.apply([](long&) {});
        } catch (const Stopped&) {
          std::_Exit(number.unguarded() == 3 ? 0 : 2);
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(number.apply([](long& n) { return n; }), 3) << "the parent's goes on";
}

// One of three has ended before, whichever: the child knows that the others are not there.
TYPED_TEST(DelegatedToServer, TheChildOfAForkHasNoneOfThoseThatAreLeft) {
  for (std::size_t ended = 0; ended < 3; ++ended) {
    std::array<std::optional<TypeParam>, 3> servers;
    for (auto& server : servers) server.emplace(Settings{});
    servers[ended].reset();
    const auto refusing = [&] {
      int refused = 0;
      for (auto& server : servers) {
        if (!server) continue;
        delegated<long, TypeParam> number(*server, 0);
        try {
          number.apply([](long&) {});
        } catch (const Stopped&) {
          ++refused;
        }
      }
      return refused;
    };
    EXPECT_EXIT(std::_Exit(refusing()), testing::ExitedWithCode(2), "") << ended;
  }
}
#endif

TEST(Delegated, SubmitOfACombiningSchemeIsDoneAtOnce) {
  delegated<long> number(1);
  auto ticket = number.submit([](long& n) { return ++n; });
  EXPECT_TRUE(ticket.ready());
  EXPECT_EQ(number.unguarded(), 2);
  EXPECT_EQ(ticket.get(), 2);
  EXPECT_THROW(number.submit([](long&) { throw std::runtime_error("no"); }).get(), std::runtime_error);
}

TEST(Delegated, ASchemeMayBeChosenByItsName) {
  delegation::Schemes::for_each([]<template <class> class SchemeOf>() {
    const auto name = SchemeOf<delegation::SpinThenSleep>::kDescription.name;
    delegation::AnyScheme scheme(name);
    EXPECT_EQ(scheme.name(), name);
    long plain = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < 100; ++k) scheme.apply([&plain] { return ++plain; });
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(plain, 300);
    EXPECT_THROW(scheme.apply([] { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_EQ(scheme.apply([] { return std::string("text"); }), "text");
  });
  delegated<long, delegation::AnyScheme> number(delegation::Named{"server"}, 41);
  EXPECT_EQ(number.apply([](long& n) { return ++n; }), 42);
  try {
    delegation::AnyScheme("cc-sync");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find("scheme=cc-sync: there is no such one; there are cc-synch"), 0U)
        << error.what();
  }
}

}  // namespace
}  // namespace loam
