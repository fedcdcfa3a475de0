// SPDX-License-Identifier: Apache-2.0
// The functions that kernels-cpu calls of OpenMP's runtime library (OpenMP 5.2, 18.2.1 and 18.2.3). GCC has omp.h among
// its own headers, where other compilers do not look.
#pragma once

extern "C" {
int omp_get_max_threads(); // of parallel regions that the calling thread begins
void omp_set_num_threads(int threads);
}
