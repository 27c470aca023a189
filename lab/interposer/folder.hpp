// The folder in which a process writes a file when it ends, kept open from its start: a service that began as root may have
// another root folder by then, in which the file's name leads nowhere.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace loam::interposer {

class Folder {
 public:
  // path: of a file in it
  void keep(const char* path) noexcept {
    char name[4096];
    const std::size_t length = static_cast<std::size_t>(base(path) - path);
    if (length == 0 || length >= sizeof name) return;
    std::memcpy(name, path, length);
    name[length] = '\0';
    const int opened = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return;
    struct stat status;
    if (fstat(opened, &status) == 0) {
      kept_ = fcntl(opened, F_DUPFD_CLOEXEC, kFirst);
      device_ = status.st_dev, inode_ = status.st_ino;
    }
    close(opened);
  }

  // A file for writing, empty; -1 where it cannot be had. path: of a file in the folder
  int create(const char* path) const noexcept {
    constexpr int kHow = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    const int file = still_kept() ? openat(kept_, base(path), kHow, 0644) : -1;
    return file >= 0 ? file : open(path, kHow, 0644);
  }

 private:
  // Above what services open before they run, and what the probe keeps; below the usual limit of 1024.
  static constexpr int kFirst = 1004;

  static const char* base(const char* path) noexcept {
    const char* slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
  }

  // The program may have closed the descriptor and used its number.
  bool still_kept() const noexcept {
    struct stat status;
    return kept_ >= 0 && fstat(kept_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
  }

  int kept_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace loam::interposer
