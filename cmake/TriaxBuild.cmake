# SPDX-License-Identifier: Apache-2.0
# Compiler flags and options for targets of this tree. core/cmake/TriaxPlugin.cmake has what plugin authors use.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT TRIAX_SANITIZE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# The build tree has the layout of an installation, so that the program finds its plugins in the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(TRIAX_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  # The descriptions of the undefined-behaviour checks (59 MB of data in a program) take two thirds of its start: they are
  # registered with the address sanitizer, and searched for pointers at the end. A check that traps has no description;
  # the report names function and line (handle_sigill in sanitizer_options.cpp). Plugins keep the descriptions, because
  # checks of casts to derived classes need them; elsewhere in the
  # product, scripts/lint refuses such casts.
  add_compile_options($<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>:-fsanitize-undefined-trap-on-error>)
elseif(TRIAX_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(TRIAX_SANITIZE)
  message(FATAL_ERROR "TRIAX_SANITIZE is \"${TRIAX_SANITIZE}\"; use address, thread, or leave it empty")
endif()
if(TRIAX_SANITIZE) # reports only need function and line
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  # Position-independent programs would relocate 65 MB of the sanitizers' descriptions at each start.
  string(APPEND CMAKE_CXX_FLAGS " -fno-pie")
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -no-pie")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Each test program contains the engine: GNU ld takes three times as long for it. What is released is linked by GNU ld.
if(TRIAX_TESTS AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  find_program(TRIAX_LLD ld.lld)
  mark_as_advanced(TRIAX_LLD)
  if(TRIAX_LLD)
    add_link_options(-fuse-ld=lld)
    # GCC can leave the cold part of a function empty. LLD 14 then drops the unwind entry of what follows it, and an
    # exception there ends the program.
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-reorder-blocks-and-partition>)
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<CXX_COMPILER_ID:GNU>>:-Xcompiler=-fno-reorder-blocks-and-partition>)
  endif()
endif()

# GCC collects its garbage from 128 MB on, which takes a seventh of a test's compile time; memory grows by a fifth.
if(TRIAX_TESTS)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
endif()

# Warnings for all sources in this tree. Imported headers are SYSTEM, which disables warnings.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:CXX>:-Wpedantic> $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>) # false positive in std::string (GCC bug 105651)
endif()
# Clang does not know the pragma ivdep. It warns where libstdc++ itself calls get_temporary_buffer(), and where the operand
# of typeid() is evaluated, as intended for the dynamic type of *pointer.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-pragmas;-Wno-deprecated-declarations;-Wno-potentially-evaluated-expression>")
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # a source that is included counts as a header
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(TRIAX_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

# triax_precompile_headers(name header...): in builds with tests, precompiles large headers that most sources of a target
# include. A build without tests shows which source lacks an include.
function(triax_precompile_headers name)
  if(NOT TRIAX_TESTS)
    return()
  endif()
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <chrono> <filesystem> <functional> <map> <memory> <optional>
    <set> <span> <string> <string_view> <vector> <nlohmann/json.hpp> ${ARGN})
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>) # for ccache
endfunction()
