// The network devices that UCX finds on this machine.
//
// Threads: as UCX itself: one at a time (see transport.cpp). Ownership: values. Blocking: opens UCX's components, which
// looks at the hardware. Errors: none: what cannot be opened has no devices.
#pragma once

#include <string>
#include <vector>

namespace comm_ucx {

/// "eth0", "lo", "mlx5_0:1"; each once, in order.
std::vector<std::string> network_devices();

/// The names of `list` (in the form of UCX_NET_DEVICES) that are not among `known`. None for "all", and for lists of
/// what is not to be used; a name without its port stands for all of the device's.
std::vector<std::string> unknown_devices(const std::string& list, const std::vector<std::string>& known);

} // namespace comm_ucx
