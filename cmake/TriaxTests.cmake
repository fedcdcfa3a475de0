# SPDX-License-Identifier: Apache-2.0
# Test programs and their ctest entries.

# Headers that most tests include. They take half of a test's compile time, so they are precompiled, once for each list
# of options.
function(triax_use_common_headers name headers)
  if(NOT TARGET ${headers})
    add_executable(${headers} EXCLUDE_FROM_ALL ${triax_SOURCE_DIR}/tests/support/common_headers.cpp)
    target_link_libraries(${headers} PRIVATE triax_engine GTest::gmock)
    target_compile_options(${headers} PRIVATE ${ARGN})
    target_precompile_headers(${headers} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <filesystem>
      <fstream> <functional> <map> <memory> <set> <sstream> <string> <thread> <vector>)
  endif()
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} REUSE_FROM ${headers})
endfunction()

# triax_add_test(name KIND unit|system|slow|gpu SOURCES a.cpp... [LINK lib...] [LABELS label...] [PREFIX text]
#   [DEPENDS target...] [ENVIRONMENT NAME=set:value...] [OPTIMIZED] [BUNDLE]): a GoogleTest program and its ctest entries.
# OPTIMIZED: the sources of the test itself compute a lot. BUNDLE: the bundle contains the program, which finds its files
# with support/installation.hpp; the others may use TRIAX_SOURCE_DIR and TRIAX_BINARY_DIR.
# KIND is a label of all entries. unit: runs inside the program, within seconds. system: runs the triax program, other
# processes, or scripts. slow: takes tens of seconds. gpu: uses a GPU; without one, runs with the GPU stand-in
# (docs/gpu.md), except tests whose names have "NoDriver" or "WithoutADriver".
function(triax_add_test name)
  cmake_parse_arguments(ARG "BUNDLE;OPTIMIZED" "PREFIX;KIND" "SOURCES;LINK;LABELS;DEPENDS;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_KIND MATCHES "^(unit|system|slow|gpu)$")
    message(FATAL_ERROR "triax_add_test(${name}): KIND must be unit, system, slow or gpu; unknown: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE triax_engine triax::conformance GTest::gmock GTest::gtest_main
    ${ARG_LINK})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${triax_SOURCE_DIR}/tests)
  # A test's own code runs once: to optimize it costs more time than it saves.
  set(options $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # lets ccache distinguish states of the headers
  if(TRIAX_SANITIZE STREQUAL "address") # these checks take a third of GCC's compile time of a test; the product keeps them
    list(APPEND options -fno-sanitize=null,alignment,object-size,vptr)
  endif()
  if(NOT ARG_OPTIMIZED)
    triax_use_common_headers(${name} triax_common_headers -O0 ${options})
  elseif(TRIAX_SANITIZE)
    triax_use_common_headers(${name} triax_common_headers_optimized ${options})
  else()
    triax_use_common_headers(${name} triax_common_headers_optimized -O1 ${options})
  endif()
  if(NOT ARG_BUNDLE) # where the bundle runs, there are no such folders
    target_compile_definitions(${name} PRIVATE
      TRIAX_SOURCE_DIR="${triax_SOURCE_DIR}" TRIAX_BINARY_DIR="${triax_BINARY_DIR}")
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_BUNDLE)
    triax_bundle_program(${name})
  endif()
  set(launcher "")
  if(ARG_KIND STREQUAL "gpu")
    add_dependencies(${name} gpu_stand_in)
    set(launcher LAUNCHER ${triax_SOURCE_DIR}/scripts/gpu-stand-in --without-gpu --libraries
      ${triax_BINARY_DIR}/lib/triax/gpu-stand-in)
  endif()
  triax_discover_tests(${name} "${name}" "${ARG_PREFIX}" LABELS ${ARG_KIND} ${ARG_LABELS}
    ENVIRONMENT ${ARG_ENVIRONMENT} ${launcher})
endfunction()

# triax_discover_tests(target list prefix [LABELS label...] [ENVIRONMENT NAME=set:value...] [LAUNCHER command...]): ctest
# entries for a test program, found when ctest starts. A test is an entry; a parameterized suite, each suite of a program
# with the label unit, and tests with one name before a dot (Conformance.AllReduce.*), are one entry, because the start
# of a process takes longer than most of its tests. `list` names the file of entries. The command line of a test begins
# with LAUNCHER.
function(triax_discover_tests target list prefix)
  cmake_parse_arguments(ARG "" "" "LABELS;ENVIRONMENT;LAUNCHER" ${ARGN})
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${list}.tests.cmake)
  file(GENERATE OUTPUT ${file} CONTENT "set(program \"$<TARGET_FILE:${target}>\")
set(folder \"${CMAKE_CURRENT_BINARY_DIR}\")
set(prefix \"${prefix}\")
set(labels \"${ARG_LABELS}\")
set(environment \"${ARG_ENVIRONMENT}\")
set(launcher \"${ARG_LAUNCHER}\")
set(entries \"${CMAKE_CURRENT_BINARY_DIR}/${list}.entries.cmake\")
include(\"${triax_SOURCE_DIR}/cmake/discover-tests.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# triax_add_test_plugin(name source.cpp): a plugin for tests only, in the folder `plugins` of the current binary folder.
function(triax_add_test_plugin name source)
  add_library(${name} MODULE ${source})
  target_link_libraries(${name} PRIVATE triax::core)
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/plugins)
endfunction()
