// SPDX-License-Identifier: Apache-2.0
// The tables of the optimizer suite, and what their files share.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "stepper.hpp"
#include "triax/conformance/optimizer_checks.hpp"

namespace triax::conformance {

using OptimizerCheck = CheckOf<OptimizerSubject>;

std::span<const OptimizerCheck> request_checks();
std::span<const OptimizerCheck> update_checks();
std::span<const OptimizerCheck> call_checks();
std::span<const OptimizerCheck> state_checks();
std::span<const OptimizerCheck> division_checks();

/// The master types that the optimizer accepts on the host and a kernel set supports. Throws Error if there are none.
std::vector<DType> accepted_types(const OptimizerSubject& subject);

/// Runs `body` with each accepted master type, with no working weights, and with those in each narrower type that a
/// kernel set supports.
void for_types(const OptimizerSubject& subject, const std::function<void(const StepTypes&)>& body);

/// Empty, or the first element of `working` that is not the rounded element of `master`.
std::string rounding_difference(const TensorView& working, const TensorView& master);

/// Fails with the first element that differs.
inline void expect_equal(Report& report, const StepTypes& types, std::string_view what, const Tensors& got,
                         const Tensors& expected) {
  const std::string differs = difference(got, expected);
  report.expect(differs.empty(), "{}, {}: {}", to_text(types), what, differs);
}

} // namespace triax::conformance
