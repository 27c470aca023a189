# The installed package: libloam-tm.{a,so}, libloam-malloc.so, libitm.so.1, headers, a CMake package, pkg-config files.
# docs/adr/0009 has the reasons for the layout.
# `cmake --build BUILD --target loam-package && cmake --install BUILD --component loam --prefix PREFIX`
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What a layer's library is made of is what the package's libraries are made of: nothing is compiled twice.
loam_layer_dependencies(tm loam_package_layers)
list(APPEND loam_package_layers tm)
set(objects "")
foreach(layer IN LISTS loam_package_layers)
  get_target_property(type loam-${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:loam-${layer}>)
  endif()
endforeach()

set(loam_package_definitions "")
if(LOAM_SANITIZE)
  list(APPEND loam_package_definitions LOAM_INSTRUMENTED=1)
endif()
if("${LOAM_SANITIZE}" MATCHES "thread")
  list(APPEND loam_package_definitions LOAM_TSAN=1)
endif()
if("${LOAM_SANITIZE}" MATCHES "address")
  list(APPEND loam_package_definitions LOAM_ASAN=1)
endif()

set(loam_version_script "${CMAKE_BINARY_DIR}/package/loam-tm.map")
configure_file("${CMAKE_SOURCE_DIR}/cmake/loam-tm.map.in" "${loam_version_script}" @ONLY)
# packaging/abi.py compares what the functions of the C interface take and give.
file(GLOB loam_c_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/runtime/tm/c/*.cpp")
set_source_files_properties(${loam_c_sources} PROPERTIES COMPILE_OPTIONS -g)
add_library(loam-package-static STATIC ${objects})
add_library(loam-package-shared SHARED ${objects})
target_link_options(loam-package-shared PRIVATE "LINKER:--version-script=${loam_version_script}" "LINKER:-z,defs"
                    "LINKER:-z,now")
set_target_properties(loam-package-shared PROPERTIES LINK_DEPENDS "${loam_version_script}" VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR})
foreach(kind static shared)
  set(target loam-package-${kind})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME loam-tm LINKER_LANGUAGE CXX EXPORT_NAME tm-${kind}
                        ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/package"
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/package")
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_compile_definitions(${target} INTERFACE ${loam_package_definitions})
  target_link_libraries(${target} PUBLIC Threads::Threads)
  if(LOAM_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${LOAM_SANITIZE})
  endif()
endforeach()
# A program in C that links the archive needs what the archive needs of C++.
target_link_libraries(loam-package-static INTERFACE "$<$<LINK_LANGUAGE:C>:stdc++;m>")
add_custom_target(loam-package DEPENDS loam-package-static loam-package-shared)

# Layers that are an archive of their own, with the layers below: loam::gc, the managed heap, and loam::delegation.
set(loam_package_archives "")
foreach(name gc delegation)
  loam_layer_dependencies(${name} layers)
  list(APPEND layers ${name})
  set(archive_objects "")
  foreach(layer IN LISTS layers)
    get_target_property(type loam-${layer} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archive_objects $<TARGET_OBJECTS:loam-${layer}>)
    endif()
  endforeach()
  set(target loam-package-${name})
  add_library(${target} STATIC ${archive_objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME loam-${name} LINKER_LANGUAGE CXX EXPORT_NAME ${name}
                        ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/package")
  target_compile_features(${target} INTERFACE cxx_std_20)
  if(LOAM_CHECKED)
    target_compile_definitions(${target} INTERFACE LOAM_CHECKED=1)
  endif()
  target_compile_definitions(${target} INTERFACE ${loam_package_definitions})
  target_link_libraries(${target} PUBLIC Threads::Threads INTERFACE "$<$<LINK_LANGUAGE:C>:stdc++;m>")
  if(LOAM_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${LOAM_SANITIZE})
  endif()
  add_dependencies(loam-package ${target})
  list(APPEND loam_package_archives ${target})
endforeach()

install(TARGETS loam-package-static loam-package-shared ${loam_package_archives} EXPORT loam-targets COMPONENT loam
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
set(loam_pc_names loam-tm loam-tm-static loam-delegation loam-gc)
if(TARGET loam-malloc)
  add_dependencies(loam-package loam-malloc)
  install(TARGETS loam-malloc EXPORT loam-targets COMPONENT loam INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  list(APPEND loam_pc_names loam-malloc)
endif()

# Our libitm has the name of GCC's: only a folder of its own keeps the two apart.
if(TARGET loam-itm)
  add_dependencies(loam-package loam-itm)
  install(TARGETS loam-itm LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/loam/itm" COMPONENT loam)
endif()

# Headers. In the tree they include one another as "runtime/...", installed as "loam/runtime/...".
file(GLOB public_headers RELATIVE "${CMAKE_SOURCE_DIR}/include" CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/include/loam/*")
set(header_patterns "")
foreach(layer IN LISTS loam_package_layers ITEMS gc delegation)
  list(APPEND header_patterns "runtime/${layer}/*.hpp")
endforeach()
install(CODE "
  set(loam_source \"${CMAKE_SOURCE_DIR}\")
  set(loam_include \"${CMAKE_INSTALL_INCLUDEDIR}\")
  set(loam_public_headers \"${public_headers}\")
  set(loam_generated \"${LOAM_GENERATED}\")
  set(loam_header_patterns \"${header_patterns}\")" COMPONENT loam)
install(SCRIPT "${CMAKE_SOURCE_DIR}/cmake/LoamInstallHeaders.cmake" COMPONENT loam)

# The CMake package. A minor version before 1.0 may change everything.
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/loam")
configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/loam-config.cmake.in" "${CMAKE_BINARY_DIR}/package/loam-config.cmake"
                              INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/package/loam-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(EXPORT loam-targets NAMESPACE loam:: DESTINATION "${package_folder}" COMPONENT loam)
install(FILES "${CMAKE_BINARY_DIR}/package/loam-config.cmake" "${CMAKE_BINARY_DIR}/package/loam-config-version.cmake"
        DESTINATION "${package_folder}" COMPONENT loam)

# pkg-config. The prefix follows from where the file lies: the installed tree can be moved.
file(RELATIVE_PATH loam_pc_prefix "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
string(REGEX REPLACE "/$" "" loam_pc_prefix "${loam_pc_prefix}")
list(TRANSFORM loam_package_definitions PREPEND " -D" OUTPUT_VARIABLE loam_pc_definitions)
string(JOIN "" loam_pc_definitions ${loam_pc_definitions})
foreach(name IN LISTS loam_pc_names)
  configure_file("${CMAKE_SOURCE_DIR}/cmake/${name}.pc.in" "${CMAKE_BINARY_DIR}/package/${name}.pc" @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/package/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT loam)
endforeach()
