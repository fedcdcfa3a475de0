// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace triax::executor {

/// A number, at least 0, that a rank asks all ranks to read with the results of a step or an evaluation: a signal, or
/// 0. Called after the passes; of a recorded step, before it. May be empty.
using Request = std::function<std::int32_t()>;

} // namespace triax::executor
