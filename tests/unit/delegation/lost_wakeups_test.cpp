// A thread that goes to sleep while another one has just looked whether it sleeps is woken all the same. Threads are held at
// test points, so that this happens.
#include "include/loam/delegation.hpp"
#include "runtime/base/points.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#ifdef LOAM_CHECKED
namespace loam {
namespace {

using delegation::Settings;
using namespace std::chrono_literals;

// The next thread that comes to the point waits there until it is let go.
struct Hold {
  explicit Hold(std::string_view point) {
    at = point;
    state = kArmed;
    base::point_hook.store(&hook);
  }
  ~Hold() {
    let_go();
    base::point_hook.store(nullptr);
  }
  static void wait_until_held() {
    while (state != kHeld) std::this_thread::yield();
  }
  static void let_go() { state = kGone; }

 private:
  enum State { kArmed, kHeld, kGone };
  static void hook(const char* name) {
    int armed = kArmed;
    if (std::string_view(name) != at || !state.compare_exchange_strong(armed, kHeld)) return;
    while (state == kHeld) std::this_thread::yield();
  }
  inline static std::string_view at;
  inline static std::atomic<int> state{kGone};
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
  Hold hold("server: goes to sleep");
  TypeParam server{sleepy()};
  Hold::wait_until_held();
  std::thread stopper([&] { server.stop(); });
  std::this_thread::sleep_for(10ms);  // it has looked whether the server sleeps; if not, this test shows nothing
  Hold::let_go();
  stopper.join();
}

TYPED_TEST(LostWakeups, AServerThatGoesToSleepSeesARequest) {
  Hold hold("server: goes to sleep");
  TypeParam server{sleepy()};
  delegated<long, TypeParam> number(server, 0);
  Hold::wait_until_held();
  auto ticket = number.submit([](long& n) { return ++n; });
  Hold::let_go();
  EXPECT_EQ(ticket.get(), 1);
}

// A point that holds one of the threads that come to it.
struct Gate {
  std::string_view point;
  int held;  // the number of that visitor, from 1
  std::atomic<int> visitors{0};
  std::atomic<bool> open{false};
};

class Gates {
 public:
  Gates() { base::point_hook.store(&hook); }
  ~Gates() {
    for (Gate& gate : gates) gate.open = true;
    base::point_hook.store(nullptr);
  }
  static Gate& at(std::string_view point) {
    return *std::find_if(gates.begin(), gates.end(), [&](const Gate& gate) { return gate.point == point; });
  }
  static void wait_for(std::string_view point, int visitors) {
    while (at(point).visitors < visitors) std::this_thread::yield();
  }

 private:
  static void hook(const char* name) {
    for (Gate& gate : gates)
      if (gate.point == name && ++gate.visitors == gate.held)
        while (!gate.open) std::this_thread::yield();
  }
  inline static std::array<Gate, 3> gates{
      {{"flat-combining: served", 1}, {"flat-combining: slept", 1}, {"flat-combining: goes to sleep", 2}}};
};

// Who unlocks wakes one that sleeps. The first that it sees may be answered already, and not have taken its mark away.
TEST(LostWakeupsOfFlatCombining, WhoeverUnlocksPassesOverAnAnsweredSleeper) {
  delegated<long, delegation::FlatCombining<>> number(sleepy(), 0);
  std::atomic<bool> works{false}, may_end{false};
  Gates gates;
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
  Gates::at("flat-combining: served").open = true;
  holder.join();
  Gates::at("flat-combining: goes to sleep").open = true;
  last.join();  // for ever, if nobody wakes it
  Gates::at("flat-combining: slept").open = true;
  answered.join();
  EXPECT_EQ(number.apply(add), 4);
}

}  // namespace
}  // namespace loam
#endif
