// SPDX-License-Identifier: Apache-2.0
#include "loops.hpp"

namespace triax::kernels_cpu {

namespace baseline {
const Loops& loops();
}
#ifdef TRIAX_LOOPS_X86
namespace avx2 {
const Loops& loops();
}
namespace avx512 {
const Loops& loops();
}
#endif

void runnable_loops(LoopsList& list) {
  int count = 0;
#ifdef TRIAX_LOOPS_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    list[count++] = &avx512::loops();
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list[count++] = &avx2::loops();
#endif
  list[count++] = &baseline::loops();
  list[count] = nullptr;
}

const Loops& best_loops() {
  LoopsList list;
  runnable_loops(list);
  return *list[0];
}

} // namespace triax::kernels_cpu
