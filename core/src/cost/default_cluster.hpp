// SPDX-License-Identifier: Apache-2.0
// Assumed costs of a device: what the engine uses where a run names no cluster file. They are the same
// on every machine, so that all ranks of a run get the same costs.
//
// Threads: pure functions.
#pragma once

#include "cost/cluster.hpp"
#include "triax/device.hpp"

namespace triax::cost {

/// The cluster of a CPU core for the host device, else of a data center GPU.
Cluster default_cluster(DeviceKind device);

} // namespace triax::cost
