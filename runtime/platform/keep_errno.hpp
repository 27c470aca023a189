// KeepErrno: system calls inside a scope leave the caller's errno as it was.
#pragma once

#include <cerrno>

namespace loam::platform {

class KeepErrno {
 public:
  KeepErrno() noexcept : value_(errno) {}
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = value_; }

 private:
  const int value_;
};

}  // namespace loam::platform
