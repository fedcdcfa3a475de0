# Flags and helpers for targets of this tree. What plugin authors use is core/cmake/TriaxPlugin.cmake.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# The build tree has the shape of an installation, so that the program finds its plugins in both the same way.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(TRIAX_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(TRIAX_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(TRIAX_SANITIZE)
  message(FATAL_ERROR "TRIAX_SANITIZE is \"${TRIAX_SANITIZE}\"; use address, thread, or leave it empty")
endif()
if(TRIAX_SANITIZE) # at -O2 -g GCC takes three times as long; a report needs no more than function and line
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-Og -g1")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Warnings for everything in this tree; imported headers are SYSTEM and stay quiet.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:CXX>:-Wpedantic> $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>) # fires inside std::string's operator+ (GCC bug 105651)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # a source that is included counts as a header
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(TRIAX_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# What most tests include takes half of the time that it takes to compile one; it is compiled once.
function(triax_use_common_headers name)
  if(NOT TARGET triax_common_headers)
    add_executable(triax_common_headers EXCLUDE_FROM_ALL ${triax_SOURCE_DIR}/tests/support/common_headers.cpp)
    target_link_libraries(triax_common_headers PRIVATE triax_engine GTest::gmock)
    target_compile_options(triax_common_headers PRIVATE ${ARGN})
    target_precompile_headers(triax_common_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <filesystem>
      <fstream> <functional> <map> <memory> <set> <sstream> <string> <thread> <vector>)
  endif()
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} REUSE_FROM triax_common_headers)
endfunction()

# triax_add_test(name SOURCES a.cpp... [LINK lib...] [LABELS label...] [PREFIX text]): a GoogleTest program, each test a
# ctest entry, its name after the prefix.
function(triax_add_test name)
  cmake_parse_arguments(ARG "BUNDLE" "PREFIX" "SOURCES;LINK;LABELS;DEPENDS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "triax_add_test(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE triax_engine GTest::gmock GTest::gtest_main ${ARG_LINK})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${triax_SOURCE_DIR}/tests)
  # What a test says itself runs once: most of a build's time would go into making that fast.
  triax_use_common_headers(${name} $<$<NOT:$<BOOL:${TRIAX_SANITIZE}>>:-O1>
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # so that ccache can tell one state of the headers from another
  target_compile_definitions(${name} PRIVATE
    TRIAX_SOURCE_DIR="${triax_SOURCE_DIR}" TRIAX_BINARY_DIR="${triax_BINARY_DIR}")
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_BUNDLE)
    triax_bundle_program(${name})
  endif()
  set(properties TIMEOUT 300)
  if(ARG_LABELS) # an empty value would vanish from the list, and LABELS take the next name for its value
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES ${properties})
endfunction()

# triax_add_test_plugin(name source.cpp): a plugin that only tests know, in `plugins` of the current binary folder.
function(triax_add_test_plugin name source)
  add_library(${name} MODULE ${source})
  target_link_libraries(${name} PRIVATE triax::core)
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/plugins)
endfunction()

# triax_host_cuda_kernels(target a.cu...): compiles kernels as C++ over CUDA of the host (tests/support/host_cuda) into a
# library. The header that nvcc includes before a .cu file is included here, too.
function(triax_host_cuda_kernels name)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-include;cuda_runtime.h"
    SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PUBLIC triax_host_cudart)
endfunction()
