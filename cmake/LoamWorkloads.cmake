# One executable loam-workload-NAME per file of workloads/syncs/, each with every workload inside.
# The flags keep GCC from deleting malloc-write-free loops: it would time nothing.
set(LOAM_WORKLOAD_FLAGS -O3 -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
set(LOAM_WORKLOAD_TARGETS "" CACHE INTERNAL "every loam-workload-* target")

# loam_workload_executable(NAME SYNC_HEADER SOURCES... )
function(loam_workload_executable name sync_header)
  add_executable(loam-workload-${name} ${ARGN})
  target_link_libraries(loam-workload-${name} PRIVATE loam-tm loam-structures)
  target_compile_options(loam-workload-${name} PRIVATE ${LOAM_WORKLOAD_FLAGS})
  string(JOIN " " flags ${LOAM_WORKLOAD_FLAGS} -march=${LOAM_MARCH})
  target_compile_definitions(loam-workload-${name} PRIVATE
    LOAM_PRESET="${LOAM_PRESET}" LOAM_BUILD_FLAGS="${flags}" LOAM_SYNC_NAME="${name}" LOAM_SYNC_HEADER="${sync_header}")
  target_link_options(loam-workload-${name} PRIVATE -Wl,--build-id=sha1)
  set(LOAM_WORKLOAD_TARGETS ${LOAM_WORKLOAD_TARGETS} loam-workload-${name} CACHE INTERNAL "")
endfunction()

file(GLOB loam_workload_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/workloads/*.cpp" "${CMAKE_SOURCE_DIR}/workloads/harness/*.cpp")
file(GLOB loam_sync_headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/workloads/syncs/*.hpp")
if(loam_workload_sources)
  foreach(header IN LISTS loam_sync_headers)
    get_filename_component(stem "${header}" NAME_WE)
    string(REPLACE "_" "-" name "${stem}")
    loam_workload_executable(${name} "workloads/syncs/${stem}.hpp" ${loam_workload_sources})
  endforeach()
endif()
include("${CMAKE_SOURCE_DIR}/workloads/peers/peers.cmake" OPTIONAL)
