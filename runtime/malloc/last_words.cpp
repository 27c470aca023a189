#include "runtime/malloc/last_words.hpp"

#include "runtime/platform/keep_errno.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace loam::malloc {
namespace {

constexpr int kNumberMin = 200;  // far from the lowest free ones, which open() gives, and below the usual limit of 1024
constinit int kept = -1;
constinit dev_t kept_device = 0;
constinit ino_t kept_inode = 0;

// A program that closes every descriptor it does not know may have opened a file of its own under the number.
bool is_still_kept() noexcept {
  struct stat now;
  return kept >= 0 && fstat(kept, &now) == 0 && now.st_dev == kept_device && now.st_ino == kept_inode;
}

}  // namespace

void keep_standard_error() noexcept {
  const platform::KeepErrno keep;
  struct stat now;
  if (fstat(STDERR_FILENO, &now) != 0) return;
  kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kNumberMin);
  kept_device = now.st_dev;
  kept_inode = now.st_ino;
}

int descriptor_for_last_words() noexcept {
  const platform::KeepErrno keep;
  const bool closed = fcntl(STDERR_FILENO, F_GETFD) < 0;
  return closed && is_still_kept() ? kept : STDERR_FILENO;
}

}  // namespace loam::malloc
