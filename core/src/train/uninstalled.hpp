// SPDX-License-Identifier: Apache-2.0
// Stand-ins for a communicator and a kernel set that are not installed here, with which a run is planned and never
// trained: they support everything and guarantee the least. config::Loaded::unchecked says what was not asked.
//
// Threads: as their interfaces. Ownership: the caller's. Blocking: never. Errors: Error from what would run or connect.
#pragma once

#include "plugin/loader.hpp"
#include "triax/communicator.hpp"
#include "triax/kernels.hpp"

namespace triax::train {

plugin::Instance<KernelSet> make_uninstalled_kernels();
plugin::Instance<CommBackend> make_uninstalled_communicator();

} // namespace triax::train
