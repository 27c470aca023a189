// What the configure script of gperftools 2.1 finds on Linux with glibc and GCC, as far as tcmalloc_minimal asks for it: its repository
// has no configure script, and this needs no autoconf.
#pragma once
#include <malloc.h>
#include <pthread.h>

// The configuration for Windows, which the compiler finds under the same name, is left out.
#define GOOGLE_PERFTOOLS_WINDOWS_CONFIG_H_
#define HAVE_BUILTIN_EXPECT 1
#define HAVE_BUILTIN_STACK_POINTER 1
#define HAVE_DECL_CFREE 0
#define HAVE_DECL_MEMALIGN 1
#define HAVE_DECL_NANOSLEEP 1
#define HAVE_DECL_POSIX_MEMALIGN 1
#define HAVE_DECL_PVALLOC 1
#define HAVE_DECL_SLEEP 1
#define HAVE_DECL_UNAME 1
#define HAVE_DECL_VALLOC 1
#define HAVE_ELF32_VERSYM 1
#define HAVE_FCNTL_H 1
#define HAVE_FEATURES_H 1
#define HAVE_FORK 1
#define HAVE_GETEUID 1
#define HAVE_INTTYPES_H 1
#define HAVE_LINUX_PTRACE_H 1
#define HAVE_MALLOC_H 1
#define HAVE_MMAP 1
#define HAVE_NAMESPACES 1
#define HAVE_PTHREAD 1
#define HAVE_SBRK 1
#define HAVE_SCHED_H 1
#define HAVE_STDINT_H 1
#define HAVE_STRUCT_MALLINFO 1
#define HAVE_SYS_CDEFS_H 1
#define HAVE_SYS_PRCTL_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_SYS_SYSCALL_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_TLS 1
#define HAVE_UNISTD_H 1
#define HAVE_UNWIND_H 1
#define HAVE___ATTRIBUTE__ 1
#define HAVE___ENVIRON 1
#define MALLOC_HOOK_MAYBE_VOLATILE volatile
#define PACKAGE_STRING "gperftools 2.1"
#define PERFTOOLS_DLL_DECL
#define PRIdPTR "ld"
#define PRIdS "ld"
#define PRIuPTR "lu"
#define PRIuS "lu"
#define PRIxPTR "lx"
#define PRIxS "lx"
#define PTRDIFF_T long
#define STL_NAMESPACE std
#define _START_GOOGLE_NAMESPACE_ namespace google {
#define _END_GOOGLE_NAMESPACE_ }

#ifdef __cplusplus
// Their file that defines it is C, and all others are C++.
extern "C" inline int RunningOnValgrind(void) { return 0; }
#endif
