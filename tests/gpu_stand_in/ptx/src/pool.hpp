// SPDX-License-Identifier: Apache-2.0
// Threads of the host that run blocks. They stay from launch to launch.
#pragma once

#include <functional>

namespace triax::gpu_stand_in {

// Calls `work` on this thread and on `threads` - 1 others at most (fewer if they are busy), and returns when all calls
// have ended. `work` must not throw.
void parallel(unsigned threads, const std::function<void()>& work);

} // namespace triax::gpu_stand_in
