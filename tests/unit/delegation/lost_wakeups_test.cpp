// A thread that goes to sleep while another one has just looked whether it sleeps is woken all the same. Threads are held at
// test points, so that this happens.
#include "include/loam/delegation.hpp"
#include "runtime/base/points.hpp"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace loam
#endif
