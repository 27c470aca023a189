# libloam-simulator.so: what instrumented code calls (docs/internals/simulator.md). Only in the preset `sim`, whose flags
# LoamOptions.cmake sets; its own code carries no hooks. It brings its own C++ library, so that the program's allocator
# is never called for it; but the unwinder of the program, whose exceptions pass through pthread_once.
if(NOT LOAM_SIMULATED)
  return()
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  message(FATAL_ERROR "preset sim: the simulator's stacks are made for x86-64, and this is ${CMAKE_SYSTEM_PROCESSOR}")
endif()
file(GLOB loam_simulator_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/simulator/model/*.cpp" "${CMAKE_SOURCE_DIR}/simulator/orders/*.cpp"
     "${CMAKE_SOURCE_DIR}/simulator/engine/*.cpp" "${CMAKE_SOURCE_DIR}/simulator/hooks/*.cpp"
     "${CMAKE_SOURCE_DIR}/simulator/posix/*.cpp")
set(loam_simulator_script "${CMAKE_SOURCE_DIR}/simulator/simulator.map")
add_library(loam-simulator SHARED ${loam_simulator_sources} "${CMAKE_SOURCE_DIR}/runtime/base/check.cpp"
            "${CMAKE_SOURCE_DIR}/runtime/base/json_lines.cpp" "${CMAKE_SOURCE_DIR}/runtime/platform/pages.cpp")
if(LOAM_BLOCK_COSTS)
  target_compile_definitions(loam-simulator PRIVATE LOAM_BLOCK_COSTS=1)
endif()
target_include_directories(loam-simulator PRIVATE "${CMAKE_SOURCE_DIR}")
target_compile_options(loam-simulator PRIVATE -O3 -g1 -Wall -Wextra -Werror -march=${LOAM_MARCH} -fvisibility=hidden
  -fvisibility-inlines-hidden -fno-stack-protector -ftls-model=initial-exec -fno-builtin-malloc)
target_link_options(loam-simulator PRIVATE -static-libstdc++
  "LINKER:--version-script=${loam_simulator_script}" "LINKER:-z,defs" "LINKER:-z,now" "LINKER:-z,initfirst" "LINKER:--build-id=sha1")
target_link_libraries(loam-simulator PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(loam-simulator PROPERTIES LINK_DEPENDS "${loam_simulator_script}")

# Programs that tests run on simulated machines: tests/simulator/X.cpp is simulated-X of loam-paths.json.
file(GLOB loam_simulated_programs CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/simulator/*.cpp")
set(LOAM_SIMULATED_PROGRAMS "")
foreach(source IN LISTS loam_simulated_programs)
  get_filename_component(name "${source}" NAME_WE)
  list(APPEND LOAM_SIMULATED_PROGRAMS simulated-${name})
endforeach()
function(loam_simulated_program name)
  string(REPLACE "simulated-" "" stem "${name}")
  add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/simulator/${stem}.cpp")
  target_link_libraries(${name} PRIVATE loam-platform)
  if(name MATCHES "^simulated-(orders|transactional_orders|grace_orders|switching_orders|visible_orders|hybrid|elided|lent)$")  # they check parts of the runtime
    target_link_libraries(${name} PRIVATE loam-tm loam-delegation)
  endif()
endfunction()
