// SPDX-License-Identifier: Apache-2.0
// Parts of primitive_cases() that have separate files.
#pragma once

#include "triax/conformance/case_builder.hpp"

namespace triax::conformance::cases {

/// Results that are sums over many rows.
void add_sum_cases(CaseList& list);
/// Optimizers and decisions about a step.
void add_update_cases(CaseList& list);

} // namespace triax::conformance::cases
