# One executable loam-workload-NAME per file of workloads/syncs/, each with every workload inside; and the peers.
# What does not depend on the synchronisation (workloads/harness, workloads/shared, workloads/allocation) is compiled once.
# The flags keep GCC from deleting malloc-write-free loops: it would time nothing.
set(LOAM_WORKLOAD_FLAGS -O3 -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
set(LOAM_WORKLOAD_TARGETS "" CACHE INTERNAL "every loam-workload-* target")

set(workloads "${CMAKE_SOURCE_DIR}/workloads")
file(GLOB loam_workload_sources CONFIGURE_DEPENDS "${workloads}/*.cpp")
file(GLOB loam_sync_headers CONFIGURE_DEPENDS "${workloads}/syncs/*.hpp")
file(GLOB loam_harness_sources CONFIGURE_DEPENDS "${workloads}/harness/*.cpp" "${workloads}/shared/*.cpp")
list(REMOVE_ITEM loam_harness_sources "${workloads}/harness/main.cpp")

string(JOIN " " flags ${LOAM_WORKLOAD_FLAGS} -march=${LOAM_MARCH})
add_library(loam-workload-harness STATIC ${loam_harness_sources})
target_link_libraries(loam-workload-harness PUBLIC loam-tm loam-structures)
target_compile_options(loam-workload-harness PUBLIC ${LOAM_WORKLOAD_FLAGS})
target_compile_definitions(loam-workload-harness PRIVATE LOAM_PRESET="${LOAM_PRESET}" LOAM_BUILD_FLAGS="${flags}")

# Workloads that only allocate. Objects, not a library, which would drop what nobody refers to: the registrations.
file(GLOB loam_allocation_sources CONFIGURE_DEPENDS "${workloads}/allocation/*.cpp")
add_library(loam-workload-allocation OBJECT ${loam_allocation_sources})
target_link_libraries(loam-workload-allocation PUBLIC loam-workload-harness)

# loam_workload_executable(NAME SYNC_HEADER SOURCES...)
# SYNC_HEADER defines loam::workloads::Sync (workloads/harness/sync.hpp); SOURCES register workloads.
function(loam_workload_executable name sync_header)
  set(target loam-workload-${name})
  add_executable(${target} "${CMAKE_SOURCE_DIR}/workloads/harness/main.cpp" ${ARGN})
  target_link_libraries(${target} PRIVATE loam-workload-allocation loam-workload-harness)
  target_compile_definitions(${target} PRIVATE LOAM_SYNC_HEADER="${sync_header}")
  target_link_options(${target} PRIVATE -Wl,--build-id=sha1)
  set(LOAM_WORKLOAD_TARGETS ${LOAM_WORKLOAD_TARGETS} ${target} CACHE INTERNAL "")
endfunction()

foreach(header IN LISTS loam_sync_headers)
  get_filename_component(stem "${header}" NAME_WE)
  string(REPLACE "_" "-" name "${stem}")
  loam_workload_executable(${name} "workloads/syncs/${stem}.hpp" ${loam_workload_sources})
endforeach()
include("${workloads}/peers/peers.cmake" OPTIONAL)
