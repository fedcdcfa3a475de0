# SPDX-License-Identifier: Apache-2.0
# Settles TRIAX_CUDA: AUTO takes a toolkit if one is found, ON demands it, OFF does not look. Sets TRIAX_WITH_CUDA.

set(TRIAX_WITH_CUDA OFF)
if(NOT TRIAX_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TRIAX_CUDA is \"${TRIAX_CUDA}\"; use AUTO, ON or OFF")
endif()
if(NOT TRIAX_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND)
    set(TRIAX_WITH_CUDA ON)
    triax_enable_cuda()
    # -Wpedantic speaks of what nvcc itself writes for the host compiler.
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
    if(TRIAX_WERROR)
      add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>"
        "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>")
    endif()
  elseif(TRIAX_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TRIAX_CUDA is ON and no CUDA toolkit was found: put nvcc on PATH, or set CUDAToolkit_ROOT")
  endif()
endif()
message(STATUS "CUDA parts: ${TRIAX_WITH_CUDA} (TRIAX_CUDA=${TRIAX_CUDA})")
