// SPDX-License-Identifier: Apache-2.0
#include "cost/cluster_file.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "config/diagnostics.hpp"
#include "config/document.hpp"
#include "config/text_file.hpp"
#include "plugin/did_you_mean.hpp"

namespace triax::cost {

namespace {

using config::Position;
using config::Written;

constexpr std::string_view kTiles = "device.tiles";
constexpr const char* kUnits = "units are bytes, seconds, FLOP/s; shares are fractions";

std::optional<double> number_of(const Written& written) {
  if (written.type != Written::Type::integer && written.type != Written::Type::floating) return std::nullopt;
  double out = 0;
  const char* const end = written.text.data() + written.text.size();
  const auto [at, error] = std::from_chars(written.text.data(), end, out);
  if (error != std::errc() || at != end) return std::nullopt;
  return out;
}

std::optional<Origin> origin_named(const std::string& name) {
  const std::map<std::string, Origin> names = {{"measured", Origin::measured},
                                               {"published", Origin::published},
                                               {"fitted", Origin::fitted},
                                               {"prior", Origin::prior}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

class ClusterReader {
 public:
  ClusterReader(const config::Document& document, const std::string& shown) : document_(document), shown_(shown) {
    for (const config::Entry& entry : document.entries)
      entries_[entry.table.empty() ? entry.key : entry.table + "." + entry.key] = &entry;
  }

  ClusterFile read() {
    ClusterFile out;
    if (!document_.tables.contains("cluster") && !entries_.contains("cluster.name")) {
      errors_.add({shown_, 0, 0, 0},
                  make_refusal(ErrorCode::kInvalidValue, {}, "not a cluster file: it has no [cluster] table")
                      .with_hint("use one of clusters/, such as clusters/a100-dgx.toml"));
      out.refusals = errors_.sorted();
      return out;
    }
    Cluster cluster;
    cluster.name = name("cluster.name");
    cluster.device.name = name("device.name");
    cluster.node.devices = whole("node.devices");
    cluster.node.nics = whole("node.nics");
    for (const auto& [key, target] :
         {std::pair("node.link", &cluster.node.link), std::pair("node.network", &cluster.node.network)})
      if (entries_.contains(key)) *target = name(key);
    for (const NamedConstant& of : named_constants(cluster)) *of.constant = constant(of);
    read_tiles(cluster);
    if (document_.tables.contains("profile")) cluster.profile = profile();
    refuse_unknown();
    out.refusals = errors_.sorted();
    if (out.refusals.empty()) out.cluster = std::move(cluster);
    return out;
  }

 private:
  /// Position of a key, or of the first table around it, or the file.
  Position position(std::string key) const {
    for (; !key.empty(); key.resize(key.rfind('.') == std::string::npos ? 0 : key.rfind('.'))) {
      if (const auto found = entries_.find(key); found != entries_.end()) return found->second->key_at;
      if (const auto table = document_.tables.find(key); table != document_.tables.end()) return table->second;
    }
    return {shown_, 0, 0, 0};
  }
  template <class... Args>
  void refuse(ErrorCode code, const std::string& key, const std::string& hint, std::string_view pattern,
              const Args&... args) {
    errors_.add(position(key), make_refusal(code, {key}, pattern, args...).with_hint("{}", hint));
  }

  const Written* find(const std::string& key) {
    used_.insert(key);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second->value;
  }

  std::string name(const std::string& key) {
    const Written* written = find(key);
    if (written && written->type == Written::Type::string && !written->text.empty()) return written->text;
    refuse(written ? ErrorCode::kWrongType : ErrorCode::kMissing, key, "write a name in quotes",
           written ? "{} must be a string" : "{} is missing", key);
    return {};
  }

  Profile profile() {
    return {.processor = name("profile.processor"),
            .cores = whole("profile.cores"),
            .precision = name("profile.precision"),
            .kernels = {name("profile.kernels"), name("profile.kernels_build")},
            .comm = {name("profile.comm"), name("profile.comm_build")}};
  }

  int whole(const std::string& key) {
    constexpr double kMaxCount = 1024;
    const Written* written = find(key);
    const std::optional<double> number = written ? number_of(*written) : std::nullopt;
    if (number && written->type == Written::Type::integer && *number >= 1 && *number <= kMaxCount)
      return static_cast<int>(*number);
    if (!written) {
      refuse(ErrorCode::kMissing, key, "write how many there are in a node", "{} is missing", key);
    } else {
      refuse(ErrorCode::kOutOfRange, key, "write how many there are in a node", "{} must be in [1, {}], got {}", key,
             kMaxCount, config::to_toml(*written));
    }
    return 1;
  }

  Constant constant(const NamedConstant& key) {
    Constant out;
    const std::string value = key.name + ".value", origin = key.name + ".origin", width = key.name + ".width";
    if (const auto found = entries_.find(key.name); found != entries_.end()) {
      used_.insert(key.name);
      refuse(ErrorCode::kWrongType, key.name, example(key.name), "{} = {} has no origin", key.name,
             config::to_toml(found->second->value));
      return out;
    }
    const Written* written = find(value);
    if (!written) {
      used_.insert({origin, width});
      const bool has_parts = entries_.contains(origin) || entries_.contains(width);
      refuse(ErrorCode::kMissing, key.name, example(key.name), "{} is missing", has_parts ? value : key.name);
      return out;
    }
    out.value = number(value, *written, key.least, key.most);
    read_origin(origin, key.name, out);
    if (const Written* of = find(width)) out.width = number(width, *of, 0, 10);
    return out;
  }

  static std::string example(const std::string& name) {
    return text("write {} = ", name.substr(name.rfind('.') + 1)) + R"({ value = ..., origin = "...", width = ... }; )" +
           kUnits;
  }

  double number(const std::string& key, const Written& written, double least, double most) {
    const std::optional<double> out = number_of(written);
    if (out && *out >= least && *out <= most) return *out;
    refuse(ErrorCode::kOutOfRange, key, kUnits, "{} must be in [{}, {}], got {}", key, least, most,
           config::to_toml(written));
    return least;
  }

  void read_origin(const std::string& key, const std::string& constant, Constant& out) {
    const Written* written = find(key);
    const std::optional<Origin> origin = written ? origin_named(written->text) : std::nullopt;
    if (origin) {
      out.origin = *origin;
    } else if (written) {
      refuse(ErrorCode::kInvalidValue, key, "use prior for a value that was not measured",
             "{} must be measured, published, fitted or prior, got {}", key, config::to_toml(*written));
    } else {
      refuse(ErrorCode::kMissing, key, example(constant), "{} is missing", key);
    }
  }

  /// Tables "device.tiles.256x128".
  void read_tiles(Cluster& cluster) {
    const std::string prefix = std::string(kTiles) + ".";
    for (const auto& [table, at] : document_.tables) {
      if (!table.starts_with(prefix)) continue;
      const std::string name = table.substr(prefix.size());
      Tile tile;
      const char* const end = name.data() + name.size();
      const auto rows = std::from_chars(name.data(), end, tile.rows);
      const bool has_columns = rows.ec == std::errc() && rows.ptr != end && *rows.ptr == 'x';
      const auto columns = has_columns ? std::from_chars(rows.ptr + 1, end, tile.columns) : rows;
      if (!has_columns || columns.ec != std::errc() || columns.ptr != end || tile.rows < 1 || tile.columns < 1) {
        for (const char* key : {".value", ".origin", ".width"}) used_.insert(table + key);
        refuse(ErrorCode::kOutOfRange, table, "name a tile by its rows and columns, such as 128x64",
               "{}: \"{}\" is not a tile", kTiles, name);
        continue;
      }
      tile.efficiency = constant({table, nullptr, 1e-3, 1});
      cluster.device.tiles.push_back(tile);
    }
    if (cluster.device.tiles.empty())
      refuse(ErrorCode::kMissing, std::string(kTiles), "add [device.tiles] with a tile such as 128x128",
             "{} has no tile", kTiles);
  }

  /// "device.fill" for the parts of a constant, "device.fill.value"...
  static std::string whole_name(const std::string& key) {
    for (const char* part : {".value", ".origin", ".width"})
      if (key.ends_with(part)) return key.substr(0, key.rfind('.'));
    return key;
  }

  void refuse_unknown() {
    std::set<std::string> known, unknown;
    for (const std::string& key : used_) known.insert(whole_name(key));
    for (const auto& [key, entry] : entries_)
      if (!used_.contains(key)) unknown.insert(known.contains(whole_name(key)) ? key : whole_name(key));
    for (const std::string& key : unknown) {
      const std::vector<std::string> near = plugin::nearest(key, {known.begin(), known.end()});
      refuse(ErrorCode::kUnknownKey, key,
             near.empty() ? std::string("remove it; docs/planning.md lists the keys")
                          : text("did you mean {}?", near.front()),
             "unknown key {}", key);
    }
  }

  const config::Document& document_;
  const std::string& shown_;
  std::map<std::string, const config::Entry*> entries_; // by full key
  std::set<std::string> used_;
  config::Diagnostics errors_;
};

} // namespace

std::vector<NamedConstant> named_constants(Cluster& cluster) {
  DeviceCosts& device = cluster.device;
  NodeCosts& node = cluster.node;
  CollectiveCosts& collectives = cluster.collectives;
  constexpr double kMinEfficiency = 1e-3, kSecond = 1;
  std::vector<NamedConstant> out = {
      {"device.peak_16bit", &device.peak_16bit, 1},
      {"device.peak_32bit", &device.peak_32bit, 1},
      {"device.memory_bytes", &device.memory_bytes, 1},
      {"device.memory_bandwidth", &device.memory_bandwidth, 1},
      {"device.sms", &device.sms, 1, 1e6},
      {"device.launch_s", &device.launch_s, 0, kSecond},
      {"device.host_launch_s", &device.host_launch_s, 0, kSecond},
      {"device.gemm_efficiency", &device.gemm_efficiency, kMinEfficiency, 1},
      {"device.bandwidth_efficiency", &device.bandwidth_efficiency, kMinEfficiency, 1},
      {"device.score_efficiency", &device.score_efficiency, kMinEfficiency, 1},
      {"device.narrow_head", &device.narrow_head, 0, 1e4},
      {"device.fill", &device.fill, 0, 1e6},
      {"node.bandwidth", &node.bandwidth, 1},
      {"node.nic_bandwidth", &node.nic_bandwidth, 1},
      {"collectives.launch_s", &collectives.launch_s, 0, kSecond},
      {"collectives.shared_nics", &collectives.shared_nics, kMinEfficiency, 1},
      {"step.synchronize_s", &cluster.step.synchronize_s, 0, kSecond},
      {"step.transfer_s", &cluster.step.transfer_s, 0, kSecond},
      {"step.fixed_s", &cluster.step.fixed_s, 0, 1e3},
  };
  for (const auto& [name, protocol] :
       {std::pair("simple", &collectives.simple), std::pair("ll128", &collectives.ll128)}) {
    const std::string table = text("collectives.{}.", name);
    out.push_back({table + "base_s", &protocol->base_s, 0, kSecond});
    out.push_back({table + "node_s", &protocol->node_s, 0, kSecond});
    out.push_back({table + "network_s", &protocol->network_s, 0, kSecond});
    out.push_back({table + "efficiency", &protocol->efficiency, kMinEfficiency, 1});
  }
  return out;
}

std::vector<Constant*> uncertain_constants(Cluster& cluster) {
  std::vector<Constant*> out;
  for (const NamedConstant& of : named_constants(cluster))
    if (of.constant->width > 0) out.push_back(of.constant);
  for (Tile& tile : cluster.device.tiles)
    if (tile.efficiency.width > 0) out.push_back(&tile.efficiency);
  return out;
}

ClusterFile parse_cluster(const std::string& toml, const std::string& shown) {
  try {
    const config::Document document = config::parse_document(toml, shown, 0);
    return ClusterReader(document, shown).read();
  } catch (const config::SyntaxError& error) {
    config::Diagnostics errors;
    errors.add(error.at(), {ErrorCode::kMalformed, {}, error.message(), error.hint()});
    return {{}, errors.sorted()};
  }
}

ClusterFile read_cluster(const std::filesystem::path& file, const std::string& key) {
  const std::string shown = file.string();
  try {
    return parse_cluster(config::read_text(file, shown), shown);
  } catch (const Error& error) { // cannot be read
    const ErrorCode code = config::code_of_unreadable(file);
    const std::string examples = code == ErrorCode::kNotFound ? "; examples are in clusters/" : "";
    return {{}, {config::file_diagnostic(code, Error(error.message(), error.where(), error.hint() + examples), key)}};
  }
}

Refusals refusals_with_key(const ClusterFile& read, const std::string& key) {
  Refusals out;
  for (const config::Diagnostic& of : read.refusals) {
    const std::string problem = config::to_text({of.refusal.code, {}, of.refusal.message, {}}, of.at, {});
    out.add(make_refusal(of.refusal.code, {key}, "{}: {}", key, problem).with_hint("{}", of.refusal.hint));
  }
  return out;
}

} // namespace triax::cost
