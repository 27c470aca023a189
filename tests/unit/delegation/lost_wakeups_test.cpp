// A thread that goes to sleep while another one has just looked whether it sleeps is woken all the same. Threads are held at
// test points, so that this happens.
#include "include/loam/delegation.hpp"
#include "runtime/base/points.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <string_view>
#include <thread>
#include <utility>

#ifdef LOAM_CHECKED
namespace loam {
namespace {

using delegation::Settings;
using namespace std::chrono_literals;

// A point that holds one of the threads that come to it.
struct Gate {
  std::string_view point;
  int held = 0;  // the number of that visitor, from 1
  std::atomic<int> visitors{0};
  std::atomic<bool> open{false};
};

// Up to three gates, for as long as the object lives.
class Gates {
 public:
  Gates(std::initializer_list<std::pair<std::string_view, int>> held) {
    auto gate = all.begin();
    for (const auto& [point, visitor] : held) {
      gate->point = point;
      gate->held = visitor;
      gate->visitors = 0;
      gate->open = false;
      ++gate;
    }
    base::point_hook.store(&hook);
  }
  ~Gates() {
    for (Gate& gate : all) gate.open = true;
    base::point_hook.store(nullptr);
    for (Gate& gate : all) gate.point = {};
  }
  static void let_go(std::string_view point) { at(point).open = true; }
  static void wait_for(std::string_view point, int visitors) {
    while (at(point).visitors < visitors) std::this_thread::yield();
  }

 private:
  static Gate& at(std::string_view point) {
    return *std::find_if(all.begin(), all.end(), [&](const Gate& gate) { return gate.point == point; });
  }
  static void hook(const char* name) {
    for (Gate& gate : all)
      if (gate.point == name && ++gate.visitors == gate.held)
        while (!gate.open) std::this_thread::yield();
  }
  inline static std::array<Gate, 3> all;
};

Settings sleepy() {
  Settings settings;
  settings.waiting.spin_ns = 0;
  return settings;
}

template <class ServerType>
class LostWakeups : public testing::Test {};
using Servers = testing::Types<delegation::Server<>, delegation::Mp<>, delegation::Mp2<>, delegation::Ffwd<>>;
TYPED_TEST_SUITE(LostWakeups, Servers);

TYPED_TEST(LostWakeups, AServerThatGoesToSleepIsStopped) {
  Gates gates{{"server: goes to sleep", 1}};
  TypeParam server{sleepy()};
  Gates::wait_for("server: goes to sleep", 1);
  std::thread stopper([&] { server.stop(); });
  std::this_thread::sleep_for(10ms);  // it has looked whether the server sleeps; if not, this test shows nothing
  Gates::let_go("server: goes to sleep");
  stopper.join();
}

TYPED_TEST(LostWakeups, AServerThatGoesToSleepSeesARequest) {
  Gates gates{{"server: goes to sleep", 1}};
  TypeParam server{sleepy()};
  delegated<long, TypeParam> number(server, 0);
  Gates::wait_for("server: goes to sleep", 1);
  auto ticket = number.submit([](long& n) { return ++n; });
  Gates::let_go("server: goes to sleep");
  EXPECT_EQ(ticket.get(), 1);
}

// Who unlocks wakes one that sleeps. The first that it sees may be answered already, and not have taken its mark away.
TEST(LostWakeupsOfFlatCombining, WhoeverUnlocksPassesOverAnAnsweredSleeper) {
  delegated<long, delegation::FlatCombining<>> number(sleepy(), 0);
  std::atomic<bool> works{false}, may_end{false};
  Gates gates{{"flat-combining: served", 1}, {"flat-combining: slept", 1}, {"flat-combining: goes to sleep", 2}};
  const auto add = [](long& n) { return ++n; };
  std::thread holder([&] {
    number.apply([&](long& n) {
      works = true;
      while (!may_end) std::this_thread::yield();
      return ++n;
    });
  });
  while (!works) std::this_thread::yield();
  std::thread answered([&] { number.apply(add); });
  Gates::wait_for("flat-combining: goes to sleep", 1);
  may_end = true;
  Gates::wait_for("flat-combining: served", 1);  // the holder has the lock, and serves nobody any more
  Gates::wait_for("flat-combining: slept", 1);   // answered, with its mark
  std::thread last([&] { number.apply(add); });
  Gates::wait_for("flat-combining: goes to sleep", 2);
  Gates::let_go("flat-combining: served");
  holder.join();
  Gates::let_go("flat-combining: goes to sleep");
  last.join();  // for ever, if nobody wakes it
  Gates::let_go("flat-combining: slept");
  answered.join();
  EXPECT_EQ(number.apply(add), 4);
}

// The answers of a group are written together. Of its clients the last one is awake: it has not asked for its answer yet.
TEST(LostWakeupsOfFfwd, ASleeperInFrontOfOneThatIsAwakeIsWoken) {
  delegation::Ffwd<> server{sleepy()};
  delegated<long, delegation::Ffwd<>> number(server, 0);
  Gates gates{{"served: posted", 0}};  // holds nobody
  std::atomic<bool> works{false}, may_end{false};
  auto first = number.submit([&](long& n) {
    works = true;
    while (!may_end) std::this_thread::yield();
    return ++n;
  });
  while (!works) std::this_thread::yield();
  std::thread sleeper([&] { number.apply([](long& n) { return ++n; }); });
  Gates::wait_for("served: posted", 2);
  std::this_thread::sleep_for(10ms);  // it sleeps; if not, this test shows nothing
  auto last = number.submit([](long& n) { return ++n; });
  may_end = true;
  sleeper.join();  // for ever, if nobody wakes it
  EXPECT_EQ(first.get(), 1);
  EXPECT_EQ(last.get(), 3);
}

}  // namespace
}  // namespace loam
#endif
