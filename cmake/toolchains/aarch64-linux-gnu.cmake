# A build for AArch64 on another processor: Debian's cross compiler (g++-aarch64-linux-gnu) builds, and QEMU (qemu-user)
# runs what is built. The preset `aarch64` uses it. QEMU_PAGESIZE=65536 in the environment makes QEMU's pages 64 KiB.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(loam_target_root /usr/aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH "${loam_target_root}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(LOAM_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(LOAM_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${LOAM_QEMU}" -L "${loam_target_root}")
endif()
