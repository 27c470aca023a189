# Peers: other ways to run the same workloads, to compare with. They speak the same command line and records.
#   plain    intset written by hand without templates or policies: what the sequential synchronisation must cost
#   libitm   the same structures compiled by GCC's own transactional memory
set(peers "${CMAKE_SOURCE_DIR}/workloads/peers")

file(GLOB loam_plain_sources CONFIGURE_DEPENDS "${peers}/plain/*.cpp")
loam_workload_executable(plain "workloads/peers/plain/sync.hpp" ${loam_plain_sources})

# GCC alone has -fgnu-tm; its library has no support for the sanitizers, and calls none of the simulator's hooks.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT LOAM_SANITIZE AND NOT LOAM_SIMULATED)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fgnu-tm)
  set(CMAKE_REQUIRED_LINK_OPTIONS -fgnu-tm)
  check_cxx_source_compiles("int x; int main() { __transaction_atomic { ++x; } return x - 1; }" LOAM_HAS_LIBITM)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(LOAM_HAS_LIBITM)
    # GCC 12 crashes on bayes (-fgnu-tm, pass tmmemopt), so libitm is without it.
    set(loam_libitm_sources ${loam_algorithm_sources})
    list(REMOVE_ITEM loam_libitm_sources "${workloads}/applications/bayes.cpp")
    loam_workload_executable(libitm "workloads/peers/libitm/sync.hpp" ${loam_libitm_sources})
    target_compile_options(loam-workload-libitm PRIVATE ${LOAM_GNU_TM_FLAGS})
    # A clone of an inline function for transactions stands in each object that calls it, all of them the same.
    target_link_options(loam-workload-libitm PRIVATE -fgnu-tm "LINKER:-z,muldefs")
  endif()
endif()
