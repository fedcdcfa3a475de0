// SPDX-License-Identifier: Apache-2.0
// Placeholders for a communicator and a kernel set that are not installed here. A run can be planned with them, but not
// trained: they support everything and have the weakest guarantees. config::LoadResult::unchecked lists the skipped
// checks.
//
// Errors: Error from functions that would run or connect.
#pragma once

#include "plugin/loader.hpp"
#include "triax/communicator.hpp"
#include "triax/kernels.hpp"

namespace triax::train {

plugin::Instance<KernelSet> make_uninstalled_kernels();
plugin::Instance<CommBackend> make_uninstalled_communicator();

} // namespace triax::train
