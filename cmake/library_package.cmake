# What installs the library beside the program: the shared library, its headers, a CMake package, a pkg-config file. All
# find each other from where they lie, so that an installed tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

target_include_directories(library PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                          $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(library INTERFACE cxx_std_20)
set_target_properties(library PROPERTIES EXPORT_NAME plimsoll)
if(PLIMSOLL_SANITIZE)
  set_target_properties(library PROPERTIES EXCLUDE_FROM_ALL ON)
  return()  # a sanitized library is for no one else
endif()
# Symbols that older systems lack: see the file, and libgcc's conversions of 16-bit floats from its static half.
target_sources(library PRIVATE ${PROJECT_SOURCE_DIR}/packaging/older_systems.cpp ${PROJECT_SOURCE_DIR}/src/cli_entry.cpp)
target_link_libraries(library PRIVATE plimsoll_cli gcc)
add_library(plimsoll::plimsoll ALIAS library)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
install(TARGETS library EXPORT plimsollTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/plimsoll DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
        FILES_MATCHING PATTERN *.h)
install(EXPORT plimsollTargets NAMESPACE plimsoll:: DESTINATION ${package} COMPONENT library)
configure_file(${PROJECT_SOURCE_DIR}/cmake/plimsollConfig.cmake.in package/plimsollConfig.cmake @ONLY)
# Until 1.0 a minor version may change what compiled before.
write_basic_package_version_file(package/plimsollConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/plimsollConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/package/plimsollConfigVersion.cmake DESTINATION ${package} COMPONENT library)

file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/plimsoll.pc.in package/plimsoll.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/plimsoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

# The wheel's program (tools/package-wheel) finds the library beside itself.
add_executable(wheel_program EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/packaging/wheel_program.cpp)
target_link_libraries(wheel_program PRIVATE library)
set_target_properties(wheel_program PROPERTIES OUTPUT_NAME plimsoll RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/wheel-program
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN/../lib)
