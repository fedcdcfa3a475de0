# SPDX-License-Identifier: Apache-2.0
# Evaluates TRIAX_CUDA and sets TRIAX_WITH_CUDA. AUTO: with CUDA if a toolkit of CUDA 13 is found; ON: fails without one;
# OFF: without CUDA.

set(TRIAX_WITH_CUDA OFF)
set(triax_cuda_found "")
if(NOT TRIAX_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TRIAX_CUDA is \"${TRIAX_CUDA}\"; use AUTO, ON or OFF")
endif()
if(NOT TRIAX_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  # Scripts and the GPU stand-in look for the libraries of this version.
  if(CUDAToolkit_FOUND AND NOT CUDAToolkit_VERSION_MAJOR EQUAL 13)
    set(triax_cuda_found "; found CUDA ${CUDAToolkit_VERSION}, and CUDA 13 is needed")
  elseif(CUDAToolkit_FOUND)
    set(TRIAX_WITH_CUDA ON)
    triax_enable_cuda()
    # No -Wpedantic: nvcc generates code that it warns about.
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
    if(TRIAX_WERROR)
      add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>"
        "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>")
    endif()
  endif()
  if(TRIAX_CUDA STREQUAL "ON" AND NOT TRIAX_WITH_CUDA)
    message(FATAL_ERROR "TRIAX_CUDA is ON and no toolkit of CUDA 13 was found${triax_cuda_found}: put its nvcc on PATH, "
      "or set CUDAToolkit_ROOT")
  endif()
endif()
message(STATUS "CUDA parts: ${TRIAX_WITH_CUDA} (TRIAX_CUDA=${TRIAX_CUDA}${triax_cuda_found})")
