# The lab's native parts: the interposition probe, and the allocators with a planted slow-down that the tests measure.
set(LOAM_LAB_LIBRARIES "" CACHE INTERNAL "name=target of every shared object the lab loads")
if(EXISTS "${CMAKE_SOURCE_DIR}/lab/probe/probe.c")
  add_library(loam-probe SHARED "${CMAKE_SOURCE_DIR}/lab/probe/probe.c")
  target_compile_options(loam-probe PRIVATE -Wall -Wextra -Werror -O2)
  target_link_libraries(loam-probe PRIVATE ${CMAKE_DL_LIBS})
  set(LOAM_LAB_LIBRARIES "probe=loam-probe" CACHE INTERNAL "")
endif()
# Measures which processors share a core, for `loam doctor`.
add_executable(loam-siblings "${CMAKE_SOURCE_DIR}/lab/probe/siblings.cpp")
target_link_libraries(loam-siblings PRIVATE loam-platform)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} siblings=loam-siblings CACHE INTERNAL "")
# A program of known length: hardware counters are believed only after they counted it.
add_executable(loam-counted-loop "${CMAKE_SOURCE_DIR}/lab/probe/counted_loop.c")
target_compile_options(loam-counted-loop PRIVATE -Wall -Wextra -Werror -O2)
target_link_libraries(loam-counted-loop PRIVATE Threads::Threads)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} counted-loop=loam-counted-loop CACHE INTERNAL "")
# Makes mistakes with memory, for allocators to find.
add_executable(loam-corruption "${CMAKE_SOURCE_DIR}/lab/probe/corruption.c")
target_compile_options(loam-corruption PRIVATE -Wall -Wextra -Werror -O1 -fno-builtin -Wno-use-after-free
                       -Wno-free-nonheap-object)
set(LOAM_LAB_LIBRARIES ${LOAM_LAB_LIBRARIES} corruption=loam-corruption CACHE INTERNAL "")
include("${CMAKE_SOURCE_DIR}/tests/planted/planted.cmake" OPTIONAL)
