// SPDX-License-Identifier: Apache-2.0
#include "cost/default_cluster.hpp"

namespace triax::cost {

namespace {

Constant prior(double value, double width) {
  return {value, Origin::prior, width};
}

constexpr int kMaxCores = 65536; // ranks that compute on CPUs are taken as cores of one machine

/// One core is a device: it has no launches to wait for, and a small tile.
Cluster core_costs() {
  Cluster out;
  out.name = "a CPU";
  DeviceCosts& device = out.device;
  device.name = "a CPU core";
  device.peak_16bit = device.peak_32bit = prior(50e9, 1);
  device.memory_bytes = prior(4e9, 1);
  device.memory_bandwidth = prior(10e9, 1);
  device.sms = prior(1, 0);
  device.launch_s = prior(1e-6, 1.5);
  device.host_launch_s = prior(0, 0); // the host is the device
  device.gemm_efficiency = device.bandwidth_efficiency = prior(0.7, 0.5);
  device.score_efficiency = prior(0.7, 0.5);
  device.narrow_head = device.fill = prior(16, 1.5);
  device.tiles = {{16, 16, prior(1, 0)}};
  out.node.devices = kMaxCores;
  out.node.link = "shared memory";
  out.node.bandwidth = prior(5e9, 1.5);
  out.collectives.launch_s = prior(1e-5, 2);
  out.collectives.shared_nics = prior(1, 0);
  for (RingProtocol* const protocol : {&out.collectives.simple, &out.collectives.ll128})
    *protocol = {prior(0, 0), prior(0, 0), prior(0, 0), prior(1, 0)};
  out.step.synchronize_s = prior(0, 0);
  out.step.transfer_s = prior(1e-5, 2);
  out.step.fixed_s = prior(1e-3, 2);
  return out;
}

/// As clusters/a100-dgx.toml, which has the origins, rounded.
Cluster gpu_costs() {
  Cluster out;
  out.name = "GPUs";
  DeviceCosts& device = out.device;
  device.name = "a GPU";
  device.peak_16bit = prior(312e12, 1);
  device.peak_32bit = prior(19.5e12, 1);
  device.memory_bytes = prior(85e9, 1);
  device.memory_bandwidth = prior(2e12, 1);
  device.sms = prior(108, 0);
  device.launch_s = prior(4e-6, 0.5);
  device.host_launch_s = prior(0, 0); // programs run ahead, or are captured
  device.gemm_efficiency = prior(0.73, 0.15);
  device.bandwidth_efficiency = prior(0.83, 0.15);
  device.score_efficiency = prior(0.69, 0.3);
  device.narrow_head = prior(80, 1);
  device.fill = prior(128, 0.5);
  device.tiles = {
      {256, 128, prior(1, 0)}, {128, 128, prior(0.92, 0.1)}, {128, 64, prior(0.78, 0.1)}, {64, 64, prior(0.6, 0.1)}};
  out.node.devices = out.node.nics = 8;
  out.node.bandwidth = prior(235e9, 1);
  out.node.nic_bandwidth = prior(19e9, 1);
  out.collectives.launch_s = prior(30e-6, 0.5);
  out.collectives.shared_nics = prior(0.5, 0.3);
  out.collectives.simple = {prior(8.4e-6, 0), prior(3.4e-6, 0), prior(9.6e-6, 0), prior(1, 0)};
  out.collectives.ll128 = {prior(10e-6, 0), prior(1.9e-6, 0), prior(4e-6, 0), prior(0.9375, 0)};
  out.step.synchronize_s = prior(100e-6, 0.5);
  out.step.transfer_s = prior(10e-6, 0.5);
  out.step.fixed_s = prior(26e-3, 0.5);
  return out;
}

} // namespace

Cluster default_cluster(DeviceKind device) {
  return device == DeviceKind::host ? core_costs() : gpu_costs();
}

} // namespace triax::cost
