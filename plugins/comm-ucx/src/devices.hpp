// SPDX-License-Identifier: Apache-2.0
// The network devices and transports that UCX finds on this machine.
//
// Threads: one at a time, as UCX requires (see context.cpp). Blocking: opens UCX's components, which probes the
// hardware. Errors: none; a component that cannot be opened has no devices.
#pragma once

#include <string>
#include <vector>

namespace triax::comm_ucx {

/// Names such as "eth0", "lo", "mlx5_0:1"; unique and sorted.
std::vector<std::string> network_devices();

/// Names such as "posix", "self", "tcp"; unique and sorted.
std::vector<std::string> available_transports();

/// The names in `list` (in the form of UCX_NET_DEVICES) that are not in `known`. Empty for "all", and for lists of
/// devices to exclude. A name without a port stands for all ports of the device.
std::vector<std::string> unknown_devices(const std::string& list, const std::vector<std::string>& known);

} // namespace triax::comm_ucx
