// SPDX-License-Identifier: Apache-2.0
// Initial weights, drawn on the host.
//
// Threads: pure but for the views written; draw_weights() starts some. Ownership: the caller's. Blocking: computes.
// Errors: Error for weights of another type or shape than can be drawn.
// Element e of a parameter's *global* tensor is a normal number made by Box and Muller's transform, in double, from the
// Philox block of e at the parameter's site: words 0 and 1 give elements 0 and 1 of the block, words 2 and 3 the other
// two. So every split of the tensor gets the same values. Padding is zero.
#pragma once

#include <cstdint>

#include "triax/device.hpp"
#include "triax/model.hpp"

namespace triax::executor {

/// The value of one element of the global tensor.
double initial_value(const Init& init, std::uint64_t seed, std::uint32_t site, std::uint64_t element);

/// Fills `host`, f32 or f64 of shape spec.local, on up to `threads` threads: a model of a billion parameters would take
/// one of them half a minute.
void draw_weights(const TensorView& host, const ParamSpec& spec, std::uint64_t seed, int threads = 1);

} // namespace triax::executor
