// SPDX-License-Identifier: Apache-2.0
// Where a subcommand prints its result: standard output. With --json nothing else may appear there, but libraries and
// plugins print to descriptor 1, too. So their output goes to stderr then.
//
// Threads: the main thread, or the one that ends the process. Blocking: writes.
#pragma once

#include <ostream>

namespace triax::app {

/// std::cout; after reserve_stdout(), a stream with its own descriptor of standard output.
std::ostream& result_out();
/// Its descriptor.
int result_descriptor();

/// From now on, only result_out() writes to standard output: descriptor 1 becomes stderr. Does nothing if no descriptor
/// is left.
void reserve_stdout();

} // namespace triax::app
