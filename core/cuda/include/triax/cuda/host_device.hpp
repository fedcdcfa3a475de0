// SPDX-License-Identifier: Apache-2.0
// Marks functions that run on the GPU and on the host, so that tests without a GPU can run them.
//
// Threads, ownership, blocking, errors: none; it is a macro. For a C++ compiler they are plain inline functions. The
// constexpr functions of triax/random.hpp and triax/half.hpp run on the GPU unchanged: triax::cuda passes
// --expt-relaxed-constexpr to nvcc.
#pragma once

#if defined(__CUDACC__)
/// A function that kernels and the host call.
#define TRIAX_HD __host__ __device__
#else
#define TRIAX_HD
#endif
