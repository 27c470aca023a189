// AnyScheme: a scheme that is chosen by name at run time.
//   loam::delegated<Account, loam::delegation::AnyScheme> account(Named{"flat-combining"});
//   Cost  an indirect call, and a closure that stays in the client's frame.
#pragma once

#include "runtime/delegation/schemes.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace loam::delegation {

// make.operator()<Scheme>(), a std::unique_ptr<Made>, for the scheme of this name. Throws std::invalid_argument if there is
// none.
template <class Made, class Make>
std::unique_ptr<Made> make_by_name(std::string_view name, Make&& make) {
  std::unique_ptr<Made> made;
  std::string known;
  Schemes::for_each([&]<template <class> class SchemeOf>() {
    using Scheme = SchemeOf<SpinThenSleep>;
    known += ' ';
    known += Scheme::kDescription.name;
    if (Scheme::kDescription.name == name) made = make.template operator()<Scheme>();
  });
  if (!made) throw std::invalid_argument("scheme=" + std::string(name) + ": there is no such one; there are" + known);
  return made;
}

class AnyScheme {
 public:
  static constexpr bool kSleeps = true;

  // Throws std::invalid_argument if there is no scheme of this name, and what the scheme's constructor throws.
  AnyScheme(std::string_view name, const Settings& settings = {}) : scheme_(make(name, settings)) {}
  explicit AnyScheme(const Settings& settings = {}) : AnyScheme("cc-synch", settings) {}

  std::string_view name() const noexcept { return scheme_->name; }

  template <class F>
  std::invoke_result_t<F&> apply(F&& f) {
    Call<std::remove_reference_t<F>> call(f);
    Operation operation;
    call.write(operation);
    struct Job {
      Operation& operation;
      Outcome outcome;
    } job{operation, {}};
    scheme_->apply(
        [](void* argument) {
          Job& sent = *static_cast<Job*>(argument);
          sent.outcome = sent.operation.execute();
        },
        &job);
    return call.take(job.outcome.threw, operation.payload);
  }

  // Of a scheme with a server: see Server::stop(). Of others nothing.
  void stop() noexcept { scheme_->stop(); }

 private:
  struct Made {
    explicit Made(std::string_view n) noexcept : name(n) {}
    virtual ~Made() = default;
    virtual void apply(void (*body)(void*), void* argument) = 0;
    virtual void stop() noexcept {}
    const std::string_view name;
  };
  template <class Scheme>
  struct MadeOf final : Made {
    explicit MadeOf(const Settings& settings) : Made(Scheme::kDescription.name), scheme(settings) {}
    void apply(void (*body)(void*), void* argument) override {
      scheme.apply([body, argument] { body(argument); });
    }
    void stop() noexcept override {
      if constexpr (requires { scheme.stop(); }) scheme.stop();
    }
    Scheme scheme;
  };

  static std::unique_ptr<Made> make(std::string_view name, const Settings& settings) {
    return make_by_name<Made>(name, [&]<class Scheme>() { return std::make_unique<MadeOf<Scheme>>(settings); });
  }

  std::unique_ptr<Made> scheme_;
};

}  // namespace loam::delegation
