// The functions of loam/delegation.h. They turn the library's exceptions into codes, and keep the reason for each
// thread.
#include "runtime/delegation/any_scheme.hpp"
#include "runtime/delegation/c/objects.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace loam::delegation::c {
namespace {

thread_local constinit std::array<char, 512> last_error{};

void note(std::string_view text) noexcept {
  const std::size_t bytes = std::min(text.size(), last_error.size() - 1);
  std::copy_n(text.data(), bytes, last_error.data());
  last_error[bytes] = '\0';
}

// What f returns, or null with the sentence noted.
template <class F>
auto made(F&& f) noexcept -> decltype(f().release()) {
  try {
    return f().release();
  } catch (const std::exception& failure) {
    note(failure.what());
    return nullptr;
  }
}

// The code of a call. What an operation in C++ throws goes on to who asked.
template <class F>
int code_of(F&& f) {
  try {
    f();
    return LOAM_DELEGATION_OK;
  } catch (const Nested& refused) {
    note(refused.what());
    return LOAM_DELEGATION_NESTED;
  } catch (const Stopped& refused) {
    note(refused.what());
    return LOAM_DELEGATION_STOPPED;
  } catch (const Full& refused) {
    note(refused.what());
    return LOAM_DELEGATION_FULL;
  }
}

Settings settings_of(const loam_delegation_settings* given) {
  Settings settings;
  if (given == nullptr) return settings;
  settings.waiting = {given->pauses, given->first_delay_ns, given->spin_ns};
  settings.turn_max = given->turn_max;
  settings.passes = given->passes;
  settings.clusters = given->lists;
  settings.server_cpu = given->server_cpu;
  return settings;
}
static_assert(LOAM_NEVER_SLEEP == WaitingSettings::kNeverSleep && LOAM_ANY_CPU == kAnyCpu &&
              LOAM_CALIBRATED == WaitingSettings::kCalibrated);

}  // namespace
}  // namespace loam::delegation::c

using namespace loam::delegation;
using namespace loam::delegation::c;

extern "C" {

void loam_delegation_default(loam_delegation_settings* settings) {
  const Settings defaults;
  *settings = {.pauses = defaults.waiting.pauses,
               .first_delay_ns = defaults.waiting.first_delay_ns,
               .spin_ns = defaults.waiting.spin_ns,
               .turn_max = defaults.turn_max,
               .passes = defaults.passes,
               .lists = defaults.clusters,
               .server_cpu = defaults.server_cpu};
}

const char* loam_delegation_scheme(unsigned index) {
  const char* found = nullptr;
  Schemes::for_each([&]<template <class> class SchemeOf>() {
    // The names are literals: a zero byte follows.
    if (index-- == 0) found = SchemeOf<SpinThenSleep>::kDescription.name.data();
  });
  return found;
}

loam_delegation* loam_delegation_new(void* object, const char* scheme, const loam_delegation_settings* settings) {
  return made([&] {
    const Settings chosen = settings_of(settings);
    return make_by_name<loam_delegation>(
        scheme == nullptr ? "cc-synch" : scheme, [&]<class Scheme>() -> std::unique_ptr<loam_delegation> {
          if constexpr (Scheme::kDescription.means == Means::server)
            return std::make_unique<WithServer<Scheme>>(chosen, object);
          else
            return std::make_unique<Delegation<loam::delegated<Place, Scheme>>>(chosen, object);
        });
  });
}

void loam_delegation_free(loam_delegation* delegation) { delete delegation; }

int loam_delegation_apply(loam_delegation* delegation, loam_operation operation, void* argument) {
  return code_of([=] { delegation->apply(operation, argument); });
}

loam_ticket* loam_delegation_submit(loam_delegation* delegation, loam_operation operation, void* argument, int* code) {
  loam_ticket* ticket = nullptr;
  const int got = code_of([&] { ticket = new loam_ticket{delegation->submit(operation, argument)}; });
  if (code != nullptr) *code = got;
  return ticket;
}

int loam_ticket_is_ready(const loam_ticket* ticket) { return ticket->ticket.ready() ? 1 : 0; }

int loam_ticket_wait(loam_ticket* ticket) {
  const std::unique_ptr<loam_ticket> owned(ticket);
  return code_of([=] { ticket->ticket.get(); });
}

loam_server* loam_server_start(const char* scheme, const loam_delegation_settings* settings) {
  return made([&] {
    const Settings chosen = settings_of(settings);
    const std::string_view name = scheme == nullptr ? "server" : scheme;
    return make_by_name<loam_server>(name, [&]<class Scheme>() -> std::unique_ptr<loam_server> {
      if constexpr (Scheme::kDescription.means == Means::server)
        return std::make_unique<ServerOf<Scheme>>(chosen);
      else
        throw std::invalid_argument("scheme=" + std::string(name) +
                                    ": it has no server; use loam_delegation_new(), or a scheme with one (server)");
    });
  });
}

loam_delegation* loam_server_delegation(loam_server* server, void* object) {
  return made([=] { return server->delegation(object); });
}

void loam_server_stop(loam_server* server) { server->stop(); }
void loam_server_free(loam_server* server) { delete server; }

const char* loam_delegation_error(void) { return last_error.data(); }

}  // extern "C"
