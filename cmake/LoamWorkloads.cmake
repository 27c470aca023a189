# Executables loam-workload-NAME: one synchronisation each, and the workloads that can run on it.
#   runtime/tm/algorithms/NAME.hpp      a transactional algorithm: with every workload of workloads/transactional/
#   runtime/delegation/schemes/NAME.hpp a scheme of delegation, or a lock that it is compared with: with the same workloads
#   workloads/syncs/NAME.hpp            another way to synchronise shared data, with the same workloads; it is taken where an
#                                       algorithm of the runtime has the same name
#   workloads/FOLDER/syncs/NAME.hpp     a structure that needs nothing around it, with the workloads of this folder alone
#   workloads/FOLDER/executables.cmake  executables of the folder's own: allocation/ (synchronisation `none`), peers/
# A new family of workloads is a folder. Without an executables.cmake it is compiled for each of these synchronisations.
# What does not depend on the synchronisation (workloads/harness, each folder's shared/*.cpp) is compiled once.
# The flags keep GCC from deleting malloc-write-free loops: it would time nothing.
set(LOAM_WORKLOAD_FLAGS -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
# Builds that are not measured are there for their checks, and to compile is most of the time that their tests take.
set(LOAM_WORKLOAD_OPTIMISATION -O3)
if(LOAM_CHECKED AND "$ENV{LOAM_TEST_ALL}" STREQUAL "")
  set(LOAM_WORKLOAD_OPTIMISATION -O1)
endif()
set(LOAM_WORKLOAD_TARGETS "" CACHE INTERNAL "every loam-workload-* target")

set(workloads "${CMAKE_SOURCE_DIR}/workloads")
file(GLOB loam_sync_headers CONFIGURE_DEPENDS "${workloads}/syncs/*.hpp")
file(GLOB loam_harness_sources CONFIGURE_DEPENDS "${workloads}/harness/*.cpp" "${workloads}/*/shared/*.cpp")
list(REMOVE_ITEM loam_harness_sources "${workloads}/harness/main.cpp")

string(JOIN " " flags ${LOAM_WORKLOAD_OPTIMISATION} ${LOAM_WORKLOAD_FLAGS} -march=${LOAM_MARCH})
add_library(loam-workload-harness STATIC ${loam_harness_sources})
target_link_libraries(loam-workload-harness PUBLIC loam-tm loam-delegation loam-structures)
target_compile_options(loam-workload-harness PUBLIC ${LOAM_WORKLOAD_FLAGS} PRIVATE ${LOAM_WORKLOAD_OPTIMISATION})
target_compile_definitions(loam-workload-harness PRIVATE LOAM_PRESET="${LOAM_PRESET}" LOAM_BUILD_FLAGS="${flags}")

# The headers that are nobody's own, once for all workloads: they take a third of the time to compile one. Not where all
# is asked for: a source that forgets to include what it uses is found there.
add_executable(loam-common-headers EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/harness/headers.cpp")
target_link_libraries(loam-common-headers PRIVATE loam-workload-harness)
target_compile_options(loam-common-headers PRIVATE ${LOAM_WORKLOAD_OPTIMISATION})
target_precompile_headers(loam-common-headers PRIVATE <algorithm> <atomic> <charconv> <cmath> <cstdlib> <cstring>
                          <functional> <numeric> <optional> <span> <string> <thread> <utility> <vector>)

function(loam_precompile_workload target)
  if("$ENV{LOAM_TEST_ALL}" STREQUAL "")
    target_precompile_headers(${target} REUSE_FROM loam-common-headers)
  endif()
endfunction()

# loam_workload_executable(NAME SYNC_HEADER SOURCES...)
# SYNC_HEADER defines loam::workloads::Sync (workloads/harness/sync.hpp); SOURCES register workloads.
function(loam_workload_executable name sync_header)
  set(target loam-workload-${name})
  add_executable(${target} "${CMAKE_SOURCE_DIR}/workloads/harness/main.cpp" ${ARGN})
  target_link_libraries(${target} PRIVATE loam-workload-harness)
  target_compile_options(${target} PRIVATE ${LOAM_WORKLOAD_OPTIMISATION})
  target_compile_definitions(${target} PRIVATE LOAM_SYNC_HEADER="${sync_header}")
  target_link_options(${target} PRIVATE -Wl,--build-id=sha1)
  set(LOAM_WORKLOAD_TARGETS ${LOAM_WORKLOAD_TARGETS} ${target} CACHE INTERNAL "")
endfunction()

# Families of workloads that bring executables of their own, and sources of all others.
file(GLOB loam_workload_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true "${workloads}/*")
set(loam_workload_sources "")
set(loam_workload_own "")
foreach(folder IN LISTS loam_workload_folders)
  if(EXISTS "${folder}/executables.cmake")
    list(APPEND loam_workload_own "${folder}/executables.cmake")
  elseif(IS_DIRECTORY "${folder}" AND NOT folder STREQUAL "${workloads}/harness")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    list(APPEND loam_workload_sources ${sources})
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/syncs/*.hpp")
    foreach(header IN LISTS headers)
      get_filename_component(stem "${header}" NAME_WE)
      string(REPLACE "_" "-" name "${stem}")
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${CMAKE_SOURCE_DIR}")
      loam_workload_executable(${name} "${header}" ${sources})
    endforeach()
  endif()
endforeach()

# The applications compute with floating-point numbers: no products and sums are joined, so that results are the same bits
# whatever the compiler inlines.
file(GLOB loam_application_sources CONFIGURE_DEPENDS "${workloads}/applications/*.cpp")
file(GLOB loam_application_parts CONFIGURE_DEPENDS "${workloads}/applications/shared/*.cpp")
set_source_files_properties(${loam_application_sources} ${loam_application_parts} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# An application takes seconds to compile for one algorithm. So, unless all is asked for, builds that are not measured see
# two designs, as the sanitizers' tests do: locks with a redo log, and values.
set(loam_algorithm_sources ${loam_workload_sources})
if(LOAM_CHECKED AND "$ENV{LOAM_TEST_ALL}" STREQUAL "")
  list(REMOVE_ITEM loam_algorithm_sources ${loam_application_sources})
endif()

foreach(header IN LISTS loam_sync_headers)
  get_filename_component(stem "${header}" NAME_WE)
  string(REPLACE "_" "-" name "${stem}")
  # The applications are compiled for hardware transactions, and for inline accesses of C, only where they are measured.
  set(sources ${loam_workload_sources})
  if("${stem}" MATCHES "^(htm_|hybrid_|loam_c_inline)")
    set(sources ${loam_algorithm_sources})
  endif()
  loam_workload_executable(${name} "workloads/syncs/${stem}.hpp" ${sources})
  # VZEROUPPER aborts every hardware transaction. GCC takes precompiled headers only with the flags that made them.
  if("${stem}" MATCHES "^(htm|hybrid)_" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(loam-workload-${name} PRIVATE -mno-vzeroupper)
  else()
    loam_precompile_workload(loam-workload-${name})
  endif()
endforeach()
foreach(header IN LISTS LOAM_ALGORITHM_HEADERS)
  get_filename_component(stem "${header}" NAME_WE)
  string(REPLACE "_" "-" name "${stem}")
  if(TARGET loam-workload-${name})
    continue()
  endif()
  loam_algorithm_class(${stem} class)
  if("${stem}" MATCHES "^(etl_wb|norec)$")
    set(sources ${loam_workload_sources})
  else()
    set(sources ${loam_algorithm_sources})
  endif()
  loam_workload_executable(${name} "workloads/syncs/shared/algorithm.hpp" ${sources})
  loam_precompile_workload(loam-workload-${name})
  target_compile_definitions(loam-workload-${name} PRIVATE LOAM_ALGORITHM=${class}
                             LOAM_ALGORITHM_HEADER="runtime/tm/algorithms/${stem}.hpp")
endforeach()
# The applications are compiled once for all schemes (workloads/syncs/shared/sent.hpp).
set(loam_scheme_sources ${loam_workload_sources})
list(REMOVE_ITEM loam_scheme_sources ${loam_application_sources})
if(loam_algorithm_sources STREQUAL loam_workload_sources)
  add_library(loam-sent-applications OBJECT EXCLUDE_FROM_ALL ${loam_application_sources})
  target_link_libraries(loam-sent-applications PRIVATE loam-workload-harness)
  target_compile_options(loam-sent-applications PRIVATE ${LOAM_WORKLOAD_OPTIMISATION})
  target_compile_definitions(loam-sent-applications PRIVATE LOAM_SYNC_HEADER="workloads/syncs/shared/sent.hpp")
  list(APPEND loam_scheme_sources $<TARGET_OBJECTS:loam-sent-applications>)
endif()
foreach(header IN LISTS LOAM_SCHEME_HEADERS)
  get_filename_component(stem "${header}" NAME_WE)
  string(REPLACE "_" "-" name "${stem}")
  loam_algorithm_class(${stem} class)
  loam_workload_executable(${name} "workloads/syncs/shared/scheme.hpp" ${loam_scheme_sources})
  loam_precompile_workload(loam-workload-${name})
  target_compile_definitions(loam-workload-${name} PRIVATE LOAM_SCHEME=${class}
                             LOAM_SCHEME_HEADER="runtime/delegation/schemes/${stem}.hpp")
endforeach()
foreach(file IN LISTS loam_workload_own)
  include("${file}")
endforeach()
add_custom_target(loam-workloads DEPENDS ${LOAM_WORKLOAD_TARGETS})  # by tests/compilers/run.py

# Tests of the harness in builds that are not measured need one synchronisation of each kind, not all of them: the suite
# smoke runs them as they are measured. The others are built when they are asked for by name.
if(LOAM_CHECKED AND "$ENV{LOAM_TEST_ALL}" STREQUAL "")
  foreach(header IN LISTS LOAM_ALGORITHM_HEADERS LOAM_SCHEME_HEADERS loam_sync_headers)
    get_filename_component(stem "${header}" NAME_WE)
    if(stem MATCHES "^(etl_wb|norec|two_phase|cc_synch|h_synch|server|mutex|none|sequential|global_lock|loam_c.*)$")
      continue()
    endif()
    string(REPLACE "_" "-" name "${stem}")
    if(TARGET loam-workload-${name})
      set_target_properties(loam-workload-${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endforeach()
endif()
