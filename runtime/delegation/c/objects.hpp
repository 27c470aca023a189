// The objects behind the handles of loam/delegation.h: one virtual call, then the typed interface. The closure is the
// function and its argument; it is sent in the request.
#pragma once

#include "include/loam/delegation.h"
#include "runtime/delegation/delegated.hpp"

#include <memory>

struct loam_delegation {
  virtual ~loam_delegation() = default;
  virtual void apply(loam_operation operation, void* argument) = 0;
  virtual loam::delegation::ticket<void> submit(loam_operation operation, void* argument) = 0;
};

struct loam_server {
  virtual ~loam_server() = default;
  virtual std::unique_ptr<loam_delegation> delegation(void* object) = 0;
  virtual void stop() noexcept = 0;
};

struct loam_ticket {
  loam::delegation::ticket<void> ticket;
};

namespace loam::delegation::c {

// The user's object, which stays where it is.
struct Place {
  void* object;
};

template <class Delegated>
class Delegation : public loam_delegation {
 public:
  // first: the settings or the server
  template <class First>
  Delegation(First& first, void* object) : delegated_(first, Place{object}) {}

  void apply(loam_operation operation, void* argument) override {
    delegated_.apply([operation, argument](Place& place) { operation(place.object, argument); });
  }
  ticket<void> submit(loam_operation operation, void* argument) override {
    return delegated_.submit([operation, argument](Place& place) { operation(place.object, argument); });
  }

 private:
  Delegated delegated_;
};

template <class Scheme>
class ServerOf final : public loam_server {
 public:
  explicit ServerOf(const Settings& settings) : server_(settings) {}

  std::unique_ptr<loam_delegation> delegation(void* object) override {
    return std::make_unique<Delegation<delegated<Place, Scheme>>>(server_, object);
  }
  void stop() noexcept override { server_.stop(); }

 private:
  Scheme server_;
};

// A server for one object.
template <class Scheme>
class WithServer final : public loam_delegation {
 public:
  WithServer(const Settings& settings, void* object) : server_(settings), delegation_(server_, object) {}

  void apply(loam_operation operation, void* argument) override { delegation_.apply(operation, argument); }
  ticket<void> submit(loam_operation operation, void* argument) override {
    return delegation_.submit(operation, argument);
  }

 private:
  Scheme server_;
  Delegation<delegated<Place, Scheme>> delegation_;
};

}  // namespace loam::delegation::c
