// SPDX-License-Identifier: Apache-2.0
// CUDA host emulator: what core/cuda uses of the driver's header.
#pragma once

#include <cstdint>

#define CUDAAPI

enum CUresult { CUDA_SUCCESS = 0 };
enum { CU_STREAM_WAIT_VALUE_GEQ = 0 };
using CUdeviceptr = unsigned long long;
using CUstream = struct CUstream_st*;
using cuuint32_t = std::uint32_t;
