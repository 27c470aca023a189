// Request: memory that a thread asks its heap for. It is taken with the heap's mutex: at once if there is room, else at
// the end of a collection of the thread's own, while all other threads are still stopped. So the memory that the
// collection has freed serves the thread that asked, and what is refused did not fit into a heap that has no garbage.
#pragma once

#include "runtime/gc/settings.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace loam::gc {

class Request {
 public:
  // Bytes that were asked for, and what a heap needs to serve them: in each half, and beside the halves.
  struct Needs {
    std::size_t bytes, in_each_half, beside;
  };

  explicit Request(const Needs& needs) noexcept : needs_(needs) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const Needs& needs() const noexcept { return needs_; }
  // Takes the memory if there is room. returns whether it has
  virtual bool take() noexcept = 0;
  // Why it was refused, with the counts of that moment.
  std::optional<OutOfMemory> refusal;

 protected:
  ~Request() = default;

 private:
  const Needs needs_;
};

template <class Take>
class RequestBy final : public Request {
 public:
  RequestBy(const Needs& needs, Take take) noexcept : Request(needs), take_(std::move(take)) {}
  bool take() noexcept override { return take_(); }

 private:
  Take take_;
};

}  // namespace loam::gc
