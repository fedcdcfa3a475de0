// Functions that run on the GPU and on the host alike, so that a test without a GPU can run them.
//
// Threads, ownership, blocking, errors: none; it is a macro. A C++ compiler sees plain inline functions. What is
// constexpr in triax/random.hpp and triax/half.hpp runs on the GPU as it is: triax::cuda has nvcc take such functions
// (--expt-relaxed-constexpr).
#pragma once

#if defined(__CUDACC__)
#define TRIAX_HD __host__ __device__
#else
#define TRIAX_HD
#endif
