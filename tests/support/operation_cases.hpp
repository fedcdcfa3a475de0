// SPDX-License-Identifier: Apache-2.0
// The cases of operations of the conformance suite, in the namespace of tests.
#pragma once

#include "triax/conformance/case_builder.hpp"
#include "triax/conformance/operation_cases.hpp"

namespace triax::test {

using namespace conformance::cases; // NOLINT(google-build-using-namespace): tests define other cases

} // namespace triax::test
