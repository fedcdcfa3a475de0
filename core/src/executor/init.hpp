// SPDX-License-Identifier: Apache-2.0
// Initial weights, drawn on the host.
//
// Threads: pure functions; draw_weights() uses several threads. Blocking: computes. Errors: Error if the type or shape
// of the weights is not supported.
//
// Element e of a parameter's *global* tensor is a normal random number (Box-Muller transform in double) from the Philox
// block of e at the parameter's site: words 0 and 1 give elements 0 and 1 of the block, words 2 and 3 the other two. So
// the values do not depend on how the tensor is split. Padding is zero.
#pragma once

#include <cstdint>

#include "triax/device.hpp"
#include "triax/model.hpp"

namespace triax::executor {

/// The value of one element of the global tensor.
double initial_value(const Init& init, std::uint64_t seed, std::uint32_t site, std::uint64_t element);

/// Fills `host`, f32 or f64 of shape spec.local, on up to `threads` threads. One thread needs half a minute for a
/// billion parameters.
void draw_weights(const TensorView& host, const ParamSpec& spec, std::uint64_t seed, int threads = 1);

} // namespace triax::executor
