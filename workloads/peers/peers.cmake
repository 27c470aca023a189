# Peers: other ways to run the same workloads, to compare with. They speak the same command line and records.
#   plain    intset written by hand without templates or policies: what the sequential synchronisation must cost
#   libitm   the same structures compiled by GCC's own transactional memory
set(peers "${CMAKE_SOURCE_DIR}/workloads/peers")

file(GLOB loam_plain_sources CONFIGURE_DEPENDS "${peers}/plain/*.cpp")
loam_workload_executable(plain "workloads/peers/plain/sync.hpp" ${loam_plain_sources} "${workloads}/blocks.cpp"
                         "${workloads}/threadtest.cpp")

# GCC alone has -fgnu-tm; its library has no support for the sanitizers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT LOAM_SANITIZE)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fgnu-tm)
  set(CMAKE_REQUIRED_LINK_OPTIONS -fgnu-tm)
  check_cxx_source_compiles("int x; int main() { __transaction_atomic { ++x; } return x - 1; }" LOAM_HAS_LIBITM)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(LOAM_HAS_LIBITM)
    loam_workload_executable(libitm "workloads/peers/libitm/sync.hpp" ${loam_workload_sources})
    # GCC 12 hoists a load that the plain and the transactional branch of a function share above the transaction's begin;
    # the two -fno flags keep it where it is.
    target_compile_options(loam-workload-libitm PRIVATE -fgnu-tm -fno-tree-pre -fno-code-hoisting)
    target_link_options(loam-workload-libitm PRIVATE -fgnu-tm)
  endif()
endif()
