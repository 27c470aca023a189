# Allocators with a planted slow-down of about 10, 30 and 100 % in a malloc-write-free loop. Included from cmake/LoamLab.cmake.
function(loam_planted_library percent malloc_steps free_steps)
  add_library(planted-${percent} SHARED "${CMAKE_SOURCE_DIR}/tests/planted/planted.c")
  set_target_properties(planted-${percent} PROPERTIES OUTPUT_NAME loam-planted-${percent} C_EXTENSIONS ON)
  target_compile_definitions(planted-${percent} PRIVATE
    LOAM_PLANTED_MALLOC_STEPS=${malloc_steps} LOAM_PLANTED_FREE_STEPS=${free_steps})
  # -fno-plt: a detour through the linkage table would be a second slow-down, of unknown size.
  target_compile_options(planted-${percent} PRIVATE
    -Wall -Wextra -Werror -O2 -fno-plt -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
  target_link_libraries(planted-${percent} PRIVATE ${CMAKE_DL_LIBS})
  set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} planted-${percent}=planted-${percent} CACHE INTERNAL "")
endfunction()

# Steps found by trial: one multiplication takes 3 cycles, a pair of glibc's calls about 25.
loam_planted_library(10 0 1)
loam_planted_library(30 4 0)
loam_planted_library(100 10 0)

# Libraries that plant exactly 0, 3 and 5 % in one workload, for loam_lab.dev.selfcheck.detection.
foreach(percent 0 3 5)
  loam_planted_library(exact-${percent} 0 0)
  target_compile_definitions(planted-exact-${percent} PRIVATE LOAM_PLANTED_PERCENT=${percent})
endforeach()
add_executable(planted-workload "${CMAKE_SOURCE_DIR}/tests/planted/workload.c")
set_target_properties(planted-workload PROPERTIES OUTPUT_NAME loam-planted-workload C_EXTENSIONS ON)
target_compile_options(planted-workload PRIVATE -Wall -Wextra -Werror -O2 -fno-builtin-malloc -fno-builtin-free)
target_link_libraries(planted-workload PRIVATE ${CMAKE_DL_LIBS})
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} planted-workload=planted-workload CACHE INTERNAL "")

# A program whose threads share cache lines in a known way, for `loam explain`. With line tables, as a user's would be.
find_package(Threads REQUIRED)
add_executable(planted-victims "${CMAKE_SOURCE_DIR}/tests/planted/victims.cpp")
set_target_properties(planted-victims PROPERTIES OUTPUT_NAME victims)
target_compile_options(planted-victims PRIVATE -Wall -Wextra -Werror -O2 -g1 -fno-builtin-malloc -fno-builtin-calloc)
target_link_libraries(planted-victims PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} planted-victims=planted-victims CACHE INTERNAL "")

# Kinds of sharing for a known share of the time, for loam_lab.dev.selfcheck.sharing.
add_executable(planted-sharers "${CMAKE_SOURCE_DIR}/tests/planted/sharers.cpp")
set_target_properties(planted-sharers PROPERTIES OUTPUT_NAME sharers)
target_compile_options(planted-sharers PRIVATE -Wall -Wextra -Werror -O2 -g1 -fno-builtin-malloc)
target_link_libraries(planted-sharers PRIVATE Threads::Threads)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} planted-sharers=planted-sharers CACHE INTERNAL "")
