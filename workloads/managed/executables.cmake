# Workloads on the managed heap of runtime/gc: an executable for each header of syncs/. The workloads are compiled once for
# each way to protect objects (harness/access.hpp), not once for each executable: gc-heap, gc-dedicated, gc-arena and
# gc-nursery differ in where logs lie, which is a setting.
set(managed "${CMAKE_SOURCE_DIR}/workloads/managed")
file(GLOB loam_managed_sources CONFIGURE_DEPENDS "${managed}/*.cpp" "${managed}/harness/*.cpp" "${managed}/lee/*.cpp")
file(GLOB loam_managed_syncs CONFIGURE_DEPENDS "${managed}/syncs/*.hpp")

# Boehm's collector, without its headers. It looks for pointers on stacks, which sanitizers and the simulator change.
find_library(LOAM_LIBGC NAMES libgc.so.1)
if(NOT LOAM_LIBGC OR LOAM_SANITIZE OR LOAM_SIMULATED)
  list(FILTER loam_managed_syncs EXCLUDE REGEX "/gc_boehm[a-z_]*\\.hpp$")
endif()

foreach(mode TRANSACTIONS LOCK NOTHING)
  add_library(loam-managed-${mode} OBJECT ${loam_managed_sources})
  target_link_libraries(loam-managed-${mode} PUBLIC loam-workload-harness loam-gc)
  target_compile_options(loam-managed-${mode} PRIVATE ${LOAM_WORKLOAD_OPTIMISATION})
  target_compile_definitions(loam-managed-${mode} PRIVATE LOAM_MANAGED_BY_${mode}=1)
endforeach()
# A control for one program: each allocation looks whether it is for a log.
set(checked_sources ${loam_managed_sources})
list(FILTER checked_sources INCLUDE REGEX "/(gcbench|harness/[a-z]+)\\.cpp$")
add_library(loam-managed-CHECKED OBJECT ${checked_sources})
target_link_libraries(loam-managed-CHECKED PUBLIC loam-workload-harness loam-gc)
target_compile_options(loam-managed-CHECKED PRIVATE ${LOAM_WORKLOAD_OPTIMISATION})
target_compile_definitions(loam-managed-CHECKED PRIVATE LOAM_MANAGED_BY_TRANSACTIONS=1
                                                        LOAM_MANAGED_CHECKED_ALLOCATION=1)

foreach(header IN LISTS loam_managed_syncs)
  get_filename_component(stem "${header}" NAME_WE)
  string(REPLACE "_" "-" name "${stem}")
  set(mode TRANSACTIONS)
  if(name STREQUAL "gc-lock")
    set(mode LOCK)
  elseif(name MATCHES "^gc-(raw|boehm)$")
    set(mode NOTHING)
  elseif(name STREQUAL "gc-dedicated-checking")
    set(mode CHECKED)
  endif()
  loam_workload_executable(${name} "workloads/managed/syncs/${stem}.hpp" $<TARGET_OBJECTS:loam-managed-${mode}>)
  target_link_libraries(loam-workload-${name} PRIVATE loam-gc)
  if(name MATCHES "^gc-boehm")
    target_sources(loam-workload-${name} PRIVATE "${managed}/boehm/boehm.cpp")
    target_link_libraries(loam-workload-${name} PRIVATE "${LOAM_LIBGC}")
  endif()
endforeach()
