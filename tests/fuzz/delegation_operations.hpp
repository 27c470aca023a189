// DelegationOperations: bytes as a sequence of operations on delegated objects, checked against what each must have done.
//   The first two bytes choose the scheme and its settings. Each further byte says what, those behind it who and on which of
//   three objects: every input is a sequence. Three threads do it, one at a time or, now and then, all at once. They ask
//   for operations and wait, or keep tickets, which they redeem, drop or assign over in any order; operations throw, ask other
//   objects, or their own, which is refused; threads end and others take their places; the server of two objects is stopped.
//   Checked: an operation that was accepted was executed once, one that was refused never; its result is of its own place
//   in the order of the object; exceptions are its own; after the end of a server every request is refused.
#pragma once

#include "include/loam/delegation.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace loam::tests {

class DelegationOperations {
 public:
  explicit DelegationOperations(std::span<const std::uint8_t> input) noexcept : input_(input) {}

  // nullptr, or what did not hold.
  const char* run() {
    static constexpr std::string_view kWithoutServer[] = {"cc-synch", "dsm-synch", "h-synch", "flat-combining",
                                                          "mcs",      "ticket",    "ttas",    "mutex"};
    const unsigned scheme = take();
    delegation::Settings settings;
    const unsigned bits = take();
    if (bits % 2 == 0) settings.waiting.spin_ns = 0;  // sleeps at once
    if (bits / 2 % 2 == 0) settings.turn_max = 1;
    settings.clusters = 1 + bits / 4 % 2;
    switch (scheme % 8) {
      case 0:
        return play(AtServers<delegation::Server<>>(settings));
      case 1:
        return play(AtServers<delegation::Mp<>>(settings));
      case 2:
        return play(AtServers<delegation::Mp2<>>(settings));
      case 3:
      case 4:
        return play(AtServers<delegation::Ffwd<>>(settings));
      default:
        return play(ByThemselves({kWithoutServer[scheme / 8 % std::size(kWithoutServer)], settings}));
    }
  }

 private:
  static constexpr unsigned kThreads = 3, kTicketsMax = 24;

  // What an object is: the numbers of the requests that it has executed, in their order.
  using Executed = std::vector<std::uint32_t>;

  // Two objects at one server, and one at another.
  template <class Server>
  struct AtServers {
    using Object = delegated<Executed, Server>;
    static constexpr bool kStops = true;

    explicit AtServers(const delegation::Settings& settings)
        : first(std::make_unique<Server>(settings)), second(std::make_unique<Server>(settings)) {
      for (unsigned i = 0; i < 3; ++i) objects[i] = std::make_unique<Object>(i < 2 ? *first : *second);
    }
    bool is_stopped(unsigned object) const { return stopped && object < 2; }
    void stop() {
      first->stop();
      stopped = true;
    }

    std::unique_ptr<Server> first, second;
    std::array<std::unique_ptr<Object>, 3> objects;
    bool stopped = false;
  };

  // Each with a scheme of its own.
  struct ByThemselves {
    using Object = delegated<Executed, delegation::AnyScheme>;
    static constexpr bool kStops = false;

    explicit ByThemselves(const delegation::Named& scheme) {
      for (auto& object : objects) object = std::make_unique<Object>(scheme);
    }
    static bool is_stopped(unsigned) { return false; }

    std::array<std::unique_ptr<Object>, 3> objects;
  };

  struct Request {
    unsigned object = 0;
    bool refused = false;
    std::uint64_t place = 0;  // its answer: how many were executed with it
  };
  struct Thrown {
    std::uint32_t number;
  };
  struct InFlight {
    delegation::ticket<std::uint64_t> ticket;
    std::uint32_t number;
    bool throws;
  };

  // A thread that does what it is told.
  class Thread {
   public:
    Thread() : thread_([this] { work(); }) {}
    ~Thread() {
      tell({});
      thread_.join();
    }
    void tell(std::function<void()> what) {
      const std::lock_guard guard(lock_);
      what_ = std::move(what);
      told_ = true;
      changed_.notify_all();
    }
    void wait() {
      std::unique_lock guard(lock_);
      changed_.wait(guard, [this] { return !told_; });
    }
    std::vector<InFlight> in_flight;  // its own

   private:
    void work() {
      for (bool goes_on = true; goes_on;) {
        std::unique_lock guard(lock_);
        changed_.wait(guard, [this] { return told_; });
        const auto what = std::move(what_);
        guard.unlock();
        goes_on = static_cast<bool>(what);
        if (goes_on)
          what();
        else
          in_flight.clear();
        guard.lock();
        told_ = false;
        changed_.notify_all();
      }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    std::function<void()> what_;
    bool told_ = false;
    std::thread thread_;
  };

  unsigned take() noexcept {
    if (input_.empty()) return 0;
    const unsigned byte = input_.front();
    input_ = input_.subspan(1);
    return byte;
  }
  void expect(bool holds, const char* what) noexcept {
    const char* none = nullptr;
    if (!holds) wrong_.compare_exchange_strong(none, what);
  }

  static std::uint64_t execute(Executed& executed, std::uint32_t number) {
    executed.push_back(number);
    return executed.size();
  }

  std::uint32_t new_request(unsigned object) {
    requests_[count_].object = object;
    return count_++;
  }

  template <class Objects>
  const char* play(Objects objects) {
    std::array<std::unique_ptr<Thread>, kThreads> threads;
    for (auto& thread : threads) thread = std::make_unique<Thread>();
    // Threads write into those of their own.  A byte makes six at most.
    requests_ = std::make_unique<Request[]>(6 * (input_.size() + 1));
    while (!input_.empty() && wrong_.load() == nullptr) {
      const unsigned what = take(), who = take() % kThreads;
      Thread& thread = *threads[who];
      if (what % 16 == 15) {
        for (auto& each : threads) start(objects, *each, take(), 0);
        for (auto& each : threads) each->wait();
      } else if (what == 14) {
        threads[who] = std::make_unique<Thread>();
      } else if (what == 30) {
        if constexpr (Objects::kStops) {
          if (!objects.stopped) objects.stop();
        }
      } else {
        start(objects, thread, what, take());
        thread.wait();
      }
    }
    for (auto& thread : threads) thread.reset();
    verify(objects);
    return wrong_.load();
  }

  // Tells a thread what a byte says.
  template <class Objects>
  void start(Objects& objects, Thread& thread, unsigned what, unsigned which) {
    const unsigned object = what / 16 % 3;
    const std::uint32_t number = new_request(object), inner = new_request(2);
    requests_[inner].refused = true;  // until it is executed
    thread.tell([this, &objects, &thread, what, which, object, number, inner] {
      auto& own = *objects.objects[object];
      if (what % 16 < 6)
        ask(objects, own, what % 16, number, inner);
      else
        keep(objects, own, thread.in_flight, what % 16, which, number);
    });
  }

  // Asks and waits for the answer.
  template <class Objects, class Object>
  void ask(Objects& objects, Object& object, unsigned how, std::uint32_t number, std::uint32_t inner) {
    Request& request = requests_[number];
    try {
      switch (how) {
        case 0:
          request.place = object.apply([number](Executed& executed) { return execute(executed, number); });
          break;
        case 1: {  // a closure that stays where it is, and an answer that is long
          const std::string text = object.apply([own = std::vector(3, number)](Executed& executed) {
            return std::string(100, 'a') + std::to_string(execute(executed, own.at(2)));
          });
          request.place = std::stoull(text.substr(100));
          break;
        }
        case 2:
          try {
            object.apply([number](Executed& executed) {
              execute(executed, number);
              throw Thrown{number};
            });
            expect(false, "an operation that throws has returned");
          } catch (const Thrown& thrown) {
            expect(thrown.number == number, "an exception of another operation");
          }
          break;
        case 3: {  // asks the last object, which asks none
          auto& last = *objects.objects[2];
          const bool asks = &last != static_cast<void*>(&object);
          request.place = object.apply([this, &last, asks, number, inner](Executed& executed) {
            const std::uint64_t place = execute(executed, number);
            if (asks) {
              requests_[inner].place = last.apply([inner](Executed& of_last) { return execute(of_last, inner); });
              requests_[inner].refused = false;
            }
            return place;
          });
          break;
        }
        case 4:  // asks itself
          request.place = object.apply([this, &object, number, inner](Executed& executed) {
            const std::uint64_t place = execute(executed, number);
            try {
              object.apply([inner](Executed& again) { return execute(again, inner); });
              expect(false, "an operation has called its own object");
            } catch (const delegation::Nested&) {
            }
            return place;
          });
          break;
        default: {
          const std::array elements{1, 2, 3};
          const auto places = object.apply_each(elements, [number](Executed& executed, int element) {
            return element == 1 ? execute(executed, number) : executed.size();
          });
          expect(places.size() == 3 && places[0] == places[2], "a batch is not one operation");
          request.place = places[0];
        }
      }
    } catch (const delegation::Stopped&) {
      request.refused = true;
    }
    expect(request.refused == objects.is_stopped(request.object),
           "refused although the server runs, or not though not");
  }

  // Sends, and takes answers of before.
  template <class Objects, class Object>
  void keep(Objects& objects, Object& object, std::vector<InFlight>& in_flight, unsigned how, unsigned which,
            std::uint32_t number) {
    Request& request = requests_[number];
    const std::size_t place = in_flight.empty() ? 0 : which % in_flight.size();
    const bool sends = how < 9 || how == 12, overwrites = how == 12 && !in_flight.empty();
    if (sends && (overwrites || in_flight.size() < kTicketsMax)) {
      const bool throws = how == 8;
      try {
        auto ticket = object.submit([number, throws](Executed& executed) {
          const std::uint64_t own = execute(executed, number);
          if (throws) throw Thrown{number};
          return own;
        });
        if (overwrites)
          in_flight[place] = {std::move(ticket), number, throws};
        else
          in_flight.push_back({std::move(ticket), number, throws});
      } catch (const delegation::Stopped&) {
        request.refused = true;
      }
      expect(request.refused == objects.is_stopped(request.object),
             "a ticket of a stopped server, or none of one that runs");
      return;
    }
    request.refused = true;  // nothing was sent
    if (in_flight.empty()) return;
    if (how == 13)
      while (!in_flight[place].ticket.ready()) std::this_thread::yield();
    if (how != 11) redeem(in_flight[place]);
    in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(place));
  }

  void redeem(InFlight& one) {
    try {
      requests_[one.number].place = one.ticket.get();
      expect(!one.throws, "a ticket of an operation that throws has returned");
    } catch (const Thrown& thrown) {
      expect(one.throws && thrown.number == one.number, "a ticket throws what is another one's");
    } catch (const delegation::Stopped&) {
      expect(false, "what was accepted is refused");
    }
  }

  template <class Objects>
  void verify(Objects& objects) {
    std::vector<unsigned> times(count_);
    for (unsigned object = 0; object < 3; ++object) {
      const Executed& executed = objects.objects[object]->unguarded();
      for (std::size_t i = 0; i < executed.size(); ++i) {
        const Request& request = requests_[executed[i]];
        ++times[executed[i]];
        expect(request.object == object, "executed by another object");
        expect(request.place == 0 || request.place == i + 1, "an answer of another place");
      }
    }
    for (std::uint32_t number = 0; number < count_; ++number)
      expect(times[number] == (requests_[number].refused ? 0 : 1), "not executed once, or refused and executed");
  }

  std::span<const std::uint8_t> input_;
  std::atomic<const char*> wrong_{nullptr};
  std::unique_ptr<Request[]> requests_;
  std::uint32_t count_ = 0;
};

}  // namespace loam::tests
