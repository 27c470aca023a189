# The simulated multicore. loam-simulator-model is its model, for tests; what is preloaded compiles the same sources into
# itself, without instrumentation.
file(GLOB LOAM_SIMULATOR_MODEL_SOURCES CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/simulator/model/*.cpp"
     "${CMAKE_SOURCE_DIR}/simulator/orders/*.cpp")
add_library(loam-simulator-model STATIC EXCLUDE_FROM_ALL ${LOAM_SIMULATOR_MODEL_SOURCES})
target_link_libraries(loam-simulator-model PUBLIC loam-base loam-platform)

# By command: how fast it is.
add_executable(loam-simulator-speed EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/simulator/benchmarks/model_speed.cpp")
target_link_libraries(loam-simulator-speed PRIVATE loam-simulator-model)

# By tests/lab/simulator/test_against_cachegrind.py: programs, and what replays their accesses.
add_executable(loam-simulator-kernels EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/simulator/benchmarks/kernels.c")
target_link_libraries(loam-simulator-kernels PRIVATE loam-flags)
add_executable(loam-simulator-replay EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/simulator/benchmarks/replay.cpp")
target_link_libraries(loam-simulator-replay PRIVATE loam-simulator-model)
