# SPDX-License-Identifier: Apache-2.0
# For plugin authors, in this tree and outside it:
#   triax_add_plugin(comm-mine SOURCES src/comm.cpp [LINK MPI::MPI_CXX])
# builds comm-mine.so, which exports only the entry function of triax/abi.h and is never unloaded. It is installed
# beside the engine's plugins.

# For plugins that compute on GPUs. Call it before their targets: it finds the toolkit, compiles .cu files for the GPUs
# that Triax is built for (or for CMAKE_CUDA_ARCHITECTURES, or CUDAARCHS of the environment), and links one shared CUDA
# runtime.
macro(triax_enable_cuda)
  find_package(CUDAToolkit REQUIRED)
  if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know nvcc's C++20 flag
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
endmacro()

function(triax_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "triax_add_plugin(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "triax_add_plugin(${name}): SOURCES is missing")
  endif()
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE triax::core ${ARG_LINK})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_options(${name} PRIVATE "LINKER:-z,nodelete,--version-script=${map}")
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${map} INSTALL_RPATH "$ORIGIN/../..")
  if(triax_BINARY_DIR)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${triax_BINARY_DIR}/lib/triax/plugins)
  endif()

  # Core and plugin must use the same sanitizer. In this tree it is a flag of every target.
  get_target_property(sanitize triax::core TRIAX_SANITIZE)
  get_target_property(imported triax::core IMPORTED)
  if(NOT sanitize) # the program provides the sanitizer's symbols
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  elseif(imported)
    string(REPLACE "address" "address,undefined" sanitize ${sanitize})
    target_compile_options(${name} PRIVATE -fsanitize=${sanitize})
    target_link_options(${name} PRIVATE -fsanitize=${sanitize})
  endif()
  install(TARGETS ${name} LIBRARY DESTINATION lib/triax/plugins)
  set_property(GLOBAL APPEND PROPERTY TRIAX_PLUGINS ${name})
endfunction()
