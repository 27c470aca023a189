# The version stands in lab/loam_lab/__init__.py. Everything else takes it from there: this build and through it sonames,
# symbol versions, pkg-config and the CMake package; pyproject.toml; the Debian packages. A header cannot take it from
# anywhere, because programs include it as it is: it must say the same.
set(loam_version_file "${CMAKE_CURRENT_LIST_DIR}/../lab/loam_lab/__init__.py")
file(STRINGS "${loam_version_file}" loam_version REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" loam_version "${loam_version}")
if(NOT loam_version)
  message(FATAL_ERROR "lab/loam_lab/__init__.py: has no line __version__ = \"MAJOR.MINOR.PATCH\"")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${loam_version_file}")

set(loam_version_header "${CMAKE_CURRENT_LIST_DIR}/../include/loam/tm.h")
file(STRINGS "${loam_version_header}" lines REGEX "^#define LOAM_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
string(REPLACE ";" "." lines "${lines}")
if(NOT lines STREQUAL loam_version)
  message(FATAL_ERROR "include/loam/tm.h: LOAM_VERSION_MAJOR, _MINOR and _PATCH say ${lines}, and lab/loam_lab/__init__.py "
                      "says ${loam_version}: bring both to the same version")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${loam_version_header}")
