// SPDX-License-Identifier: Apache-2.0
// Reads a cluster file (clusters/*.toml). Each constant is an inline table: { value, origin, width }.
//
// Blocking: reads the file. Errors: those of the user are returned, all together, with file, line and key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster.hpp"

namespace triax::cost {

struct ClusterFile {
  std::optional<Cluster> cluster; // set if there are no errors
  std::vector<config::Diagnostic> refusals;
};

/// `key`: the flag or key that names the file, for errors; may be empty.
ClusterFile read_cluster(const std::filesystem::path& file, const std::string& key = {});
/// The same of a text; `shown` is how messages name it.
ClusterFile parse_cluster(const std::string& toml, const std::string& shown);
/// The refusals of a file that a key of the run names. Messages have the positions in the file.
Refusals refusals_with_key(const ClusterFile& read, const std::string& key);

/// A constant that every file has, and the values that are allowed.
struct NamedConstant {
  std::string name; // "device.peak_16bit"
  Constant* constant = nullptr;
  double least = 0, most = 1e30;
};
/// All of them, by table. Tiles are not listed.
std::vector<NamedConstant> named_constants(Cluster& cluster);

/// The constants that are not exactly known: those with a width.
std::vector<Constant*> uncertain_constants(Cluster& cluster);

} // namespace triax::cost
