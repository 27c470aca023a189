// report: the file that records go to, also after the process has given up its user, its root folder or the right to open
// files.
//   How      The descriptor is opened at start and kept, at a number that programs do not come to, and programs that are
//            executed find it there. Each record is a single write(2) at the end of the file, so processes never mix lines.
//   Unlike   A file that is opened for each record: a service that began as root and goes on as another user may not open
//            it any more.
//   Else     Where the descriptor was closed (closefrom), the file is opened by its name.
#ifndef LOAM_PROBE_REPORT_H
#define LOAM_PROBE_REPORT_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Above what services open before they run, below the usual limit of 1024. A few, because one may be taken.
enum { kReportFirst = 1000, kReportLast = 1003 };

static char report_name[PATH_MAX];
static int report_kept = -1;
static dev_t report_device;  // of the file behind report_kept; the program may close that and use its number
static ino_t report_inode;

static void keep_report(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return;
  report_kept = descriptor;
  report_device = status.st_dev;
  report_inode = status.st_ino;
}

static bool is_report(int descriptor) {
  struct stat status;
  return descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_dev == report_device &&
         status.st_ino == report_inode;
}

// By the kernel's name for the file: this user may not be allowed to look at the file itself.
static bool has_report_name(int descriptor) {
  char link[] = "/proc/self/fd/0000";
  for (size_t at = sizeof link - 2; descriptor > 0; descriptor /= 10) link[at--] = (char)('0' + descriptor % 10);
  char name[PATH_MAX];
  const ssize_t length = readlink(link, name, sizeof name);
  return length > 0 && (size_t)length == strlen(report_name) && memcmp(name, report_name, (size_t)length) == 0;
}

static int open_report(void) { return open(report_name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666); }

// The name is copied: the program may change its environment before it ends.
static void begin_report(const char* name) {
  strcpy(report_name, name);
  for (int descriptor = kReportFirst; descriptor <= kReportLast; ++descriptor) {
    if (!has_report_name(descriptor)) continue;
    keep_report(descriptor);
    return;
  }
  const int opened = open_report();
  if (opened < 0) return;
  const int kept = fcntl(opened, F_DUPFD, kReportFirst);
  close(opened);
  if (kept > kReportLast)
    close(kept);
  else if (kept >= 0)
    keep_report(kept);
}

static void write_report(const char* line, size_t length) {
  const bool kept = is_report(report_kept);
  const int file = kept ? report_kept : open_report();
  if (file < 0) return;
  ssize_t written;
  do written = write(file, line, length);
  while (written < 0 && errno == EINTR);
  if (!kept) close(file);
}

#endif
