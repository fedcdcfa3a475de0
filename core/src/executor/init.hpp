// Initial weights, drawn on the host.
//
// Threads: pure but for the views written. Ownership: the caller's. Blocking: computes.
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

/// Fills `host`, f32 or f64 of shape spec.local.
void draw_weights(const TensorView& host, const ParamSpec& spec, std::uint64_t seed);

} // namespace triax::executor
