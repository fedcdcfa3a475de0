// SPDX-License-Identifier: Apache-2.0
// A cluster as the cost model sees it: devices, nodes, links and collectives, every constant with its origin.
//
// Threads: values. Units: seconds, bytes, bytes per second, FLOP/s; efficiencies are in (0, 1].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace triax::cost {

/// Where a constant comes from. prior: a value that seemed likely before any measurement was compared, and was kept.
enum class Origin : std::uint8_t { measured, published, fitted, prior };

struct Constant {
  double value = 0;
  Origin origin = Origin::prior;
  double width = 0; // standard deviation, as a fraction of the value
};

/// A tile of a matrix product: one SM computes one at a time, at `efficiency` of its peak.
struct Tile {
  int rows = 0, columns = 0;
  Constant efficiency;
};

struct DeviceCosts {
  std::string name;
  Constant peak_16bit, peak_32bit; // FLOP/s of matrix products, by the bytes of an element
  Constant memory_bytes;           // of the device
  Constant memory_bandwidth;       // as published
  Constant sms;                    // streaming multiprocessors, which compute tiles
  Constant launch_s;               // added to each kernel
  Constant host_launch_s;          // that the host needs for each kernel
  Constant gemm_efficiency;        // fraction of the peak that a large product reaches
  Constant bandwidth_efficiency;   // fraction of memory_bandwidth that elementwise operations reach
  Constant score_efficiency;       // the same of softmax and dropout on attention scores
  Constant narrow_head;            // products of narrower heads take as long as with this many columns
  Constant fill;                   // products take as long as with this many more terms in their sums
  std::vector<Tile> tiles;         // from which a product chooses the fastest
};

struct NodeCosts {
  int devices = 1, nics = 1;
  std::string link = "inside a node";    // names of the links, such as NVLink
  std::string network = "between nodes"; // and InfiniBand
  Constant bandwidth;                    // bus bandwidth of a ring inside a node
  Constant nic_bandwidth;                // of one NIC, in one direction
};

/// One protocol of ring collectives.
struct RingProtocol {
  Constant base_s;     // once per collective
  Constant node_s;     // per step inside a node
  Constant network_s;  // per step between nodes
  Constant efficiency; // fraction of the bandwidth that it reaches
};

struct CollectiveCosts {
  RingProtocol simple, ll128; // NCCL's names; the faster one counts
  Constant launch_s;          // launch and skew of ranks, once per collective
  Constant shared_nics;       // fraction of the bandwidth if rings with several ranks per node share its NICs
};

struct StepCosts {
  Constant synchronize_s; // that a transfer takes if the host waits for the device after it
  Constant transfer_s;    // latency of a transfer between pipeline stages
  Constant fixed_s;       // once per step: data, logging, launcher
};

/// A plugin whose speed is in the constants: its name, and a checksum of its file.
struct MeasuredPlugin {
  std::string name, build;
};

/// Where constants were measured. They hold for this processor and these builds only.
struct Profile {
  std::string processor;
  int cores = 0;
  std::string precision; // train.precision of what was measured
  MeasuredPlugin kernels, comm;
};

struct Cluster {
  std::string name;
  std::optional<Profile> profile; // empty: not measured by triax plan --calibrate
  DeviceCosts device;
  NodeCosts node;
  CollectiveCosts collectives;
  StepCosts step;
};

} // namespace triax::cost
