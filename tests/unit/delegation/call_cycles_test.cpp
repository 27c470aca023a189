// Operations that call other objects: a call that comes back to an object that waits for it throws Nested, whichever
// threads execute what lies between; every other call works.
#include "include/loam/delegation.h"
#include "include/loam/delegation.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace loam {
namespace {

using delegation::AnyScheme;
using delegation::Nested;
using delegation::Settings;

std::vector<std::string_view> all_schemes() {
  std::vector<std::string_view> names;
  delegation::Schemes::for_each([&]<template <class> class SchemeOf>() {
    names.push_back(SchemeOf<delegation::SpinThenSleep>::kDescription.name);
  });
  return names;
}

using Number = delegated<long, AnyScheme>;

// Objects under these schemes.
std::vector<std::unique_ptr<Number>> objects(const std::vector<std::string_view>& schemes) {
  std::vector<std::unique_ptr<Number>> made;
  for (const std::string_view scheme : schemes) made.push_back(std::make_unique<Number>(delegation::Named{scheme}, 0));
  return made;
}

// Operations inside each other, on one object after the other; the innermost runs `last`.
template <class Last>
void along(const std::vector<std::unique_ptr<Number>>& path, std::size_t from, Last& last) {
  if (from == path.size()) return last();
  path[from]->apply([&](long& n) {
    ++n;
    along(path, from + 1, last);
  });
}

// Every object of the path is refused at its end, and all of them are usable afterwards.
void expect_cycles_are_refused(const std::vector<std::string_view>& schemes) {
  std::string names;
  for (const std::string_view scheme : schemes) names += std::string(scheme) + " ";
  SCOPED_TRACE(names);
  const auto path = objects(schemes);
  std::vector<int> refused(path.size());
  auto back = [&] {
    for (std::size_t i = 0; i < path.size(); ++i) {
      try {
        path[i]->apply([](long&) {});
      } catch (const Nested&) {
        ++refused[i];
      }
    }
  };
  along(path, 0, back);
  EXPECT_EQ(refused, std::vector<int>(path.size(), 1));
  // What is not caught goes to the one who asked first.
  auto out = [&] { path[0]->apply([](long&) {}); };
  EXPECT_THROW(along(path, 0, out), Nested);
  for (const auto& object : path) EXPECT_EQ(object->apply([](long& n) { return n; }), 2);
  // The other way round nobody waits for anybody.
  for (std::size_t i = path.size(); i-- > 0;) path[i]->apply([](long& n) { ++n; });
}

TEST(CallCycles, OfTwoObjectsAreRefused) {
  for (const std::string_view a : all_schemes())
    for (const std::string_view b : all_schemes()) expect_cycles_are_refused({a, b});
}

TEST(CallCycles, OfMoreObjectsAreRefused) {
  const auto names = all_schemes();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto at = [&](std::size_t k) { return names[(i + k) % names.size()]; };
    expect_cycles_are_refused({at(0), at(1), at(2)});
    expect_cycles_are_refused({at(0), "server", at(0), "ffwd"});
    expect_cycles_are_refused({"mp", at(0), "cc-synch", "mp-2", at(5), "server"});
  }
}

// The operation goes to a thread that waits for nobody: what its client waits for counts all the same.
TEST(CallCycles, AreRefusedWhoeverExecutes) {
  using namespace std::chrono_literals;
  for (const std::string_view outer : all_schemes())
    for (const std::string_view combined : {"cc-synch", "dsm-synch", "h-synch", "flat-combining"}) {
      SCOPED_TRACE(std::string(outer) + " " + std::string(combined));
      bool by_another = false;
      // On a busy machine the client may not have come so far.
      for (int round = 1; round <= 100 && !by_another; ++round) {
        Number first(delegation::Named{outer}, 0);
        Number second(delegation::Named{combined, Settings{.waiting = {.spin_ns = 0}}}, 0);
        std::atomic<bool> waits{false};
        std::atomic<int> refused{0};
        std::thread::id executor;
        std::thread client;
        second.apply([&](long&) {
          client = std::thread([&] {
            first.apply([&](long&) {
              waits = true;
              second.apply([&](long&) {
                executor = std::this_thread::get_id();
                try {
                  first.apply([](long&) {});
                } catch (const Nested&) {
                  ++refused;
                }
              });
            });
          });
          while (!waits) std::this_thread::yield();
          std::this_thread::sleep_for(1ms * round);
        });
        client.join();
        EXPECT_EQ(refused, 1);
        by_another = executor == std::this_thread::get_id();
      }
      EXPECT_TRUE(by_another);
    }
}

// The thread that executes it holds up an object itself: that one waits for the operation, too.
TEST(CallCycles, WithWhatTheExecutorHoldsUpAreRefused) {
  using namespace std::chrono_literals;
  for (const std::string_view outer : all_schemes())
    for (const std::string_view combined : {"cc-synch", "dsm-synch", "h-synch", "flat-combining"}) {
      SCOPED_TRACE(std::string(outer) + " " + std::string(combined));
      bool by_another = false;
      // On a busy machine the client may not have come so far: then it executes its operation itself, and waits.
      for (int round = 1; round <= 100 && !by_another; ++round) {
        Number held(delegation::Named{outer}, 0), clients(delegation::Named{"cc-synch"}, 0);
        Number second(delegation::Named{combined, Settings{.waiting = {.spin_ns = 0}}}, 0);
        std::atomic<bool> waits{false};
        std::atomic<int> refused{0};
        std::thread::id holder, executor;
        std::thread client;
        held.apply([&](long&) {
          second.apply([&](long&) {
            holder = std::this_thread::get_id();
            client = std::thread([&] {
              clients.apply([&](long&) {
                waits = true;
                second.apply([&](long&) {
                  executor = std::this_thread::get_id();
                  try {
                    held.apply([](long&) {});
                  } catch (const Nested&) {
                    ++refused;
                  }
                });
              });
            });
            while (!waits) std::this_thread::yield();
            std::this_thread::sleep_for(1ms * round);
          });
        });
        client.join();
        by_another = executor == holder;
        EXPECT_EQ(refused, by_another ? 1 : 0);
      }
      EXPECT_TRUE(by_another);
    }
}

// a asks b and c, both ask d: twice the same object, and nobody waits for itself.
TEST(CallCycles, CallsWithoutOneWork) {
  for (const std::string_view scheme : all_schemes()) {
    SCOPED_TRACE(std::string(scheme));
    const auto all = objects({scheme, "server", scheme, "mp"});
    Number &a = *all[0], &b = *all[1], &c = *all[2], &d = *all[3];
    constexpr int kThreads = 3, kEach = 30;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i)
          a.apply([&](long&) {
            b.apply([&](long&) { d.apply([](long& n) { ++n; }); });
            c.apply([&](long&) { d.apply([](long& n) { ++n; }); });
            d.apply([](long& n) { ++n; });
          });
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(d.apply([](long& n) { return n; }), 3L * kThreads * kEach);
    // What waited for an operation of b before does not wait for this one.
    b.apply([&](long&) { a.apply([](long& n) { ++n; }); });
    EXPECT_EQ(a.apply([](long& n) { return n; }), 1);
  }
}

TEST(CallCycles, ResultsAndExceptionsComeThrough) {
  for (const std::string_view a : all_schemes())
    for (const std::string_view b : {"server", "ffwd", "cc-synch"}) {
      const auto all = objects({a, b});
      Number &first = *all[0], &second = *all[1];
      EXPECT_EQ(first.apply([&](long&) { return second.apply([](long&) { return std::string(100, 'x'); }); }),
                std::string(100, 'x'));
      EXPECT_EQ(&first.apply([&](long&) -> long& { return second.apply([](long& n) -> long& { return n; }); }),
                &second.unguarded());
      EXPECT_THROW(first.apply([&](long&) { second.apply([](long&) { throw std::string("no"); }); }), std::string);
      auto owned = std::make_unique<int>(7);
      EXPECT_EQ(first.apply([&](long&) {
        return second.apply([owned = std::move(owned)](long&) mutable { return std::move(owned); });
      }) != nullptr,
                true);
    }
}

template <class ServerType>
class CallCyclesOfTickets : public testing::Test {};
using Servers = testing::Types<delegation::Server<>, delegation::Mp<>, delegation::Mp2<>, delegation::Ffwd<>>;
TYPED_TEST_SUITE(CallCyclesOfTickets, Servers);

template <class ServerType>
struct Two {
  ServerType first_server{Settings{}}, second_server{Settings{}};
  delegated<long, ServerType> first{first_server, 0}, second{second_server, 0};
  delegated<long, ServerType> beside{first_server, 0};  // at the server of the first
};

TYPED_TEST(CallCyclesOfTickets, AnOperationThatWasSentMayNotComeBack) {
  Two<TypeParam> two;
  auto& [first_server, second_server, first, second, beside] = two;
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(first.apply([&](long&) {
      auto ticket = second.submit([&](long&) { return first.apply([](long& n) { return n; }); });
      return ticket.get();
    }),
                 Nested);
    EXPECT_THROW(first.apply([&](long&) {
      auto ticket = second.submit([&](long&) { return beside.submit([](long& n) { return n; }).get(); });
      return ticket.get();
    }),
                 Nested);
    EXPECT_THROW(first
                     .submit([&](long&) {
                       return second.apply([&](long&) {
                         auto refused = beside.submit([](long& n) -> long& { return n; });
                         EXPECT_TRUE(refused.ready());
                         return refused.get();
                       });
                     })
                     .get(),
                 Nested);
    // Nobody asks for the answer: the ticket waits where it is destroyed.
    first.apply([&](long&) { second.submit([&](long&) { first.apply([](long& n) { n = 100; }); }); });
  }
  EXPECT_EQ(first.apply([](long& n) { return n; }), 0);
}

// The operation that sent another one is over when that one begins: what waited for it is known from a copy.
TYPED_TEST(CallCyclesOfTickets, AnOperationThatWasSentOutlivesTheOneThatSentIt) {
  Two<TypeParam> two;
  auto& [first_server, second_server, first, second, beside] = two;
  delegated<long> combined(0);
  std::optional<delegation::ticket<long>> kept;
  std::atomic<bool> go{false};
  combined.apply([&](long&) {  // the copy has frames of two threads
    first.apply([&](long&) {
      kept = second.submit([&](long& n) {
        while (!go) std::this_thread::yield();
        for (auto ask : {+[](Two<TypeParam>& t, delegated<long>&) { t.beside.apply([](long&) {}); },
                         +[](Two<TypeParam>&, delegated<long>& c) { c.apply([](long&) {}); }}) {
          try {
            ask(two, combined);
          } catch (const Nested&) {
            ++n;
          }
        }
        return n;
      });
    });
  });
  first.apply([](long& n) { n = 5; });  // the server of the first goes on
  go = true;
  EXPECT_EQ(first.apply([&](long&) { return kept->get(); }), 2);
  first.apply([&](long&) { kept.reset(); });
  // A thread that is inside nothing sends: its operation may ask everybody.
  EXPECT_EQ(second.submit([&](long&) { return first.apply([](long& n) { return n; }); }).get(), 5);
}

TYPED_TEST(CallCyclesOfTickets, ThoseWithoutACycleWork) {
  Two<TypeParam> two;
  auto& [first_server, second_server, first, second, beside] = two;
  for (int i = 0; i < 50; ++i)
    first.apply([&](long&) {
      auto one = second.submit([](long& n) { ++n; });
      auto two = second.submit([](long& n) { ++n; });
      beside.submit([](long& n) { ++n; }).get();
      second.apply([](long& n) { ++n; });
      two.get();
    });
  EXPECT_EQ(second.apply([](long& n) { return n; }), 150);
  EXPECT_EQ(beside.apply([](long& n) { return n; }), 50);
}

// A path of handles, and what the call of the first one got at its end.
struct Handles {
  std::vector<loam_delegation*> all;
  std::size_t at = 0;
  bool sends = false;
  int last_code = -1;
};

void next_in_c(void* object, void* argument) {
  auto& handles = *static_cast<Handles*>(argument);
  ++*static_cast<long*>(object);
  loam_delegation* const next = handles.all[++handles.at % handles.all.size()];
  int code = -1;
  if (!handles.sends) {
    code = loam_delegation_apply(next, next_in_c, argument);
  } else if (loam_ticket* const ticket = loam_delegation_submit(next, next_in_c, argument, &code)) {
    code = loam_ticket_wait(ticket);
  }
  if (handles.last_code == -1) handles.last_code = code;
}

TEST(CallCycles, HaveACodeInC) {
  for (unsigned i = 0; const char* const name = loam_delegation_scheme(i); ++i)
    for (const char* const other : {"server", "mp", "mp-2", "ffwd", "cc-synch"})
      for (const bool sends : {false, true}) {
        SCOPED_TRACE(std::string(name) + " " + other + (sends ? " by tickets" : ""));
        long first = 0, second = 0;
        Handles handles{{loam_delegation_new(&first, name, nullptr), loam_delegation_new(&second, other, nullptr)}};
        handles.sends = sends;
        EXPECT_EQ(loam_delegation_apply(handles.all[0], next_in_c, &handles), LOAM_DELEGATION_OK);
        EXPECT_EQ(handles.last_code, LOAM_DELEGATION_NESTED);
        EXPECT_EQ(first, 1);
        EXPECT_EQ(second, 1);
        for (loam_delegation* const handle : handles.all) loam_delegation_free(handle);
      }
}

}  // namespace
}  // namespace loam
