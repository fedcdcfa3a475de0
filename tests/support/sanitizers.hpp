// SPDX-License-Identifier: Apache-2.0
// Whether this program is built with a sanitizer. Exhaustive tests then take a part of their cases: a sanitizer checks
// the code that a case runs, and each takes up to ten times as long. Without sanitizers, all run.
#pragma once

namespace triax::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

} // namespace triax::test
