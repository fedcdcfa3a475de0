// SPDX-License-Identifier: Apache-2.0
#include "cost/cluster_text.hpp"

#include <array>
#include <cstdio>

#include "config/document.hpp"
#include "cost/cluster_file.hpp"
#include "triax/text.hpp"

namespace triax::cost {

namespace {

constexpr std::array kOrigins = {"measured", "published", "fitted", "prior"}; // by Origin

std::string number_text(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.6g", value);
  return out;
}

std::string quoted_text(const std::string& value) {
  config::Written out;
  out.type = config::Written::Type::string;
  out.text = value;
  return config::to_toml(out);
}

std::string constant_line(const std::string& key, const Constant& of) {
  return text("{} = { value = {}, origin = \"{}\", width = {} }\n", key, number_text(of.value),
              kOrigins[static_cast<std::size_t>(of.origin)], number_text(of.width));
}

/// The keys of [device] and [node] that are not constants.
std::string other_keys(const Cluster& cluster, const std::string& table) {
  if (table == "device") return text("name = {}\n", quoted_text(cluster.device.name));
  if (table != "node") return {};
  const NodeCosts& node = cluster.node;
  return text("devices = {}\nnics = {}\nlink = {}\nnetwork = {}\n", node.devices, node.nics, quoted_text(node.link),
              quoted_text(node.network));
}

std::string profile_table(const Profile& of) {
  return text("\n[profile]\nprocessor = {}\ncores = {}\nprecision = {}\n", quoted_text(of.processor), of.cores,
              quoted_text(of.precision)) +
         text("kernels = {}\nkernels_build = {}\ncomm = {}\ncomm_build = {}\n", quoted_text(of.kernels.name),
              quoted_text(of.kernels.build), quoted_text(of.comm.name), quoted_text(of.comm.build));
}

} // namespace

std::string to_toml(const Cluster& cluster) {
  std::string out = text("[cluster]\nname = {}\n", quoted_text(cluster.name)), table;
  if (cluster.profile) out += profile_table(*cluster.profile);
  Cluster copy = cluster; // named_constants() gives pointers that can be written to
  for (const NamedConstant& of : named_constants(copy)) {
    const std::size_t dot = of.name.rfind('.');
    if (of.name.substr(0, dot) != table) {
      table = of.name.substr(0, dot);
      out += text("\n[{}]\n", table) + other_keys(cluster, table);
    }
    out += constant_line(of.name.substr(dot + 1), *of.constant);
  }
  out += "\n[device.tiles]\n";
  for (const Tile& tile : cluster.device.tiles)
    out += constant_line(text("{}x{}", tile.rows, tile.columns), tile.efficiency);
  return out;
}

} // namespace triax::cost
