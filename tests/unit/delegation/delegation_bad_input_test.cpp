// What must end in a clear error or a said consequence, and never in a wait without end: more requests than places, a
// processor that the process may not use, one processor for a server and its clients, an object whose server has ended.
#include "include/loam/delegation.h"
#include "include/loam/delegation.hpp"
#include "runtime/delegation/parts/roster.hpp"
#include "runtime/platform/affinity.hpp"

#include <gtest/gtest.h>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace loam {
namespace {

using delegation::Full;
using delegation::Roster;
using delegation::Settings;
using delegation::Stopped;

template <class ServerType>
class BadInput : public testing::Test {};
using Servers = testing::Types<delegation::Server<>, delegation::Mp<>, delegation::Mp2<>, delegation::Ffwd<>>;
TYPED_TEST_SUITE(BadInput, Servers);

TYPED_TEST(BadInput, MoreRequestsThanPlacesAreRefused) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  std::vector<delegation::ticket<long>> tickets;
  for (std::uint32_t i = 0; i < Roster::kPlacesMax; ++i) tickets.push_back(number.submit([](long& n) { return ++n; }));
  try {
    number.submit([](long& n) { n += 1'000'000; });
    FAIL();
  } catch (const Full& refused) {
    const std::string text = refused.what();
    EXPECT_NE(text.find(std::to_string(Roster::kPlacesMax) + " requests are under way"), std::string::npos) << text;
    EXPECT_NE(text.find("take the answers of tickets"), std::string::npos) << text;
  }
  // Another client has no place either, and does not wait for one.
  std::thread([&] { EXPECT_THROW(number.apply([](long& n) { n += 1'000'000; }), Full); }).join();
  const long last = tickets.back().get();
  tickets.pop_back();
  EXPECT_EQ(number.apply([](long& n) { return n; }), long{Roster::kPlacesMax}) << "one answer taken is one place";
  EXPECT_GT(last, 0);
  for (auto& ticket : tickets) ticket.get();
  EXPECT_EQ(number.apply([](long& n) { return n; }), long{Roster::kPlacesMax}) << "what was refused was not executed";
}

TYPED_TEST(BadInput, ARequestThatThrowsTakesNoPlace) {
  TypeParam server{Settings{}};
  delegated<long, TypeParam> number(server, 0);
  for (std::uint32_t i = 0; i < Roster::kPlacesMax + 10; ++i)
    EXPECT_THROW(number.apply([](long&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(number.apply([](long& n) { return ++n; }), 1);
}

// A server and its clients on one processor: they take turns, and nobody waits for ever, whether it sleeps or not.
TYPED_TEST(BadInput, OneProcessorIsEnough) {
  std::thread([] {
    std::array<unsigned, 1> first;
    ASSERT_EQ(platform::allowed_cpus(first), 1U);
    ASSERT_TRUE(platform::pin_this_thread(first[0])) << "threads that it makes stay there as well";
    for (const std::uint32_t spin_ns : {20'000U, delegation::WaitingSettings::kNeverSleep}) {
      Settings settings{.server_cpu = first[0]};
      settings.waiting.spin_ns = spin_ns;
      TypeParam server{settings};
      delegated<long, TypeParam> number(server, 0);
      std::vector<std::thread> clients;
      for (int c = 0; c < 2; ++c)
        clients.emplace_back([&number] {
          for (int i = 0; i < 5; ++i) number.apply([](long& n) { ++n; });
        });
      for (auto& client : clients) client.join();
      EXPECT_EQ(number.apply([](long& n) { return n; }), 10);
    }
  }).join();
}

#ifndef LOAM_TSAN  // it does not follow forks of threads
TYPED_TEST(BadInput, AProcessorOutsideOfTheAffinityMaskIsRefused) {
  std::array<unsigned, 2> two;
  if (platform::allowed_cpus(two) < 2) GTEST_SKIP() << "one processor";
  // A process of its own: what a process may use is looked up once.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        if (!platform::pin_this_thread(two[0])) std::_Exit(2);
        try {
          TypeParam server{Settings{.server_cpu = two[1]}};
        } catch (const std::invalid_argument& refused) {
          const std::string text = refused.what();
          std::_Exit(text.find("choose one of its affinity mask") != std::string::npos ? 0 : 3);
        }
        std::_Exit(1);
      },
      testing::ExitedWithCode(0), "");
}
#endif

TEST(BadInputOfSchemes, ASchemeByItsNameRefusesAfterItsEnd) {
  for (const std::string_view name : {"server", "mp", "mp-2", "ffwd"}) {
    SCOPED_TRACE(name);
    delegation::AnyScheme scheme(name);
    EXPECT_EQ(scheme.apply([] { return 1; }), 1);
    scheme.stop();
    for (int i = 0; i < 3; ++i) EXPECT_THROW(scheme.apply([] { return 2; }), Stopped);
  }
  delegation::AnyScheme combining("cc-synch");
  combining.stop();
  EXPECT_EQ(combining.apply([] { return 3; }), 3) << "there is nobody to stop";
}

// One package or more lists than packages: the same promises.
TEST(BadInputOfSchemes, HSynchRunsWhateverPackagesThereAre) {
  for (const unsigned lists : {0U, 1U, 2U, 64U, 1000U}) {
    delegated<long, delegation::HSynch<>> number(Settings{.clusters = lists}, 0);
    std::vector<std::thread> clients;
    for (int c = 0; c < 3; ++c)
      clients.emplace_back([&number] {
        for (int i = 0; i < 500; ++i) number.apply([](long& n) { ++n; });
      });
    for (auto& client : clients) client.join();
    EXPECT_EQ(number.unguarded(), 1500) << lists << " lists";
  }
}

TEST(BadInputOfSchemes, InCTooManyRequestsHaveACode) {
  loam_server* const server = loam_server_start("server", nullptr);
  ASSERT_NE(server, nullptr) << loam_delegation_error();
  long sum = 0, one = 1;
  loam_delegation* const object = loam_server_delegation(server, &sum);
  const auto add = [](void* to, void* amount) { *static_cast<long*>(to) += *static_cast<const long*>(amount); };
  std::vector<loam_ticket*> tickets;
  for (std::uint32_t i = 0; i < Roster::kPlacesMax; ++i)
    tickets.push_back(loam_delegation_submit(object, add, &one, nullptr));
  int code = -1;
  EXPECT_EQ(loam_delegation_submit(object, add, &one, &code), nullptr);
  EXPECT_EQ(code, LOAM_DELEGATION_FULL);
  EXPECT_NE(std::string_view(loam_delegation_error()).find("requests are under way"), std::string_view::npos);
  EXPECT_EQ(loam_delegation_apply(object, add, &one), LOAM_DELEGATION_FULL);
  for (loam_ticket* const ticket : tickets) EXPECT_EQ(loam_ticket_wait(ticket), LOAM_DELEGATION_OK);
  EXPECT_EQ(loam_delegation_apply(object, add, &one), LOAM_DELEGATION_OK);
  EXPECT_EQ(sum, long{Roster::kPlacesMax} + 1);
  loam_delegation_free(object);
  loam_server_free(server);
}

}  // namespace
}  // namespace loam
