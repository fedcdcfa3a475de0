// SPDX-License-Identifier: Apache-2.0
// Output to stderr that never stops its writer. A terminal that is halted by Ctrl-S, or a pipe whose reader is stuck,
// would block write(2), and with it training. Such output is left out.
//
// Threads: any. Blocking: up to a second, once; after that, not until stderr takes output again. Errors: none.
#pragma once

#include <iosfwd>

namespace triax::os {

/// Whether stderr takes a line now. Waits a second for a slow reader, but only once.
bool stderr_accepts() noexcept;

/// A stream to stderr that writes what stderr_accepts() lets through. Each call makes another one, because a stream is
/// not for several threads; it lives as long as the process.
std::ostream& new_stderr_stream();

} // namespace triax::os
