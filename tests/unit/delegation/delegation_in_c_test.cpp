// loam/delegation.h: every scheme by its name, servers, tickets, codes and sentences.
#include "include/loam/delegation.h"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

void add(void* object, void* argument) { *static_cast<long*>(object) += *static_cast<const long*>(argument); }

// An operation that calls an object.
struct Nested {
  loam_delegation* target;
  int code;
};
void nest(void*, void* argument) {
  auto& nested = *static_cast<Nested*>(argument);
  long one = 1;
  nested.code = loam_delegation_apply(nested.target, add, &one);
}

TEST(DelegationInC, EverySchemeExecutesAloneAndOnce) {
  unsigned count = 0;
  for (; const char* const name = loam_delegation_scheme(count); ++count) {
    SCOPED_TRACE(name);
    long sum = 0;
    loam_delegation* const delegation = loam_delegation_new(&sum, name, nullptr);
    ASSERT_NE(delegation, nullptr) << loam_delegation_error();
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        long amount = 2;
        for (int i = 0; i < 200; ++i)
          if (loam_delegation_apply(delegation, add, &amount) != LOAM_DELEGATION_OK) ++wrong;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(sum, 1200);
    long amount = 1;
    int code = -1;
    loam_ticket* const ticket = loam_delegation_submit(delegation, add, &amount, &code);
    EXPECT_EQ(code, LOAM_DELEGATION_OK);
    EXPECT_EQ(loam_ticket_wait(ticket), LOAM_DELEGATION_OK);
    EXPECT_EQ(sum, 1201);
    loam_delegation_free(delegation);
  }
  EXPECT_GE(count, 12U);
}

TEST(DelegationInC, ANestedCallHasACode) {
  for (unsigned i = 0; const char* const name = loam_delegation_scheme(i); ++i) {
    SCOPED_TRACE(name);
    long first = 0, second = 0;
    loam_delegation* const outer = loam_delegation_new(&first, name, nullptr);
    loam_delegation* const inner = loam_delegation_new(&second, nullptr, nullptr);
    Nested same{outer, -1}, other{inner, -1};
    EXPECT_EQ(loam_delegation_apply(outer, nest, &same), LOAM_DELEGATION_OK);
    EXPECT_EQ(same.code, LOAM_DELEGATION_NESTED);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(loam_delegation_apply(outer, nest, &other), LOAM_DELEGATION_OK);
    EXPECT_EQ(other.code, LOAM_DELEGATION_OK);
    EXPECT_EQ(second, 1);
    loam_delegation_free(outer);
    loam_delegation_free(inner);
  }
}

TEST(DelegationInC, ServersServeSeveralObjectsAndStop) {
  for (const char* const name : {"server", "mp", "mp-2", "ffwd"}) {
    SCOPED_TRACE(name);
    loam_server* const server = loam_server_start(name, nullptr);
    ASSERT_NE(server, nullptr) << loam_delegation_error();
    long first = 0, second = 0, amounts[] = {1, 10, 100};
    loam_delegation* const one = loam_server_delegation(server, &first);
    loam_delegation* const two = loam_server_delegation(server, &second);
    loam_ticket* tickets[3];
    for (int i = 0; i < 3; ++i) tickets[i] = loam_delegation_submit(one, add, &amounts[i], nullptr);
    EXPECT_EQ(loam_delegation_apply(two, add, &amounts[0]), LOAM_DELEGATION_OK);
    while (loam_ticket_is_ready(tickets[2]) == 0) std::this_thread::yield();
    for (loam_ticket* const ticket : tickets) EXPECT_EQ(loam_ticket_wait(ticket), LOAM_DELEGATION_OK);
    EXPECT_EQ(first, 111);
    Nested calls_second{two, -1};
    EXPECT_EQ(loam_delegation_apply(one, nest, &calls_second), LOAM_DELEGATION_OK);
    EXPECT_EQ(calls_second.code, LOAM_DELEGATION_OK) << "another object of the same server";
    EXPECT_EQ(second, 2);
    loam_server_stop(server);
    loam_server_stop(server);
    EXPECT_EQ(loam_delegation_apply(one, add, &amounts[0]), LOAM_DELEGATION_STOPPED);
    EXPECT_NE(std::string_view(loam_delegation_error()).find("the server has been stopped"), std::string_view::npos);
    int code = -1;
    EXPECT_EQ(loam_delegation_submit(one, add, &amounts[0], &code), nullptr);
    EXPECT_EQ(code, LOAM_DELEGATION_STOPPED);
    EXPECT_EQ(first, 111);
    loam_delegation_free(one);
    loam_delegation_free(two);
    loam_server_free(server);
  }
}

TEST(DelegationInC, WhatCannotBeMadeIsNullWithASentence) {
  long object = 0;
  EXPECT_EQ(loam_delegation_new(&object, "cc-sync", nullptr), nullptr);
  EXPECT_EQ(std::string(loam_delegation_error()).find("scheme=cc-sync: there is no such one; there are cc-synch"), 0U);
  EXPECT_EQ(loam_server_start("mcs", nullptr), nullptr);
  EXPECT_EQ(std::string(loam_delegation_error()).find("scheme=mcs: it has no server"), 0U);
  loam_delegation_settings settings;
  loam_delegation_default(&settings);
  EXPECT_EQ(settings.server_cpu, LOAM_ANY_CPU);
  settings.server_cpu = 1023;
  EXPECT_EQ(loam_server_start(nullptr, &settings), nullptr);
  EXPECT_EQ(std::string(loam_delegation_error()).find("server_cpu=1023"), 0U);
  loam_delegation_free(nullptr);
  loam_server_free(nullptr);
}

TEST(DelegationInC, SettingsReachTheScheme) {
  loam_delegation_settings settings;
  loam_delegation_default(&settings);
  settings.spin_ns = 0;
  settings.turn_max = 1;
  long sum = 0;
  loam_delegation* const delegation = loam_delegation_new(&sum, "cc-synch", &settings);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      long amount = 1;
      for (int i = 0; i < 300; ++i) loam_delegation_apply(delegation, add, &amount);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 1200);
  loam_delegation_free(delegation);
}

// An operation in C++ may throw: to whoever asked.
TEST(DelegationInC, AnExceptionGoesToItsClient) {
  long object = 0;
  for (const char* const name : {"cc-synch", "server"}) {
    loam_delegation* const delegation = loam_delegation_new(&object, name, nullptr);
    EXPECT_THROW(loam_delegation_apply(
                     delegation, [](void*, void*) { throw std::runtime_error("no"); }, nullptr),
                 std::runtime_error);
    loam_delegation_free(delegation);
  }
}

}  // namespace
